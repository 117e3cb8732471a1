// pi-agent-runner: called by sudo without arguments, with the wrapper's socket as standard input. Root.
#include "runner/root/launch/phases.hpp"
#include "runner/root/own/questions.hpp"

#include <csignal>

namespace {

using namespace pi_agent; // NOLINT(google-build-using-namespace): this file is the program

// "", or why no record took it.
std::string record_failure(SessionRecord &record, const Failure &failure)
{
    try {
        record.failed(failure.status(), failure.what(), failure.kind());
        return "";
    } catch (const std::exception &unrecorded) {
        return unrecorded.what();
    }
}

// Before the caller is known the runner can use standard error alone. The caller chose it, and a pipe that nobody reads must not hold root.
int refuse_on_stderr(SessionRecord &record, const Failure &failure)
{
    if (geteuid() == 0) record_failure(record, failure); // otherwise nobody was let in, and there is nothing for root to record
    signal(SIGALRM, SIG_DFL);                            // the caller may ignore it
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarm_only, nullptr);
    alarm(2);
    std::fprintf(stderr, "pi-agent-runner: %s\n", failure.what());
    return static_cast<int>(failure.status());
}

int report(FdRef wrapper, SessionRecord &record, const Failure &failure)
{
    std::string text = failure.what();
    const std::string unrecorded = record_failure(record, failure);
    if (!unrecorded.empty() && unrecorded != text) text += "\n" + unrecorded;
    try {
        send_packet(wrapper, encode(RunnerMessage(FailureReport{failure.status(), text, failure.kind()})), {}, in_seconds(1));
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): best_effort: the wrapper is gone, the record has it
    }
    return static_cast<int>(failure.status());
}

int serve(const AsRoot &root, const Account &caller, FdRef wrapper, SessionRecord &record)
{
    try {
        fault_point("authenticated");
        if (holds_question(wrapper)) return answer_question(root, caller, wrapper, record);
        run_session(root, caller, wrapper, record);
        return 0;
    } catch (const Failure &failure) {
        return report(wrapper, record, failure);
    } catch (const std::exception &failure) {
        return report(wrapper, record, Failure(ExitStatus::internal, std::string("internal error: ") + failure.what()));
    }
}

} // namespace

int main(int argc, char ** /*argv*/)
{
    SessionRecord record;
    try {
        // --- root from here, and the caller is unknown until authenticate(). Entered (phases.hpp) takes back the rest of it ---
        reset_timer_slack();
        signal(SIGXFSZ, SIG_IGN); // the caller's limit of file sizes must end no record and no runner; all limits are reset later
        const std::optional<std::string> sudo_uid = take_sudo_uid();
        const AsRoot root = AsRoot::claim();
        if (sudo_uid) record.concerns(parse_uid(*sudo_uid));
        if (argc != 1 && defence_is_on("no-arguments")) throw Failure(FailureKind::by_hand, "denied: this program takes no arguments");
        const Account caller = authenticate(root, FdRef(STDIN_FILENO), sudo_uid);
        record.concerns(caller);
        UniqueFd wrapper = take_channel(root);
        const int status = serve(root, caller, wrapper, record);
        // Closes unread data of the user's only at the end of this process, where no close waits (SO_LINGER, socket(7)).
        if (defence_is_on("close-at-exit")) static_cast<void>(wrapper.release());
        return status;
    } catch (const Failure &failure) {
        return refuse_on_stderr(record, failure);
    } catch (const std::exception &failure) {
        return refuse_on_stderr(record, Failure(ExitStatus::internal, failure.what()));
    }
}
