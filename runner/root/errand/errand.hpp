// Starts a child that becomes another account, and uses its answer.
#pragma once

#include "common/host/identity.hpp"

#include "runner/wire/answer.hpp"

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

} // namespace pi_agent
