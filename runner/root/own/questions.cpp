// Answers users about their own sessions, and looks at sessions and at what is kept.
#include "runner/root/own/questions.hpp"

#include "common/policy/policy_load.hpp"
#include "runner/as_user/project.hpp"
#include "runner/root/confined/session_end.hpp"
#include "runner/root/door/admission.hpp"

#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/vfs.h>

namespace pi_agent {

namespace {

constexpr int look_patience_seconds = 30;
constexpr int reply_patience_seconds = 5;
constexpr const char *stop_reason = "its user ended it (pi-agentctl stop)";

// Nothing in the question says whose sessions it is about.
std::optional<Uid> whose(const Account &caller)
{
    return defence_is_on("own-sessions") ? std::optional(caller.uid) : std::nullopt;
}

// File systems that their agent filled are waited for: so a child looks, which has given up what it does not need, and which is killed when
// its time is over.
OwnAnswer look(const AsRoot &root, const Account &caller, const Policy &policy, OwnSubject about)
{
    Child looking(root, "look at your sessions", [&] {
        confine_root(root);
        // --- confined root from here ---
        OwnAnswer answer;
        if (about == OwnSubject::state)
            answer.states = measure_states(root, policy.agent.state_dir, whose(caller) ? std::optional(caller.name) : std::nullopt);
        else
            answer.sessions = look_at_sessions(root, whose(caller));
        return encode(answer);
    });
    return std::get<OwnAnswer>(decode_reply(looking.receive_long(look_patience_seconds)));
}

OwnAnswer stop(const AsRoot &root, const Account &caller, const OwnQuestion &question)
{
    OwnAnswer answer;
    std::vector<EndOrder> orders;
    for (auto &session : look_at_sessions(root, whose(caller)))
        if (is_asked_for(session.id, question.sessions)) {
            orders.push_back({session.id, stop_reason});
            answer.sessions.push_back(std::move(session));
        }
    if (!orders.empty()) answer.left = end_sessions(root, orders);
    std::erase_if(answer.sessions, [&](const SessionView &session) {
        return std::find(answer.left.begin(), answer.left.end(), session.id) != answer.left.end();
    });
    return answer;
}

// What a question holds until its answer is sent.
struct Held {
    UniqueFd slot; // counts as one question of the caller's
    UniqueFd termination;
    std::optional<OwnGroup> group; // under bwrap
};

// As a start does, and by the same means: what root does for a question touches what others share.
void leave_callers_group(const AsRoot &root, SandboxMethod method, Uid user, Held &held, const std::function<void()> &meanwhile)
{
    const std::string id = make_session_id(); // of no session: it names the group alone
    if (!has_unit(method)) {
        held.group.emplace(root, id, user);
        return meanwhile();
    }
    SystemdBus systemd(root);
    move_into_scope(systemd, id, user, meanwhile);
}

OwnAnswer hear_and_answer(const AsRoot &root, const Account &caller, FdRef wrapper, Held &held)
{
    require_host_namespaces(root);
    held.slot = take_question_slot(root, caller.uid);
    Policy policy = load_policy_to_start(policy_path, caller.name);
    reset_process_state(root);
    held.termination = watch_termination(); // an end that has begun is finished, whatever signal sudo passes on
    leave_callers_group(root, policy.sandbox.method, caller.uid, held, [&] { admit(policy, caller); });
    // --- from here the caller can neither freeze nor kill this process ---
    const auto question = ask(
        root, {"receiver of the question", caller, {wrapper.get()}}, [&](const AsUser & /*user*/) { return receive_question(wrapper); },
        decode_question);
    return question.about == OwnSubject::stop ? stop(root, caller, question) : look(root, caller, policy, question.about);
}

FailureReport refuse(SessionRecord &record, const Failure &failure)
{
    std::string text = failure.what();
    try { // what is not denied is nobody's business but the user's
        if (failure.status() == ExitStatus::denied) record.failed(failure.status(), "asked about sessions: " + text, failure.kind());
    } catch (const Failure &unrecorded) {
        text += std::string("\n") + unrecorded.what();
    }
    return {failure.status(), text, failure.kind()};
}

std::uint64_t now_since_1970()
{
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

SessionView look_at(FdRef session, const LiveSession &live)
{
    SessionView view;
    view.id = live.id;
    view.uid = live.user.value();
    view.user = escape_for_display(name_or_number(live.user));
    const auto record = read_open_record(session);
    if (!record) return view;
    view.account = escape_for_display(record->subject.account);
    view.project = escape_for_display(record->subject.project);
    view.directory = escape_for_display(record->subject.directory);
    view.method = record->subject.method;
    view.unit = record->subject.unit;
    view.program = record->subject.program;
    view.started_usec = now_since_1970() - record->running_usec;
    if (const auto runner = session_runner(session)) view.usage = usage_of_session(live.id, *runner);
    return view;
}

// All of these, and what is in `caches` of each.
HomeSize measure_as_agent(const AsRoot &root, const std::string &what, const Account &agent, const std::vector<FdRef> &directories,
                          const std::vector<std::string> &caches)
{
    const auto keep = mapped(directories, [&](const auto directory) { return directory.get(); });
    Child child(root, "look at " + what + " of " + agent.name, agent, keep, [&](const AsUser &self, FdRef channel) {
        fault_point("measuring");
        HomeSize size;
        for (const auto directory : directories) {
            size.all += measure_tree(self, channel, directory);
            for (const auto &place : caches)
                if (const UniqueFd cache = find_beneath(directory, place, O_RDONLY | O_DIRECTORY))
                    size.caches += measure_tree(self, channel, cache);
        }
        send_answer(channel, encode(size));
    });
    return decode_fields<HomeSize>(child.receive().bytes);
}

UniqueFd try_open_directory(FdRef parent, const std::string &name)
{
    return open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

// Empty if there is no such directory: nothing was applied yet.
UniqueFd open_part(const std::string &path)
{
    return if_there([&] { return open_trusted(path, O_RDONLY | O_DIRECTORY, "state directory"); });
}

// Empty if root owns it: a home, or a temporary directory, that has only just been begun.
std::optional<Account> owner_of(FdRef directory, const std::string &path)
{
    const struct stat facts = examine(directory, "examining " + path);
    if (facts.st_uid == 0) return std::nullopt;
    const Uid uid(facts.st_uid);
    return Account{name_or_number(uid), uid, Gid(facts.st_gid), "/", {facts.st_gid}};
}

// The directories of one session's temporary files that its agent owns. Root owns those of overlays, which hold nothing.
std::uint64_t measure_on_disk(const AsRoot &root, FdRef top, const std::string &path)
{
    std::vector<UniqueFd> inner;
    std::vector<FdRef> directories;
    std::optional<Account> owner;
    for (const auto &name : names_in(top)) {
        if (is_cache_work(name)) continue;
        inner.push_back(try_open_directory(top, name));
        if (!inner.back()) continue;
        directories.push_back(inner.back());
        if (!owner) owner = owner_of(inner.back(), path);
    }
    return owner ? measure_as_agent(root, "temporary files", *owner, directories, {}).all : 0;
}

// In memory: what the session's own file system says.
std::optional<std::uint64_t> measure_in_memory(FdRef session)
{
    const auto scratch = try_open_directory(session, "scratch");
    struct statfs facts {};
    struct stat own {};
    struct stat above {};
    if (!scratch || fstatfs(scratch.get(), &facts) != 0 || fstat(scratch.get(), &own) != 0 || fstat(session.get(), &above) != 0) return {};
    if (facts.f_type != TMPFS_MAGIC || own.st_dev == above.st_dev) return {};
    return (facts.f_blocks - facts.f_bfree) * static_cast<std::uint64_t>(facts.f_bsize);
}

// By user; under "" what ended sessions left. Of `user` alone if one is given.
std::map<std::string, std::uint64_t> measure_scratch(const AsRoot &root, const std::string &state_dir, const std::optional<Account> &user)
{
    std::map<std::string, std::uint64_t> sizes;
    std::map<std::string, std::string> user_of;
    for (const auto &live : live_sessions(root)) {
        if (user && live.user != user->uid) continue;
        user_of[live.id] = name_or_number(live.user);
        const auto session = try_open_session(open_sessions(), live.id);
        if (session) sizes[user_of[live.id]] += measure_in_memory(session).value_or(0);
    }
    const std::string path = state_dir + "/" + scratch_parent;
    const auto parent = open_part(path);
    for (const auto &id : parent ? names_in(parent) : std::vector<std::string>()) {
        const auto found = user_of.find(id);
        if (user && found == user_of.end()) continue;
        const auto top = try_open_directory(parent, id);
        if (!top) continue; // it has just ended
        sizes[found == user_of.end() ? "" : found->second] += measure_on_disk(root, top, path + "/" + id);
    }
    return sizes;
}

} // namespace

// --- Hears a question as its user, and answers it within bounds of number, size and time, with few rights.

bool is_asked_for(const std::string &id, const std::vector<std::string> &asked)
{
    return std::any_of(asked.begin(), asked.end(),
                       [&](const std::string &word) { return defence_is_on("whole-id") ? id == word : id.starts_with(word); });
}

bool holds_question(FdRef wrapper)
{
    std::string beginning(sizeof(OwnQuestion::type), '\0');
    iovec part{beginning.data(), beginning.size()};
    ssize_t length = -1;
    do {
        msghdr message{}; // without room for descriptors: those of a request stay with it
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        length = recvmsg(wrapper.get(), &message, MSG_PEEK | MSG_DONTWAIT);
    } while (length < 0 && (errno == EINTR || errno == ECONNRESET)); // the kernel reports the second once
    return length == static_cast<ssize_t>(beginning.size()) && beginning == Encoder().number(OwnQuestion::type).bytes();
}

int answer_question(const AsRoot &root, const Account &caller, FdRef wrapper, SessionRecord &record)
{
    Held held;
    OwnReply reply;
    try {
        reply = hear_and_answer(root, caller, wrapper, held);
    } catch (const Failure &failure) {
        reply = refuse(record, failure);
    } catch (const std::exception &failure) {
        reply = FailureReport{ExitStatus::internal, std::string("internal error: ") + failure.what(), FailureKind::other};
    }
    try {
        send_record(wrapper, encode(reply), {}, in_seconds(reply_patience_seconds));
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): best_effort: who asked is gone, or does not read
    }
    const auto *failed = std::get_if<FailureReport>(&reply);
    return failed != nullptr ? static_cast<int>(failed->status) : 0;
}

// --- Looks at the sessions that live, and adds up what is kept for each user.

std::vector<SessionView> look_at_sessions(const AsRoot &root, const std::optional<Uid> &user)
{
    const auto living = live_sessions(root);
    std::vector<SessionView> views;
    if (living.empty()) return views;
    const UniqueFd sessions = open_sessions();
    for (const auto &live : living) {
        if (user && live.user != *user) continue;
        if (const UniqueFd session = try_open_session(sessions, live.id)) views.push_back(look_at(session, live)); // else it has just ended
    }
    std::sort(views.begin(), views.end(), [](const SessionView &one, const SessionView &other) {
        if (one.started_usec && other.started_usec) return *one.started_usec < *other.started_usec;
        return one.started_usec.has_value() && !other.started_usec.has_value();
    });
    return views;
}

// Finds each user's state by descriptor, and adds up what is in it.

const std::vector<std::string> cache_places = {".cache", ".npm", ".local/share/cargo/registry", ".local/share/go/pkg/mod",
                                               ".local/share/pnpm/store"};

std::vector<UserState> find_states(const AsRoot & /*root*/, const std::string &state_dir, const std::optional<std::string> &user)
{
    if (!user) { // a descriptor for each user's home: more than the usual 1,024 where there are as many users
        rlimit limit{};
        if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) throw_errno("reading the limit of open files");
        limit.rlim_cur = limit.rlim_max;
        if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) throw_errno("raising the limit of open files");
    }
    std::vector<UserState> states;
    const std::string users_path = state_dir + "/users";
    const auto users = open_part(users_path);
    if (!users) return states;
    auto names = names_in(users);
    std::sort(names.begin(), names.end());
    const auto wanted = user ? std::optional(short_name_of(*user)) : std::nullopt;
    for (const auto &name : names) {
        if (wanted && name != *wanted) continue;
        const auto own = try_open_directory(users, name);
        const std::string path = users_path + "/" + escape_for_display(name);
        auto home = own ? try_open_directory(own, "home") : UniqueFd();
        if (!home && (errno == ENOENT || errno == ENOTDIR)) continue; // not a user's state, or only just begun
        if (!home) throw_errno("opening " + path + "/home");
        auto agent = owner_of(home, path + "/home");
        if (agent) states.push_back({user_of_short_name(name), name, path, std::move(*agent), std::move(home)});
    }
    return states;
}

