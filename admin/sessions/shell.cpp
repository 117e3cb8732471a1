// Becoming the wrapper.
#include "admin/sessions/shell.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/exec_pointers.hpp"

#include <unistd.h>

namespace pi_agent {

void become_shell(const std::vector<std::string> &arguments)
{
    if (::geteuid() == 0) throw Failure(ExitStatus::usage, "root is no user of pi; run it as one: sudo -u NAME pi-agentctl shell");
    std::vector<std::string> all = {"pi", "--pi-agent-shell"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    ::execv(build::wrapper_path, exec_pointers(all).data());
    throw_errno(std::string("running ") + build::wrapper_path);
}

} // namespace pi_agent
