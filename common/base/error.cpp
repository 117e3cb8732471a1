// The table of failures, and the texts of their classes.
#include "common/base/error.hpp"

#include <algorithm>
#include <cstring>

namespace pi_agent {

// The table of failures: kind, exit status, code, title.

const std::vector<KindFacts> &failure_kinds()
{
    using Kind = FailureKind;
    using Status = ExitStatus;
    static const std::vector<KindFacts> kinds = {
        {Kind::other, Status::usage, "E64", "A wrong command line"},
        {Kind::command_line, Status::usage, "E64-option", "An unknown or incomplete option"},
        {Kind::self_update, Status::usage, "E64-update", "The agent cannot update itself"},
        {Kind::named_file, Status::usage, "E64-file", "A file of the arguments is not handed to the agent"},
        {Kind::other, Status::unavailable, "E69", "The sandbox cannot work on this host"},
        {Kind::sandbox_method, Status::unavailable, "E69-method", "The sandbox method does not work here"},
        {Kind::limits_not_enforced, Status::unavailable, "E69-limits", "This host cannot enforce a limit of the policy"},
        {Kind::network_not_enforced, Status::unavailable, "E69-network", "This host cannot enforce the policy's network"},
        {Kind::file_system, Status::unavailable, "E69-mount", "A file system cannot be shown to the agent"},
        {Kind::inside_session, Status::unavailable, "E69-inside", "pi cannot start inside a session"},
        {Kind::no_systemd, Status::unavailable, "E69-systemd", "systemd does not answer"},
        {Kind::sudo_missing, Status::unavailable, "E69-sudo", "sudo cannot be started"},
        {Kind::no_node, Status::unavailable, "E69-node", "The cluster gives the session no node"},
        {Kind::doctor_found, Status::unavailable, "E69-doctor", "The host has faults, or the sandbox does not hold"},
        {Kind::other, Status::internal, "E70", "A bug in pi-agent"},
        {Kind::other, Status::system_failure, "E71", "The operating system refused something"},
        {Kind::disk, Status::system_failure, "E71-disk", "A disk is full or read-only"},
        {Kind::record, Status::system_failure, "E71-record", "The session cannot be recorded"},
        {Kind::runner_ended, Status::system_failure, "E71-runner", "The runner ended without an answer"},
        {Kind::no_progress, Status::system_failure, "E71-slow", "A step made no progress"},
        {Kind::other, Status::limit, "E75", "Try again later"},
        {Kind::session_limit, Status::limit, "E75-sessions", "Too many sessions"},
        {Kind::drained, Status::limit, "E75-drain", "No session starts while the administrator works on the host"},
        {Kind::changed_meanwhile, Status::limit, "E75-changed", "Something changed while the session was being prepared"},
        {Kind::busy, Status::limit, "E75-busy", "Another session or command is in the way"},
        {Kind::too_large, Status::limit, "E75-size", "The project is too large for what the policy protects"},
        {Kind::other, Status::denied, "E77", "Denied"},
        {Kind::not_authorised, Status::denied, "E77-user", "The policy does not authorise this user"},
        {Kind::outside_roots, Status::denied, "E77-root", "The directory is outside your project roots"},
        {Kind::directory, Status::denied, "E77-directory", "The working directory cannot be used"},
        {Kind::masked, Status::denied, "E77-mask", "The directory is one that the policy masks or protects as a whole"},
        {Kind::switched_off, Status::denied, "E77-off", "The administrator has switched the agent off"},
        {Kind::root_caller, Status::denied, "E77-uid0", "root cannot run the agent"},
        {Kind::sudo_refused, Status::denied, "E77-sudo", "sudo did not start the runner"},
        {Kind::namespaces, Status::denied, "E77-namespace", "pi was called from a container or another namespace"},
        {Kind::caller, Status::denied, "E77-caller", "The calling account cannot run the agent"},
        {Kind::by_hand, Status::denied, "E77-by-hand", "An internal program was started by hand"},
        {Kind::streams, Status::denied, "E77-streams", "An input or output cannot be handed to the agent"},
        {Kind::tmpdir, Status::denied, "E77-tmpdir", "The temporary directory cannot be used"},
        {Kind::start_asks, Status::denied, "E77-start", "A start asks for more than the policy gives"},
        {Kind::outside_job, Status::denied, "E77-job", "Sessions run in jobs of the cluster alone"},
        {Kind::root_only, Status::denied, "E77-admin", "Only root can run this command"},
        {Kind::sessions_outside, Status::denied, "E77-sessions", "The policy keeps your sessions outside"},
        {Kind::other, Status::configuration, "E78", "The policy or the configuration is invalid"},
        {Kind::no_policy, Status::configuration, "E78-no-policy", "There is no policy"},
        {Kind::invalid_policy, Status::configuration, "E78-policy", "The policy has errors"},
        {Kind::user_root, Status::configuration, "E78-root", "A project root cannot be used"},
        {Kind::user_configuration, Status::configuration, "E78-config", "A file of your configuration cannot be used"},
        {Kind::agent_program, Status::configuration, "E78-agent", "The agent cannot be run"},
        {Kind::agent_account, Status::configuration, "E78-account", "The agent's account cannot be used"},
        {Kind::untrusted, Status::configuration, "E78-trust", "A file that root uses can be changed by others"},
        {Kind::protection, Status::configuration, "E78-protect", "A path of the project cannot be protected"},
        {Kind::named_place, Status::configuration, "E78-path", "A file or directory that the policy names cannot be used"},
        {Kind::agent_home, Status::configuration, "E78-home", "The agent's home cannot be used"},
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
    const auto own = with(kind);
    if (own != kinds.end()) return *own;
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
    if (kind == FailureKind::command_line) return "";
    return std::string("see: pi-agentctl explain ") + facts_of(kind, status).code;
}

// Texts of the failure classes.

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
