// Lists sessions and ends them, also by a question to the runner; keeps new ones from starting; becomes `pi` for a shell.
#include "admin/sessions/sessions.hpp"

#include "admin/programs/program.hpp"
#include "admin/text/terminal.hpp"
#include "common/ask/runner_process.hpp"
#include "common/decide/explained.hpp"
#include "runner/root/own/questions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <thread>

namespace pi_agent {

// Asks the runner about the caller's own sessions.

Account require_own(const std::string &command, const std::optional<std::string> &user, const std::string &why)
{
    const bool is_shown = user && is_made_of(*user, "._-"); // else nobody should paste it
    const std::string whole = command + (user ? " --user " + (is_shown ? *user : std::string("NAME")) : "");
    const auto refuse = [&](const std::string &what) {
        throw Failure(FailureKind::root_only, command + " " + what + for_administrator(whole));
    };
    require_sudo_can_work();
    const std::optional<Account> caller = find_account(Uid(::getuid()));
    if (!caller) refuse("finds no user with your number on this host, so only root can run it");
    if (user && *user != caller->name)
        refuse(why + ", so only root can run it with --user " + escape_for_display(*user) + " (without --user it is about your own)");
    // A polite look: what counts is root's own.
    const Policy policy = load_policy_to_start(policy_path, caller->name);
    if (std::holds_alternative<NotAuthorised>(find_access_rules(policy, *caller, policy_path)))
        refuse(why + ", and the policy gives you no sessions of your own, so only root can run it");
    return *caller;
}

OwnAnswer ask_own(const OwnQuestion &question)
{
    OwnReply reply = decode_reply(ask_runner(encode(question)));
    if (const auto *failure = std::get_if<FailureReport>(&reply)) throw Failure(failure->status, failure->kind, failure->text);
    return std::get<OwnAnswer>(std::move(reply));
}

// Keeps sessions from starting, and waits for the end of those that run: `pi-agentctl drain`. And the administrator's words for users.

namespace {

constexpr std::size_t message_limit = 500; // bytes: it travels as the target of a symlink, and people read it on a terminal
constexpr int look_milliseconds = 200;

std::string count_of(std::size_t sessions)
{
    return sessions == 0 ? "no session runs" : fmt::format("{} {}", sessions, sessions == 1 ? "session runs" : "sessions run");
}

// --- Lists sessions; ends them, and judges each by the policy as it is now; becomes `pi` for a shell: `pi-agentctl sessions`, `stop`,
// `shell`.

constexpr const char *stop_reason = "the administrator ended it (pi-agentctl stop)";

nlohmann::json drain_json(const AsRoot &root)
{
    const auto drain = find_drain(root);
    if (!drain) return nullptr;
    return {{"since", time_or_null(drain->since_usec)}, {"message", text_or_null(escape_for_display(drain->message))}};
}

std::vector<Row> to_short_rows(const std::vector<SessionView> &sessions)
{
    return mapped(sessions, [&](const auto &session) {
        return Row{short_id(session.id),
                   session.user,
                   session.started_usec ? to_age(session.started_usec) : "preparing",
                   session.usage.processes ? std::to_string(*session.usage.processes) : "",
                   to_size(session.usage.memory),
                   to_duration(session.usage.cpu_usec),
                   short_path(place_of(session.directory, session.project), without_escapes(session.user))};
    });
}

// "" while the session may go on.
std::string reason_to_end(const Policy &policy, Uid uid, const FindAccount &find)
{
    if (!policy.wrapper.enable)
        return "the administrator has switched the agent off (" + to_string(policy.wrapper.where) + ", wrapper.enable: false)";
    const std::optional<Account> user = find(uid);
    if (!user) return "uid " + std::to_string(uid.value()) + " is not in the user database any more";
    try {
        if (std::holds_alternative<AccessRules>(find_access_rules(policy, *user, policy_path))) return "";
    } catch (const PolicyError &) { // it contradicts itself about this user: starts are refused until somebody fixes it
        return "";
    }
    return std::string("the policy ") + policy_path + " does not authorise " + escape_for_display(user->name) + " any more";
}

// Root's own look; for others, what the runner tells them of themselves.
std::vector<SessionView> sessions_for_caller(const std::string &command, const std::optional<std::string> &user)
{
    if (::geteuid() == 0) return list_sessions(AsRoot::claim(), user);
    require_own(command, user, "is about the sessions of other users");
    return ask_own({OwnSubject::sessions}).sessions;
}

std::vector<std::string> ids_of(const std::vector<SessionView> &sessions)
{
    return mapped(sessions, [&](const auto &session) { return session.id; });
}

// Both return the sessions that do not end.
std::vector<std::string> end_as_root(const std::vector<SessionView> &sessions, const std::optional<std::string> &message)
{
    const auto orders = mapped(sessions, [&](const auto &session) {
        return EndOrder{session.id, stop_reason + (message ? ": " + *message : "")};
    });
    return end_sessions(AsRoot::claim(), orders);
}

std::vector<std::string> end_own(const std::vector<SessionView> &sessions)
{
    const auto ids = ids_of(sessions);
    std::vector<std::string> left;
    for (std::size_t begin = 0; begin < ids.size(); begin += stop_limit) {
        OwnQuestion question{OwnSubject::stop};
        for (std::size_t index = begin; index < std::min(begin + stop_limit, ids.size()); ++index)
            question.sessions.push_back(ids[index]);
        const auto answer = ask_own(question);
        left.insert(left.end(), answer.left.begin(), answer.left.end());
    }
    return left;
}

} // namespace

void require_harmless_message(const std::string &message)
{
    if (message.empty() || message.size() > message_limit)
        throw Failure(FailureKind::command_line, fmt::format("--message takes a text of 1 to {} bytes", message_limit));
    if (escape_for_display(message) != message && defence_is_on("plain-message"))
        throw Failure(
            FailureKind::command_line,
            "--message takes one line of UTF-8, because terminals show it: without control characters, backslashes and marks that "
            "turn the direction of text");
}

void run_drain(const DrainOrder &order, std::ostream &out)
{
    const auto root = claim_root("drain", "keeps users from starting sessions, so only root can run it");
    if (order.off) {
        if (order.wait || order.message) throw Failure(ExitStatus::usage, "--off excludes --wait and --message");
        out << (end_drain(root) ? "sessions start again\n" : "nothing to do: this host is not drained\n");
        return;
    }
    if (order.message) require_harmless_message(*order.message);
    const auto before = find_drain(root);
    if (!before || order.message) begin_drain(root, order.message.value_or(""));
    const auto running = live_sessions(root).size();
    out << (before ? "this host is drained already" : "no session starts from now on") << ", until 'pi-agentctl drain --off' or a boot; "
        << count_of(running) << '\n'
        << std::flush;
    if (running == 0) return;
    if (!order.wait) {
        out << "'pi-agentctl drain --wait' waits for their end, and 'pi-agentctl stop --all' ends them\n";
        return;
    }
    // Other administrators may end the drain meanwhile, and stop or wait for sessions as well.
    while (!live_sessions(root).empty()) {
        if (!find_drain(root))
            throw Failure(FailureKind::changed_meanwhile,
                          "somebody ended the drain of this host while this command waited, so sessions start "
                          "again; " +
                              count_of(live_sessions(root).size()));
        std::this_thread::sleep_for(std::chrono::milliseconds(look_milliseconds));
    }
    out << "no session runs any more\n";
}

std::string drain_note(const AsRoot &root)
{
    const auto drain = find_drain(root);
    if (!drain) return "";
    return "this host is drained since " + to_local_time(drain->since_usec) + ", so no session starts" +
           (drain->message.empty() ? "" : " (" + escape_for_display(drain->message) + ")");
}

// Not in a namespace without a name: nlohmann-json finds it by its argument.
static void to_json(nlohmann::json &json, const SessionView &session)
{
    json = {{"id", session.id},
            {"state", session.started_usec ? "running" : "preparing"},
            {"user", without_escapes(session.user)},
            {"uid", session.uid},
            {"started", time_or_null(session.started_usec)},
            {"processes", number_or_null(session.usage.processes)},
            {"memory_bytes", number_or_null(session.usage.memory)},
            {"cpu_usec", number_or_null(session.usage.cpu_usec)}};
    for (const auto &[key, member] : {std::pair{"account", &SessionView::account},
                                      {"project", &SessionView::project},
                                      {"directory", &SessionView::directory},
                                      {"method", &SessionView::method},
                                      {"program", &SessionView::program},
                                      {"unit", &SessionView::unit}})
        json[key] = text_or_null(session.*member);
}

std::vector<SessionView> list_sessions(const AsRoot &root, const std::optional<std::string> &user)
{
    const auto account = user ? find_account(*user) : std::nullopt;
    if (user && !account) throw Failure(ExitStatus::usage, "this host has no user " + escape_for_display(*user));
    return look_at_sessions(root, account ? std::optional(account->uid) : std::nullopt);
}

std::string choose_session(const std::vector<std::string> &ids, const std::string &id, const char *listing)
{
    std::vector<std::string> fitting;
    for (const auto &known : ids)
        if (!id.empty() && known.compare(0, id.size(), id) == 0) fitting.push_back(known);
    if (fitting.size() == 1) return fitting.front();
    const std::string shown = escape_for_display(id);
    if (id.empty()) throw Failure(ExitStatus::usage, std::string("name a session by its first digits; '") + listing + "' lists them");
    if (fitting.empty()) throw NothingToDo("no session begins with " + shown + "; '" + listing + "' lists them");
    throw Failure(ExitStatus::usage,
                  fmt::format("{} sessions begin with {}; write more digits of the one that you mean", fitting.size(), shown));
}

std::vector<EndOrder> sessions_to_end(const Policy &policy, const std::vector<LiveSession> &sessions, const FindAccount &find)
{
    std::vector<EndOrder> orders;
    for (const auto &session : sessions) {
        if (const std::string reason = reason_to_end(policy, session.user, find); !reason.empty()) orders.push_back({session.id, reason});
    }
    return orders;
}

std::vector<std::string> end_unauthorised_sessions(const AsRoot &root, const Policy &policy, Changes &changes)
{
    if (!defence_is_on("end-unauthorised")) return {};
    const auto orders = sessions_to_end(policy, live_sessions(root), [](Uid uid) { return find_account(uid); });
    if (orders.empty()) return {};
    auto left = changes.dry_run() ? std::vector<std::string>() : end_sessions(root, orders); // all at once: each may take seconds
    for (const auto &order : orders)
        if (std::ranges::find(left, order.session) == left.end())
            changes.make("end the session " + order.session + ": " + order.reason, [] {});
    return left;
}

void require_no_session(const AsRoot &root, const std::string &remedy)
{
    const auto count = live_sessions(root).size();
    if (count > 0) throw Failure(ExitStatus::limit, fmt::format("{} {}; {}", count, count == 1 ? "session runs" : "sessions run", remedy));
}

void stop_empty_scopes(const AsRoot &root, Changes &changes, std::ostream &warnings)
{
    if (!has_systemd()) return;
    try {
        SystemdBus systemd(root);
        for (const auto &scope : find_empty_scopes(systemd))
            changes.make("stop " + scope + ", in which a killed start left nobody", [&] { systemd.stop_unit(scope); });
    } catch (const Failure &failure) {
        warnings << "pi-agentctl: warning: what killed starts left stays: " << failure.what() << '\n';
    }
}

std::string where_to_look(const std::vector<LeftSession> &left)
{
    std::string units;
    std::set<std::string> accounts;
    bool is_unknown = false;
    for (const auto &session : left) {
        if (!session.unit.empty())
            units += " " + escape_for_display(session.unit);
        else if (!session.account.empty())
            accounts.insert(escape_for_display(session.account));
        else
            is_unknown = true;
    }
    std::vector<std::string> commands;
    if (!units.empty()) commands.push_back("systemctl status" + units);
    for (const auto &account : accounts)
        commands.push_back("ps -f -u " + account);
    if (is_unknown) commands.emplace_back("pi-agentctl sessions");
    return fmt::format("{}", fmt::join(commands, "; "));
}

void require_ended(const std::vector<std::string> &living, const std::string &problem)
{
    if (living.empty()) return;
    std::vector<LeftSession> left;
    const UniqueFd sessions = open_sessions();
    for (const auto &id : living) {
        left.push_back({id, "", ""});
        const UniqueFd session = try_open_session(sessions, id);
        const auto record = session ? read_open_record(session) : std::nullopt;
        if (record) left.back() = {id, record->subject.unit, record->subject.account};
    }
    throw Failure(ExitStatus::system_failure, problem + "; look at them: " + where_to_look(left));
}

void run_sessions(const std::optional<std::string> &user, bool json, std::ostream &out)
{
    const auto sessions = sessions_for_caller("sessions", user);
    const auto root = ::geteuid() == 0 ? std::optional(AsRoot::claim()) : std::nullopt; // a drain is told to root, and to whoever starts pi
    if (json) {
        nlohmann::json answer = {{"sessions", sessions}};
        if (root) answer["drain"] = drain_json(*root);
        return print_json(answer, out);
    }
    if (const auto note = root ? drain_note(*root) : ""; !note.empty()) out << note << '\n';
    const auto rows = mapped(sessions, [&](const auto &session) {
        return Row{session.id,
                   session.user,
                   session.account,
                   session.started_usec ? to_local_time(*session.started_usec) : "preparing",
                   session.usage.processes ? std::to_string(*session.usage.processes) : "",
                   to_size(session.usage.memory),
                   to_duration(session.usage.cpu_usec),
                   session.method,
                   session.unit,
                   place_of(session.directory, session.project)};
    });
    if (rows.empty())
        out << "no session\n";
    else if (const auto columns = columns_for(out))
        out << to_table({"SESSION", "USER", "AGE", "PROCESSES", "MEMORY", "CPU", "DIRECTORY"}, to_short_rows(sessions), *columns,
                        Cut::beginning);
    else
        out << to_table({"SESSION", "USER", "AGENT", "SINCE", "PROCESSES", "MEMORY", "CPU", "METHOD", "UNIT", "DIRECTORY"}, rows);
}

void run_stop(const StopOrder &order, std::ostream &out)
{
    const bool is_root = ::geteuid() == 0;
    if (!is_root && !order.id && !order.user) claim_root("stop --all", "ends the sessions of all users, so only root can run it");
    if (!is_root && order.message) claim_root("stop --message", "is the administrator's word to users, so only root can run it");
    if (order.message) require_harmless_message(*order.message);
    auto sessions = sessions_for_caller("stop", order.user);
    if (order.id) {
        const auto id = choose_session(ids_of(sessions), *order.id, is_root ? "sudo pi-agentctl sessions" : "pi-agentctl sessions");
        std::erase_if(sessions, [&](const SessionView &session) { return session.id != id; });
    }
    if (sessions.empty()) throw NothingToDo(order.user ? escape_for_display(*order.user) + " has no session" : "no session runs");
    const auto left = is_root ? end_as_root(sessions, order.message) : end_own(sessions);
    for (const auto &session : sessions)
        if (std::ranges::find(left, session.id) == left.end())
            out << "ended the session " << session.id << " of " << session.user
                << (session.project.empty() ? ", which was being prepared" : " in " + session.project) << '\n';
    out.flush();
    if (is_root) return require_ended(left, "sessions do not end");
    if (!left.empty())
        throw Failure(ExitStatus::system_failure,
                      fmt::format("sessions of yours do not end: {}; ask the administrator to look at them: sudo pi-agentctl sessions",
                                  fmt::join(left, ", ")));
}

void become_shell(const std::vector<std::string> &arguments)
{
    if (::geteuid() == 0)
        throw Failure(FailureKind::root_caller, "denied: root cannot run the agent; run it as a user: sudo -u NAME pi-agentctl shell");
    std::vector<std::string> all = {"pi", "--pi-agent-shell"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    ::execv(build::wrapper_path, exec_pointers(all).data());
    throw_errno(std::string("running ") + build::wrapper_path);
}

void become_export(const std::optional<std::string> &session)
{
    // For bash in the session. pi calls a transcript --DIRECTORY--/TIME_ID.jsonl. What an agent wrote reaches a terminal without its
    // controls.
    constexpr const char *script = R"(shopt -s nullglob
cd "${PI_CODING_AGENT_DIR:-$HOME/.pi/agent}/sessions" 2>/dev/null || { echo "pi-agentctl: your agent has no transcripts" >&2; exit 1; }
if [ "$#" -eq 0 ]; then
    for file in */*_*.jsonl; do name=${file##*/}; id=${name##*_}; printf '%q  %q  %q\n' "${id%.jsonl}" "${name%%_*}" "${file%/*}"; done | LC_ALL=C sort -k 2
    exit
fi
files=(*/*_"$1"*.jsonl)
case ${#files[@]} in
0) echo "pi-agentctl: no transcript of your agent has this id; pi-agentctl export lists them" >&2; exit 1 ;;
1) if [ -t 1 ]; then exec cat -v -- "${files[0]}"; else exec cat -- "${files[0]}"; fi ;;
*) echo "pi-agentctl: several transcripts begin with this id; write more of it" >&2; exit 64 ;;
esac
)";
    std::vector<std::string> arguments = {"-c", script, "export"};
    if (session) arguments.push_back(*session);
    become_shell(arguments);
}

} // namespace pi_agent
