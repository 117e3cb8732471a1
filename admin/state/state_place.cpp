// The note of where the state is, and whether that is where the policy wants it.
#include "admin/state/state_move.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_paths.hpp"
#include "runner/root/session/state_directory.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

constexpr std::size_t place_note_limit = std::size_t{64} << 10U;
constexpr mode_t place_note_mode = 0600;
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

} // namespace

StatePlace read_state_place(const AsRoot & /*root*/)
{
    const std::string path = path_of_applied(state_note);
    const auto text = if_there([&] { return read_trusted_file(path, place_note_limit, "note of where the agents' homes are"); });
    if (text.empty()) return {};
    try {
        const auto json = nlohmann::json::parse(text);
        StatePlace known{json.at("place").get<std::string>(), json.value("next", ""), json.value("former", "")};
        const bool is_good =
            is_place(known.place) && (known.next.empty() || is_place(known.next)) && (known.former.empty() || is_place(known.former));
        if (is_good) return known;
    } catch (const nlohmann::json::exception &) { // NOLINT(bugprone-empty-catch): told below
    }
    throw Failure(ExitStatus::configuration,
                  path + " is damaged: write {\"place\": \"…\"} there, with the directory where the agents' homes are");
}

void write_state_place(const AsRoot & /*root*/, const StatePlace &place)
{
    const auto directory = open_applied_directory();
    nlohmann::ordered_json json = {{"place", place.place}};
    if (!place.next.empty()) json["next"] = place.next;
    if (!place.former.empty()) json["former"] = place.former;
    replace_root_file(directory, state_note, json.dump(1) + "\n", place_note_mode, path_of_applied(state_note));
}

bool holds_homes(const AsRoot & /*root*/, const std::string &state_dir)
{
    const auto users = if_there([&] { return open_trusted(state_dir + "/users", O_RDONLY | O_DIRECTORY, "state directory"); });
    return users && !names_in(users).empty();
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

} // namespace pi_agent
