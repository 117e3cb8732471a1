// Starts a child that becomes another account, and uses its answer; the receiver's end, and what it opened.
#pragma once

#include "common/decide/decision.hpp"
#include "common/host/identity.hpp"
#include "runner/plan/host_view.hpp"

#include <poll.h>

namespace pi_agent {

// --- A forked child that becomes somebody else, does one task, and answers over a channel. Root never waits for it without a deadline
// (design rule 8).

constexpr int child_patience_seconds = 5; // without progress

// With end_with_it the child is the first process of a PID namespace: all that it starts, by itself or because somebody makes it, ends with
// it, whatever it does (pid_namespaces(7)). For a task that runs a program of the host's, which its user can trace (ptrace(2)).
enum class Descendants { may_outlive_it, end_with_it };

// Owns the child: kills it at the latest when this object goes, and reaps it unless the kernel keeps it.
class Child {
public:
    // Forks. The child closes every descriptor except its channel and `keep`, becomes `identity` for good, and runs `task`. An exception
    // from `task` reaches the parent as a failure. `keep` are borrowed: the numbers are the same in the child. `name` is for error
    // messages.
    Child(const AsRoot &root, std::string name, const Account &identity, const std::vector<int> &keep,
          const std::function<void(const AsUser &, FdRef channel)> &task, Descendants descendants = Descendants::may_outlive_it);
    Child(const Child &) = delete;
    Child &operator=(const Child &) = delete;
    // The child stays what this process is, with all its descriptors, and answers with what `task` returns (receive_long).
    Child(const AsRoot &root, std::string name, const std::function<std::string()> &task);
    ~Child();

    // The next answer. Throws the child's own Failure, or Failure(system_failure) when it died or made no progress in time.
    Packet receive();
    // What send_long_answer sent. The patience covers all of it: the child's user may stop it between two pieces. `meanwhile` is called now
    // and then until something comes.
    std::string receive_long(int patience_seconds, const std::function<void()> &meanwhile = {});
    // The same for one message; empty when the child only reported progress.
    std::optional<Packet> receive_one() { return receive_one(in_seconds(child_patience_seconds), child_patience_seconds); }
    // Closes the channel, which tells a task that it must end something, and waits for two seconds at most. Nothing can be received any
    // more.
    void hang_up() noexcept;
    // What it last said that it is doing; empty when it has said nothing yet.
    [[nodiscard]] const std::string &progress() const noexcept { return progress_; }
    [[nodiscard]] FdRef channel() const noexcept { return channel_; }

private:
    void start(bool apart, const std::function<void(FdRef)> &run);
    std::optional<Packet> receive_one(Deadline deadline, int patience_seconds);

    std::string name_;
    pid_t pid_ = -1;
    UniqueFd channel_;
    std::string progress_;
};

// --- One task that another account does, with one answer.

// `as`: the account that does it. `keep` are borrowed: the numbers are the same in the child.
struct Errand {
    std::string name; // for error messages
    const Account &as;
    std::vector<int> keep = {};
};

// The answer of a task that only reports that it is done.
struct Done {
    static void fields(auto & /*archive*/, auto & /*self*/) {}
};

// A list of texts.
struct Texts {
    std::vector<std::string> texts;
    static void fields(auto &archive, auto &self) { archive(self.texts); }
};

// `task` gets the child's proof that it is `errand.as`, and returns an answer (common/base/channel.hpp). The parent decodes what arrives,
// and `decode` refuses what it did not ask for: its user may control the child. Throws the child's own Failure, and Failure(system_failure)
// when it died or did not answer within child_patience_seconds.
template <typename Task, typename Decode>
auto ask(const AsRoot &root, const Errand &errand, const Task &task, const Decode &decode)
{
    Child child(root, errand.name, errand.as, errand.keep,
                [&](const AsUser &self, FdRef channel) { send_long_answer(channel, encode(task(self))); });
    return decode(child.receive_long(child_patience_seconds));
}

// For an answer that can be decoded from its bytes alone.
template <typename Answer, typename Task>
Answer ask(const AsRoot &root, const Errand &errand, const Task &task)
{
    return ask(root, errand, task, decode_fields<Answer>);
}

// --- The runner's end of the caller's side (runner/as_user/project.hpp).

// What the wrapper's side can report while a session runs.
struct StdioHandedOver {};
struct WrapperGone {};                                                         // or it broke the protocol
using ReceiverEvent = std::variant<StdioHandedOver, WrapperGone, std::string>; // a message's bytes, without descriptors

// Owns the child. In this order: request(), then the answers of open_as_caller (runner/as_user/project.hpp)
// and of send_home (runner/wire/user_files.hpp), then start_handover() and receive().
class Receiver {
public:
    // `wrapper` is borrowed; from now on nobody else may receive from it.
    Receiver(const AsRoot &root, const Account &caller, const AccessRules &rules, const ToolchainsPolicy &toolchains, FdRef wrapper);

