// Looks at the sessions that live, and adds up what is kept for each user.
#include "runner/root/own/session_views.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "runner/as_agent/home.hpp"
#include "runner/root/errand/errand.hpp"
#include "runner/root/method/own_scope.hpp"
#include "runner/root/session/record.hpp"
#include "runner/root/session/scratch.hpp"

#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/vfs.h>

namespace pi_agent {

namespace {

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

} // namespace

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

namespace {

// All of these, and what is in `caches` of each.
HomeSize measure_as_agent(const AsRoot &root, const std::string &what, const Account &agent, const std::vector<FdRef> &directories,
                          const std::vector<std::string> &caches)
{
    std::vector<int> keep;
    for (const auto directory : directories)
        keep.push_back(directory.get());
    Child child(root, "look at " + what + " of " + agent.name, agent, keep, [&](const AsUser &self, FdRef channel) {
        fault_point("measuring");
        HomeSize size;
        for (const auto directory : directories) {
            size.all += measure_tree(self, channel, directory);
            for (const auto &place : caches)
                if (const UniqueFd cache = find_beneath(directory, place, O_RDONLY | O_DIRECTORY))
                    size.caches += measure_tree(self, channel, cache);
        }
        send_answer(channel, Encoder().number(size.all).number(size.caches).bytes());
    });
    const Packet packet = child.receive();
    Decoder decoder(packet.bytes);
    const HomeSize size{decoder.number(), decoder.number()};
    decoder.end();
    return size;
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
