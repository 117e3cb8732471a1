// The failures that every program of pi-agent knows: their classes, and the kinds that users and administrators meet.
#pragma once

#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pi_agent {

// The kinds of failure that users and administrators meet: each has an exit status (sysexits(3)) and a code that stays the same.
enum class ExitStatus : int {
    usage = 64,          // a bad --pi-agent- option
    unavailable = 69,    // the sandbox method cannot work on this host
    internal = 70,       // a bug of pi-agent
    system_failure = 71, // the operating system refused something we need
    limit = 75,          // session limit or lock
    denied = 77,         // the policy, or a rule of the runner, says no
    configuration = 78,  // policy or host configuration is invalid
};

// In the order of the table (failures.toml); `other` has no kind of its own: its code is the exit status's. The numbers travel between
// processes of one build and mean nothing elsewhere.
enum class FailureKind : std::uint8_t {
#include "common/failure_kinds.inc"
    end_of_kinds
};
constexpr auto last_failure_kind = static_cast<FailureKind>(static_cast<std::uint8_t>(FailureKind::end_of_kinds) - 1);

struct KindFacts {
    FailureKind kind;
    ExitStatus status;
    const char *code;  // "E77-root"
    const char *title; // for the page of docs/troubleshooting.md and the answer of pi-agentctl explain CODE
};

// By exit status; the rows of each status begin with the one that has no kind of its own ("E77").
const std::vector<KindFacts> &failure_kinds();

// Of a kind; for `other`, or a kind that has another status, the row of the status alone.
const KindFacts &facts_of(FailureKind kind, ExitStatus status);
ExitStatus status_of(FailureKind kind);

// "see: pi-agentctl explain E77-root": the one pointer that ends a message. Empty for mistakes in a command line: these name the help.
std::string pointer_to(FailureKind kind, ExitStatus status);

// The classes of failure that every program of pi-agent knows.

// A failure that ends the program: the text is shown to the user as it is, after "pi: ".
class Failure : public std::runtime_error {
public:
    Failure(ExitStatus status, const std::string &text) : std::runtime_error(text), status_(status) {}
    Failure(FailureKind kind, const std::string &text) : std::runtime_error(text), status_(status_of(kind)), kind_(kind) {}
    // The same failure in other words.
    Failure(const Failure &other, const std::string &text) : std::runtime_error(text), status_(other.status_), kind_(other.kind_) {}
    // From another process, which says the kind.
    Failure(ExitStatus status, FailureKind kind, const std::string &text) : std::runtime_error(text), status_(status), kind_(kind) {}
    [[nodiscard]] ExitStatus status() const noexcept { return status_; }
    [[nodiscard]] FailureKind kind() const noexcept { return kind_; }

private:
    ExitStatus status_;
    FailureKind kind_ = FailureKind::other;
};

// The operating system refused `action`; `error_number` is the errno of that moment.
class SystemFailure : public Failure {
public:
    SystemFailure(int error_number, const std::string &action);
    [[nodiscard]] int error_number() const noexcept { return error_number_; }

private:
    int error_number_;
};

// Throws SystemFailure for the current errno.
[[noreturn]] void throw_errno(const std::string &action);

// The result of `look`, or the empty value of its type if it throws because a file does not exist (ENOENT).
template <typename Look>
auto if_there(const Look &look)
{
    try {
        return look();
    } catch (const SystemFailure &failure) {
        if (failure.error_number() != ENOENT) throw;
        return decltype(look())();
    }
}

// A place in a policy file; line and column count from 1, columns in characters; 0 means the whole file.
struct Position {
    std::string file;
    int line = 0;
    int column = 0;
    // So that two values of a policy are the same wherever it says them.
    friend constexpr bool operator==(const Position & /*one*/, const Position & /*other*/) noexcept { return true; }
};

// "file:line:column", or only "file" if there is no line.
std::string to_string(const Position &position);

// One thing that is wrong with a policy. `key` is the dotted path, e.g. "users.alice.roots".
struct Diagnostic {
    Position where;
    std::string key, problem, remedy;
};

// "file:line:column: key: problem; remedy"
std::string to_string(const Diagnostic &diagnostic);

// The policy is invalid; what() lists every diagnostic, one a line.
class PolicyError : public Failure {
public:
    explicit PolicyError(std::vector<Diagnostic> diagnostics, FailureKind kind = FailureKind::invalid_policy);
    [[nodiscard]] const std::vector<Diagnostic> &diagnostics() const noexcept { return diagnostics_; }

private:
    std::vector<Diagnostic> diagnostics_;
};

// Collects the mistakes of a policy, so that an administrator sees all of them at once.

constexpr std::size_t most_diagnostics = 100; // a megabyte of nonsense must not become a gigabyte of messages

class Problems {
public:
    void add(Position where, std::string key, std::string problem, std::string remedy);
    [[nodiscard]] bool empty() const noexcept { return diagnostics_.empty(); }
    // True if something was reported for exactly this key.
    [[nodiscard]] bool has(std::string_view key) const;
    // The same for this key or anything below it.
    [[nodiscard]] bool has_within(std::string_view key) const;
    void add_all(const std::vector<Diagnostic> &diagnostics);
    [[nodiscard]] const std::vector<Diagnostic> &all() const noexcept { return diagnostics_; }
    // Throws PolicyError if anything was added.
    void throw_if_any() const
    {
        if (!diagnostics_.empty()) throw PolicyError(diagnostics_);
    }

private:
    std::vector<Diagnostic> diagnostics_;
    bool full_ = false;
};

} // namespace pi_agent
