// Texts of the failure classes.
#include "common/base/error.hpp"

#include <cstring>

namespace pi_agent {

namespace {

// Of everything that the operating system refuses, an administrator can fix this one, wherever it happens.
const char *remedy_of(int error_number)
{
    if (error_number == ENOSPC || error_number == EDQUOT) return "; free some space on that file system, or ask the administrator";
    if (error_number == EROFS) return "; ask the administrator why that file system is read-only: a damaged disk is one reason";
    return "";
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
    if (position.line == 0) return position.file;
    return position.file + ":" + std::to_string(position.line) + ":" + std::to_string(position.column);
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

} // namespace pi_agent