    // Waits for the request and checks its standard descriptors. Throws what is wrong with it.
    Request request();
    // Makes the child send its standard descriptors to pi-agent-exec over `control` and let go of them. Does not wait: an event reports it.
    void start_handover(FdRef control);
    // The next event; called when channel() has input.
    ReceiverEvent receive();
    [[nodiscard]] FdRef channel() const noexcept { return child_.channel(); }
    [[nodiscard]] Child &child() noexcept { return child_; }

private:
    Child child_;
};

// --- What ends a session that is still being prepared, looked at wherever preparation waits.

// The user asked for the end (Ctrl-C) before there was an agent: the wrapper must end as by this signal. Not a Failure, because nothing
// went wrong.
struct EndedBySignal {
    int number;
};

// Blocks the signals that end the runner; supervise reads them. Call it before the sandbox exists, so that none is lost.
UniqueFd watch_termination();

// All descriptors are borrowed.
struct SessionWatch {
    FdRef wrapper;                                 // its socket: hung up
    FdRef termination;                             // from watch_termination: readable
    FdRef receiver = FdRef(-1);                    // its channel: readable
    std::function<void()> hear_receiver = nullptr; // called then; throws when it heard of the end

    // Waits until one of `channels` has something to read, at most until `deadline`, and returns which. Throws Failure, or what
    // hear_receiver throws, when the session must end.
    [[nodiscard]] std::optional<std::size_t> wait(const std::vector<FdRef> &channels, Deadline deadline) const;
    // Only looks for the end.
    void check() const { static_cast<void>(wait({}, Clock::now())); }
};

// Collects what the wrapper sends meanwhile: a request for the end counts at once, the rest waits for the agent.
class EarlyMessages {
public:
    explicit EarlyMessages(Receiver &receiver) : receiver_(receiver) {}

    // Reads the next one, when the receiver's channel has input. Throws EndedBySignal, or Failure when the wrapper is gone.
    void hear();
    [[nodiscard]] const std::vector<WrapperMessage> &messages() const noexcept { return messages_; }

private:
    Receiver &receiver_;
    std::vector<WrapperMessage> messages_;
};

// --- Hands the launch record over, with the values of the policy's files of variables. Each child of the runner's inherits its memory, so
// only one process of root's gets these values: it does this alone and then ends.

// `record` is complete, except for its environment where the policy has such files: the environment is then composed again from
// `environment`. `terminal` and `mode_changer` as for send_launch. Throws what keeps it from being sent.
void hand_record_over(const AsRoot &root, const Policy &policy, const EnvironmentInput &environment, const LaunchRecord &record,
                      FdRef control, FdRef terminal, FdRef mode_changer);

// --- Decides on the working directory and the roots that a child which is the caller has opened (design rules 6 and 7).

// A directory that the session shows writable, as the caller opened it in the host's mount namespace.
struct ShownTree {
    std::string root_path;       // of the allowed root that holds it: canonical, from the descriptor; in the property alphabet
    std::string inside;          // beneath that root, "" for the root itself; any bytes
    UniqueFd directory;          // O_PATH
    std::optional<Gid> by_group; // that granted the root
    // On the host; any bytes.
    [[nodiscard]] std::string path() const;
};

// Whether the tree is still where it was opened.
bool is_at_its_path(const ShownTree &tree);

struct OpenedProject {
    ShownTree shown;
    UniqueFd root_directory; // O_PATH, of the root of which `shown` is a part; empty where all of it is shown
    std::string below;       // the working directory beneath it; any bytes
    std::uint64_t cwd_device = 0;
    std::uint64_t cwd_inode = 0;
    std::optional<std::string> repository;  // the nearest beneath `shown` that holds the working directory; "" for all of it
    std::vector<ShownTree> git_directories; // of that repository, where they are in another place, and another root
    std::vector<std::string> notices;       // of git directories that are not shown, and why
    std::vector<AgentPlace> roots;          // all roots of the caller that exist
    std::vector<AgentPlace> closed;         // of these, inside its root and with other rules: this session does not see them
    Policy policy;                          // as it holds for this start
    std::size_t root = 0;                   // which of them holds the working directory, in the order of their rules
    // On the host; any bytes. The repository's is empty where the session has no repository.
    [[nodiscard]] std::string directory() const;
    [[nodiscard]] std::string repository_path() const;
    // The project first. Valid as long as this object lives and is not changed.
    [[nodiscard]] std::vector<const ShownTree *> trees() const;
};

// Takes what `child` sends in open_as_caller (runner/as_user/project.hpp), and decides on what was opened. `callers` is the policy as it
// holds for the caller.
std::variant<OpenedProject, Refused> open_project(Child &child, const Account &caller, const AccessRules &all, const HostView &view,
                                                  Policy callers, const AskedOfStart &asked);

} // namespace pi_agent
