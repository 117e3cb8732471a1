// pi-agent-cleanup: removes what a session left, run by the session's unit as it stops. Root; one argument, the session id, set by the
// runner.
#include "common/error.hpp"
#include "common/identity.hpp"
#include "runner/cleanup.hpp"
#include "runner/session_directory.hpp"

#include "runner/record.hpp"

#include <cstdlib>
#include <exception>
#include <string>

int main(int argc, char **argv)
{
    const std::string id = argc == 2 ? argv[1] : "(none)";
    try {
        // --- root from here: started by systemd, with nothing of a user's in sight ---
        if (clearenv() != 0) throw pi_agent::Failure(pi_agent::ExitStatus::system_failure, "the environment could not be emptied");
        const pi_agent::AsRoot root = pi_agent::AsRoot::claim();
        if (!pi_agent::is_session_id(id)) throw pi_agent::Failure(pi_agent::ExitStatus::usage, "usage: pi-agent-cleanup SESSION-ID");
        pi_agent::clean_up_after_unit(root, id);
        return 0;
    } catch (const pi_agent::Failure &failure) {
        pi_agent::record_problem(id, std::string("cleanup: ") + failure.what());
        return static_cast<int>(failure.status());
    } catch (const std::exception &failure) {
        pi_agent::record_problem(id, std::string("cleanup: ") + failure.what());
        return static_cast<int>(pi_agent::ExitStatus::internal);
    }
}
