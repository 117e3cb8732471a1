// pi-agent-cleanup: removes what a session left, run by the session's unit as it stops. Root; one argument, the session id, set by the runner.
#include "common/error.hpp"
#include "common/identity.hpp"
#include "runner/cleanup.hpp"
#include "runner/session_directory.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>

int main(int argc, char **argv)
{
    try {
        // --- root from here: started by systemd, with nothing of a user's in sight ---
        if (clearenv() != 0) throw pi_agent::Failure(pi_agent::ExitStatus::system_failure, "the environment could not be emptied");
        const pi_agent::AsRoot root = pi_agent::AsRoot::claim();
        if (argc != 2 || !pi_agent::is_session_id(argv[1])) throw pi_agent::Failure(pi_agent::ExitStatus::usage, "usage: pi-agent-cleanup SESSION-ID");
        pi_agent::clean_up_after_unit(root, argv[1]);
        return 0;
    } catch (const pi_agent::Failure &failure) {
        std::fprintf(stderr, "pi-agent-cleanup: %s\n", failure.what());
        return static_cast<int>(failure.status());
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "pi-agent-cleanup: %s\n", failure.what());
        return static_cast<int>(pi_agent::ExitStatus::internal);
    }
}
