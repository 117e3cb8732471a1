// Shows what is kept for each user; for others than root, for themselves alone.
#include "admin/state/state.hpp"

#include "admin/sessions/own_questions.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/text.hpp"
#include "common/policy/policy_load.hpp"

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace pi_agent {

namespace {

Row to_row(const SizeOfState &size)
{
    const bool is_known = !size.home.empty();
    return {size.user,
            size.account,
            std::to_string(size.sessions),
            is_known ? to_size(size.home.front().all) : "",
            is_known ? to_size(size.home.front().caches) : "",
            to_size(size.scratch),
            size.path + (size.problem.empty() ? "" : " (" + size.problem + ")")};
}

std::vector<SizeOfState> sizes_for_caller(const std::optional<std::string> &user)
{
    if (::geteuid() == 0) return measure_states(AsRoot::claim(), load_policy(policy_path).agent.state_dir, user);
    require_own("state", user, "looks into the homes of other users' agents");
    return ask_own({OwnSubject::state}).states;
}

} // namespace

// Not in a namespace without a name: nlohmann-json finds it by its argument.
static void to_json(nlohmann::json &json, const SizeOfState &size)
{
    const bool is_known = !size.home.empty();
    json = {{"user", text_or_null(size.user)},
            {"account", text_or_null(size.account)},
            {"path", size.path},
            {"sessions", size.sessions},
            {"home_bytes", is_known ? nlohmann::json(size.home.front().all) : nlohmann::json(nullptr)},
            {"caches_bytes", is_known ? nlohmann::json(size.home.front().caches) : nlohmann::json(nullptr)},
            {"scratch_bytes", size.scratch},
            {"problem", text_or_null(size.problem)}};
}

UserState find_state(const AsRoot &root, const std::string &state_dir, const std::string &user)
{
    auto states = find_states(root, state_dir, user);
    if (states.empty()) throw Nothing("no state of " + escape_for_display(user) + " is kept in " + state_dir + "/users");
    return std::move(states.front());
}

void run_state(const std::optional<std::string> &user, bool json, std::ostream &out)
{
    const auto sizes = sizes_for_caller(user);
    if (json) return print_json({{"states", sizes}}, out);
    if (sizes.empty()) {
        if (::geteuid() != 0) throw Nothing("no state is kept of you");
        throw Nothing(user ? "no state is kept of " + escape_for_display(*user) : "no state is kept of any user");
    }
    std::vector<Row> rows;
    for (const auto &size : sizes)
        rows.push_back(to_row(size));
    out << to_table({"USER", "AGENT", "SESSIONS", "HOME", "CACHES", "SCRATCH", "PATH"}, rows);
}

} // namespace pi_agent