std::vector<SizeOfState> measure_states(const AsRoot &root, const std::string &state_dir, const std::optional<std::string> &user)
{
    const auto account = user ? find_account(*user) : std::nullopt;
    auto scratch = measure_scratch(root, state_dir, account);
    std::vector<SizeOfState> sizes;
    for (const auto &state : find_states(root, state_dir, user)) {
        SizeOfState size{state.user, state.agent.name, state.path, count_live_sessions(root, state.user), {}, scratch[state.user], {}};
        scratch.erase(state.user);
        try {
            size.home.push_back(measure_home(root, state.agent, state.home));
        } catch (const Failure &failure) { // one home keeps no other from being shown
            size.problem = failure.what();
        }
        sizes.push_back(std::move(size));
    }
    if (!user && scratch[""] > 0)
        sizes.push_back({"", "", state_dir + "/" + scratch_parent, 0, {}, scratch[""], "left by sessions that are over"});
    return sizes;
}

std::size_t count_live_sessions(const AsRoot &root, const std::string &user)
{
    const auto living = live_sessions(root);
    const auto account = find_account(user);
    const auto may_be_theirs = [&](const LiveSession &session) {
        if (account) return session.user == account->uid;
        return defence_is_on("sessions-of-unknown") && !find_account(session.user);
    };
    return static_cast<std::size_t>(std::count_if(living.begin(), living.end(), may_be_theirs));
}

HomeSize measure_home(const AsRoot &root, const Account &agent, FdRef home)
{
    return measure_as_agent(root, "the home", agent, {home}, cache_places);
}

} // namespace pi_agent
