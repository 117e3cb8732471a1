// pi-agent-cleanup: removes what a session left, as root. A unit of the session runs it when that unit stops, with the session id as its
// argument. Where there is no systemd, the runner starts it, and it waits for the runner's end.
#include "runner/root/confined/session_end.hpp"

namespace {

// Reports to the record, and to whoever typed its name: on standard error, which systemd connects to the journal.
int refuse(const std::string &id, const char *why, pi_agent::ExitStatus status)
{
    pi_agent::record_problem(id, "cleanup: ", why);
    std::fprintf(stderr, "pi-agent-cleanup: %s\n", why);
    return static_cast<int>(status);
}

} // namespace

int main(int argc, char **argv)
{
    const bool waits = argc == 3 && std::string(argv[1]) == "--when-runner-ends";
    const std::string id = waits ? argv[2] : argc == 2 ? argv[1] : "(none)";
    try {
        // --- root from here: started by systemd or the runner; nothing in sight comes from a user ---
        if (clearenv() != 0) throw pi_agent::Failure(pi_agent::ExitStatus::system_failure, "the environment could not be emptied");
        const pi_agent::AsRoot root = pi_agent::AsRoot::claim();
        if (!pi_agent::is_session_id(id))
            throw pi_agent::Failure(pi_agent::ExitStatus::usage, "usage: pi-agent-cleanup [--when-runner-ends] SESSION-ID");
        pi_agent::confine_root(root);
        // --- confined root from here: with the rights of a runner whose session runs ---
        if (waits)
            pi_agent::keep_session(root, id);
        else
            pi_agent::clean_up_after_unit(root, id);
        return 0;
    } catch (const std::exception &failure) {
        const auto *known = dynamic_cast<const pi_agent::Failure *>(&failure);
        return refuse(id, failure.what(), known == nullptr ? pi_agent::ExitStatus::internal : known->status());
    }
}
