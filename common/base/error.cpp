// The table of failures, and the texts of their classes.
#include "common/base/error.hpp"

#include <algorithm>
#include <cstring>

namespace pi_agent {

// The table of failures: failures.toml.

const std::vector<KindFacts> &failure_kinds()
{
    static const std::vector<KindFacts> kinds = {
#include "common/failures.inc"
    };
    return kinds;
}

const KindFacts &facts_of(FailureKind kind, ExitStatus status)
{
    const auto &kinds = failure_kinds();
    const auto with = [&](FailureKind wanted) {
        return std::find_if(kinds.begin(), kinds.end(),
                            [&](const KindFacts &facts) { return facts.kind == wanted && facts.status == status; });
    };
    if (const auto own = with(kind); own != kinds.end()) return *own;
    const auto general = with(FailureKind::other);
    return general != kinds.end() ? *general : facts_of(FailureKind::other, ExitStatus::internal);
}

ExitStatus status_of(FailureKind kind)
{
    const auto &kinds = failure_kinds();
    const auto own = std::find_if(kinds.begin(), kinds.end(), [kind](const KindFacts &facts) { return facts.kind == kind; });
    return kind == FailureKind::other || own == kinds.end() ? ExitStatus::internal : own->status;
}

std::string pointer_to(FailureKind kind, ExitStatus status)
{
    return kind == FailureKind::command_line ? "" : std::string("see: pi-agentctl explain ") + facts_of(kind, status).code;
}

// Texts of the failure classes.

namespace {

// Of everything that the operating system refuses, an administrator can fix this one, wherever it happens.
const char *remedy_of(int error_number)
{
    if (error_number == ENOSPC || error_number == EDQUOT)
        return "; free some space or inodes (df -h, df -i) on that file system, or ask the administrator";
    return error_number == EROFS ? "; ask the administrator why that file system is read-only: a damaged disk is one reason" : "";
}

FailureKind kind_of(int error_number)
{
    return error_number == ENOSPC || error_number == EDQUOT || error_number == EROFS ? FailureKind::disk : FailureKind::other;
}

std::string join_lines(const std::vector<Diagnostic> &diagnostics)
{
    std::string text;
    for (const auto &diagnostic : diagnostics) {
        if (!text.empty()) text += '\n';
        text += to_string(diagnostic);
    }
    return text;
}

} // namespace

SystemFailure::SystemFailure(int error_number, const std::string &action)
    : Failure(ExitStatus::system_failure, kind_of(error_number), action + ": " + std::strerror(error_number) + remedy_of(error_number)),
      error_number_(error_number)
{
}

void throw_errno(const std::string &action)
{
    throw SystemFailure(errno, action);
}

std::string to_string(const Position &position)
{
    return position.line == 0 ? position.file : position.file + ":" + std::to_string(position.line) + ":" + std::to_string(position.column);
}

std::string to_string(const Diagnostic &diagnostic)
{
    std::string text = diagnostic.where.file.empty() ? "" : to_string(diagnostic.where) + ": ";
    if (!diagnostic.key.empty()) text += diagnostic.key + ": ";
    text += diagnostic.problem;
    if (!diagnostic.remedy.empty()) text += "; " + diagnostic.remedy;
    return text;
}

PolicyError::PolicyError(std::vector<Diagnostic> diagnostics, FailureKind kind)
    : Failure(kind, join_lines(diagnostics)), diagnostics_(std::move(diagnostics))
{
}

// The mistakes of a policy, all of them at once.

void Problems::add(Position where, std::string key, std::string problem, std::string remedy)
{
    if (full_) return;
    if (diagnostics_.size() == most_diagnostics) {
        full_ = true;
        diagnostics_.push_back({{where.file}, "", "more problems follow", "correct these first"});
        return;
    }
    diagnostics_.push_back({std::move(where), std::move(key), std::move(problem), std::move(remedy)});
}

bool Problems::has(std::string_view key) const
{
    return std::any_of(diagnostics_.begin(), diagnostics_.end(), [key](const Diagnostic &diagnostic) { return diagnostic.key == key; });
}

bool Problems::has_within(std::string_view key) const
{
    return std::any_of(diagnostics_.begin(), diagnostics_.end(), [key](const Diagnostic &diagnostic) {
        const std::string_view other = diagnostic.key;
        return other.substr(0, key.size()) == key && (other.size() == key.size() || other[key.size()] == '.' || other[key.size()] == '[');
    });
}

void Problems::add_all(const std::vector<Diagnostic> &diagnostics)
{
    for (const auto &diagnostic : diagnostics)
        add(diagnostic.where, diagnostic.key, diagnostic.problem, diagnostic.remedy);
}

} // namespace pi_agent
