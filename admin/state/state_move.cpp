// Where the state is, and how it moves: copied, compared, switched by one rename, and only then removed. And whose an empty home becomes.
#include "admin/state/state.hpp"

#include "admin/sessions/sessions.hpp"
#include "admin/text/terminal.hpp"

#include <cstdio>

namespace pi_agent {

// The note of where the state is, and whether that is where the policy wants it.

namespace {

constexpr const char *state_dir_key = "agent.state_dir";

bool is_place(const std::string &path)
{
    return !path.empty() && !problem_of_state_dir(path);
}

// What everybody can see of it. Links would lead the comparison with roots astray, which is by paths.
void check_way(const std::string &path, const Position &where, Problems &problems)
{
    const auto report = [&](const std::string &problem, const std::string &remedy) { problems.add(where, state_dir_key, problem, remedy); };
    const auto check = [&](const std::string &part, const char *what) {
        const auto real = resolve_trusted(part, what);
        if (real.canonical != part) report(quote(part) + " is a symlink, or lies behind one", "write " + real.canonical);
        if (!real.is_directory) report(quote(part) + " is not a directory", "move it away, or name another directory");
    };
    try {
        check(parent_of(path), "parent of the state directory");
        const auto there = if_there([&] { return open_trusted(path, O_PATH, "state directory"); });
        if (!there) return;
        check(path, "state directory");
        require_own_file_system(there, path, state_dir_key);
    } catch (const SystemFailure &failure) {
        if (failure.error_number() == ENOENT)
            report("the directory " + parent_of(path) + " does not exist", "create it, as root's and writable for root alone");
        else if (failure.error_number() != EACCES)
            report(failure.what(), "");
    } catch (const Failure &failure) {
        report(failure.what(), "");
    }
}

void write_state_place(const AsRoot & /*root*/, const StatePlace &place)
{
    nlohmann::json json = {{"place", place.place}};
    if (!place.next.empty()) json["next"] = place.next;
    if (!place.former.empty()) json["former"] = place.former;
    write_note(state_note, json.dump(1) + "\n");
}

// Whether users' homes are there.
bool holds_homes(const AsRoot & /*root*/, const std::string &state_dir)
{
    const auto users = if_there([&] { return open_trusted(state_dir + "/users", O_RDONLY | O_DIRECTORY, "state directory"); });
    return users && !names_in(users).empty();
}

// --- Copies, compares, switches by one rename, and only then removes. Killed at any moment, the note says how the next call goes on.

constexpr const char *users_name = "users";
constexpr const char *copy_name = "users.moving";    // only root may enter it
constexpr const char *former_name = "users.leaving"; // where no start looks
constexpr const char *end_them_first = "end them first: sudo pi-agentctl stop --all";

UniqueFd open_place(const std::string &path)
{
    return open_trusted(path, O_RDONLY | O_DIRECTORY, "state directory");
}

// What is mounted there is somebody else's: neither copied nor removed.
void require_no_mounts_in(const std::string &path)
{
    const auto mounted = topmost_mounts_below(list_mounts(), path);
    if (mounted.empty() || !defence_is_on("move-one-file-system")) return;
    throw Failure(ExitStatus::configuration,
                  escape_for_display(path + "/" + mounted.front()) +
                      " is a file system of its own; unmount it first, and mount it at its new place afterwards");
}

// Names and directories are looked up from descriptors of root's, so that no link in the trees leads out of them.
void remove_parts(const std::string &place, std::initializer_list<const char *> names)
{
    const auto top = if_there([&] { return open_place(place); });
    if (!top) return;
    for (const char *name : names) {
        require_no_mounts_in(place + "/" + name);
        remove_beneath(top, name);
    }
}

void bring_back(const std::string &place)
{
    const auto top = if_there([&] { return open_place(place); });
    if (!top) return;
    if (::renameat(top.get(), former_name, top.get(), users_name) != 0 && errno != ENOENT)
        throw_errno("renaming " + place + "/" + former_name);
}

// What is left of the place is somebody else's: a mount point, what apply keeps, or files that pi-agent did not make.
void remove_former(const std::string &place)
{
    remove_parts(place, {users_name, former_name, scratch_parent});
    if (place == default_state_dir) return;
    const auto parent = if_there([&] { return open_place(parent_of(place)); });
    if (!parent) return;
    const bool is_kept = ::unlinkat(parent.get(), place.substr(place.rfind('/') + 1).c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT &&
                         errno != EBUSY && errno != ENOTEMPTY && errno != EEXIST;
    if (is_kept) throw_errno("removing " + place);
}

// Goes on where an earlier call was interrupted, or takes it back.
StatePlace resume_move(const AsRoot &root, StatePlace known, std::ostream &out)
{
    if (!known.next.empty()) {
        if (if_there([&] { return open_place(known.next + "/" + users_name); }).is_open()) {
            known = {known.next, "", known.place};
        } else {
            bring_back(known.place);
            remove_parts(known.next, {copy_name});
            out << "removed what an interrupted move had copied to " << known.next << '\n';
            known.next.clear();
        }
        write_state_place(root, known);
    }
    if (!known.former.empty()) {
        remove_former(known.former);
        out << "removed what an interrupted move had left in " << known.former << '\n';
        known.former.clear();
        write_state_place(root, known);
    }
    return known;
}

void copy_homes(const AsRoot &root, const std::string &from, FdRef top, const std::string &to)
{
    const std::string path = to + "/" + copy_name;
    require_no_mounts_in(from + "/" + users_name);
    const auto users = open_place(from + "/" + users_name);
    remove_beneath(top, copy_name);
    if (::mkdirat(top.get(), copy_name, 0700) != 0) throw_errno("creating " + path);
    const auto copy = open_or_throw("opening " + path, top, copy_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    fault_point("state-copying");
    copy_tree(root, users, copy, from + "/" + users_name);
    if (::syncfs(copy.get()) != 0) throw_errno("writing " + path + " to disk");
    fault_point("state-comparing");
    if (defence_is_on("move-compares")) require_same_tree(users, copy, from + "/" + users_name);
    if (::fchown(copy.get(), 0, 0) != 0 || ::fchmod(copy.get(), 0711) != 0 || ::fsync(copy.get()) != 0)
        throw_errno("setting the mode of " + path);
    fault_point("state-copied");
}

void move_homes(const AsRoot &root, const std::string &from, const std::string &to, std::ostream &out)
{
    if (are_nested(from, to))
        throw Failure(ExitStatus::configuration, "one of " + from + " and " + to + " is in the other; name another directory");
    require_no_session(root, end_them_first);
    // No start makes `users`, so nobody can start from here on until the rename brings it.
    Changes changes(false, out);
    make_root_directory(root, to, 0711, changes);
    make_root_directory(root, to + "/" + scratch_parent, 0700, changes);
    auto top = open_place(to);
    require_own_file_system(top, to, "agent.state_dir");
    if (::unlinkat(top.get(), users_name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
        if (errno != ENOTEMPTY && errno != EEXIST) throw_errno("removing " + to + "/" + users_name);
        throw Failure(ExitStatus::configuration, to + "/" + users_name + " holds homes already; look at them, and move them away");
    }
    mark_host_changed(root); // a start that is under way either sees this, or is a session here
    require_no_session(root, "it was started meanwhile; " + std::string(end_them_first));
    write_state_place(root, {from, to, ""});
    out << "copying the agents' homes from " << from << " to " << to << '\n' << std::flush;
    try {
        copy_homes(root, from, top, to);
        // Before the homes are at the new place: a policy that names the former one again, while that is not removed yet, lets nobody work
        // in what goes. A mount point cannot be renamed, and stays.
        const auto former = open_place(from);
        if (::renameat(former.get(), users_name, former.get(), former_name) != 0 && errno != EBUSY)
            throw_errno("renaming " + from + "/" + users_name);
        if (::fsync(former.get()) != 0) throw_errno("writing " + from + " to disk");
        fault_point("state-aside");
        if (::renameat2(top.get(), copy_name, top.get(), users_name, RENAME_NOREPLACE) != 0)
            throw_errno("renaming " + to + "/" + copy_name);
    } catch (const Failure &failure) {
        bring_back(from);
        remove_parts(to, {copy_name});
        write_state_place(root, {from});
        throw Failure(failure, std::string("nothing is moved: ") + failure.what());
    }
    if (::fsync(top.get()) != 0) throw_errno("writing " + to + " to disk");
    fault_point("state-switched");
    write_state_place(root, {to, "", from});
    fault_point("state-leaving");
    remove_former(from);
    write_state_place(root, {to});
}

} // namespace

StatePlace read_state_place(const AsRoot & /*root*/)
{
    constexpr const char *remedy = ": write {\"place\": \"…\"} there, with the directory where the agents' homes are";
    StatePlace known;
    const auto text = read_note(state_note);
    if (!text || text->empty()) return known;
    parse_note(state_note, *text, remedy, NoteVersion::none, [&](const nlohmann::json &json) {
        known = {json.at("place").get<std::string>(), json.value("next", ""), json.value("former", "")};
    });
    if (is_place(known.place) && (known.next.empty() || is_place(known.next)) && (known.former.empty() || is_place(known.former)))
        return known;
    throw Failure(ExitStatus::configuration, path_of_applied(state_note) + " is damaged" + remedy);
}

void check_state_place(const Policy &policy, const AsRoot *root, Problems &problems)
{
    const auto &wanted = policy.agent.state_dir;
    const auto &where = policy.agent.state_dir_where;
    if (wanted != default_state_dir) check_way(wanted, where, problems); // that one the package brings
    if (root == nullptr || problems.has(state_dir_key)) return;
    try {
        const auto known = read_state_place(*root);
        if (!known.is_settled())
            problems.add(where, state_dir_key, "a move of the agents' homes was interrupted", "finish it: sudo pi-agentctl state move");
        else if (known.place != wanted && holds_homes(*root, known.place))
            problems.add(where, state_dir_key, "the agents' homes are in " + known.place,
                         "move them to " + wanted + ": sudo pi-agentctl state move");
    } catch (const Failure &failure) {
        problems.add(where, state_dir_key, failure.what(), "");
    }
}

void settle_state_place(const AsRoot &root, const Policy &policy, Changes &changes)
{
    const auto known = read_state_place(root);
    const auto &wanted = policy.agent.state_dir;
    if (known.place == wanted || !known.is_settled()) return; // a move in between is told by check
    changes.make("note that the agents' homes are in " + wanted, [&] {
        if (holds_homes(root, known.place))
            throw Failure(ExitStatus::configuration,
                          "the agents' homes are in " + known.place + "; move them: sudo pi-agentctl state move");
        write_state_place(root, {wanted});
    });
}

void run_state_move(bool yes, std::ostream &out)
{
    const auto root = claim_root("state move", "moves files of agents, so only root can run it");
    const auto policy = load_policy(policy_path);
    const auto &wanted = policy.agent.state_dir;
    const auto before = read_state_place(root);
    if (before.is_settled() && before.place == wanted) throw NothingToDo("the agents' homes are in " + wanted + " already");
    if (before.is_settled() && !holds_homes(root, before.place))
        throw NothingToDo("no homes are in " + before.place + ", so nothing has to move; next: sudo pi-agentctl apply");
    require_consent(before.is_settled() ? "Move the agents' homes from " + before.place + " to " + wanted + "?"
                                        : "Finish the move of the agents' homes that was interrupted, or take it back?",
                    yes);
    const auto lock = take_apply_lock(root); // not during the question: an emergency stop would have to wait
    if (read_unfinished(root))               // which may go back to the note of before this move
        throw Failure(ExitStatus::configuration, "an earlier 'pi-agentctl apply' has not finished; run it again first");
    if (load_policy(policy_path).agent.state_dir != wanted)
        throw Failure(FailureKind::changed_meanwhile, "the policy changed meanwhile; run the command again");
    if (auto known = resume_move(root, read_state_place(root), out); known.place != wanted) {
        Problems problems;
        check_state_place(policy, nullptr, problems); // the way to it
        problems.throw_if_any();
        move_homes(root, known.place, wanted, out);
    }
    out << "the agents' homes are in " << wanted << "; next: sudo pi-agentctl apply\n";
}

void hand_over_empty_homes(const AsRoot &root, const Policy &policy, Changes &changes)
{
    const auto &state_dir = policy.agent.state_dir;
    for (const auto &state : find_states(root, state_dir, {})) {
        if (!names_in(state.home).empty() || count_live_sessions(root, state.user) > 0) continue;
        const auto name = agent_of_user(policy, state.user);
        const auto agent = name ? find_account(*name) : std::nullopt;
        if (!agent || agent->uid == state.agent.uid) continue;
        changes.make("give the empty home of the agent of " + escape_for_display(state.user) + " to " + agent->name, [&] {
            const auto directory = open_state_directory(root, state_dir, state.name, state.agent, [] {});
            const std::array<FdRef, 2> parts = {FdRef(directory.home), FdRef(directory.staging)};
            // A process of the former account may have them open: both are root's first, without what an access list grants, and then
            // nothing new comes in. Both go to the same account, or neither: a start refuses a state of two owners.
            for (const auto &part : parts)
                if (fchown(part.get(), 0, 0) != 0 || fchmod(part.get(), 0700) != 0 ||
                    (fremovexattr(part.get(), "system.posix_acl_default") != 0 && errno != ENODATA && errno != EOPNOTSUPP))
                    throw_errno("taking the empty home of " + state.path);
            const bool is_empty = std::ranges::all_of(parts, [](FdRef part) { return names_in(part).empty(); });
            const Account &owner = is_empty ? *agent : state.agent;
            for (const auto &part : parts)
                if (fchown(part.get(), owner.uid.value(), owner.gid.value()) != 0)
                    throw_errno("giving the empty home of " + state.path + " away");
            if (!is_empty) throw Failure(FailureKind::changed_meanwhile, state.path + " is not empty any more; run this again");
        });
    }
}

} // namespace pi_agent
