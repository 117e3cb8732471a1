// The classes of failure that every program of pi-agent knows, and the exit status of each (sysexits(3)).
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace pi_agent {

enum class ExitStatus : int {
    usage = 64,          // a bad --pi-agent- option
    unavailable = 69,    // the sandbox method cannot work on this host
    internal = 70,       // a bug of ours
    system_failure = 71, // the operating system refused something we need
    limit = 75,          // session limit or lock
    denied = 77,         // the policy, or a rule of the runner, says no
    configuration = 78,  // policy or host configuration is invalid
};

// A failure that ends the program: the text is shown to the user as it is, after "pi: ".
class Failure : public std::runtime_error {
public:
    Failure(ExitStatus status, const std::string &text) : std::runtime_error(text), status_(status) {}
    [[nodiscard]] ExitStatus status() const noexcept { return status_; }

private:
    ExitStatus status_;
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
};

// "file:line:column", or only "file" if there is no line.
std::string to_string(const Position &position);

// One thing that is wrong with a policy. `key` is the dotted path, e.g. "users.alice.roots".
struct Diagnostic {
    Position where;
    std::string key;
    std::string problem;
    std::string remedy;
};

// "file:line:column: key: problem; remedy"
std::string to_string(const Diagnostic &diagnostic);

// The policy is invalid; what() lists every diagnostic, one a line.
class PolicyError : public Failure {
public:
    explicit PolicyError(std::vector<Diagnostic> diagnostics);
    [[nodiscard]] const std::vector<Diagnostic> &diagnostics() const noexcept { return diagnostics_; }

private:
    std::vector<Diagnostic> diagnostics_;
};

} // namespace pi_agent
