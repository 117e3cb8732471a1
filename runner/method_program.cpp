// Looking for the programs of a sandbox method.
#include "runner/method_program.hpp"

#include "common/error.hpp"
#include "common/trusted_file.hpp"

#include <fcntl.h>
#include <string>

namespace pi_agent {

void require_method_program(const char *method, const char *path, const char *package)
{
    try {
        open_trusted(path, O_PATH, "program");
    } catch (const SystemFailure &failure) {
        throw Failure(ExitStatus::unavailable, std::string("sandbox.method ") + method + " needs " + path + ", and " + failure.what() +
                                                   "; install the package " + package + ", or choose another method");
    }
}

} // namespace pi_agent
