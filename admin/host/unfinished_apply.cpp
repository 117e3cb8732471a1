// Looks at the host before a change, and keeps what it was in a file until the change is finished.
#include "admin/host/unfinished_apply.hpp"

#include "admin/host/accounts.hpp"
#include "admin/host/command_name.hpp"
#include "admin/host/sudoers.hpp"
#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/host/account.hpp"
#include "common/host/trusted_file.hpp"

#include <algorithm>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

namespace pi_agent {

namespace {

using Json = nlohmann::ordered_json;

constexpr int unfinished_version = 1;
constexpr std::size_t unfinished_limit = std::size_t{256} << 20U; // a rule and two policies of a hundred thousand users
constexpr mode_t unfinished_mode = 0600;

std::optional<std::string> read_note(const char *name, const char *what)
{
    return if_there([&] { return std::optional(read_trusted_file(path_of_applied(name), unfinished_limit, what)); });
}

// The directories that apply makes, parents first.
std::vector<std::string> directories_of(const std::string &state_dir)
{
    const std::string applied = applied_directory;
    std::vector<std::string> paths = {state_dir, state_dir + "/users", state_dir + "/sessions"};
    if (parent_of(applied) != state_dir) paths.push_back(parent_of(applied));
    paths.push_back(applied);
    return paths;
}

std::optional<FormerRights> rights_of(const std::string &path)
{
    return if_there([&] {
        const auto place = open_trusted(path, O_PATH, "place that apply changes");
        return std::optional(rights_in(examine(place, "cannot examine " + path)));
    });
}

Json json_of(const std::optional<FormerRights> &rights)
{
    return rights ? rights_to_json(*rights) : Json(nullptr);
}

Json json_of(const std::optional<std::string> &text)
{
    return text ? Json(*text) : Json(nullptr);
}

std::optional<std::string> text_of(const Json &json)
{
    return json.is_null() ? std::nullopt : std::optional(json.get<std::string>());
}

} // namespace

bool is_between(const PolicyFiles &installed, const PolicyChange &change)
{
    const auto has = [](const PolicyFiles &files, const PolicySource &one) {
        return std::any_of(files.begin(), files.end(),
                           [&](const PolicySource &other) { return other.name == one.name && other.text == one.text; });
    };
    return std::all_of(installed.begin(), installed.end(),
                       [&](const PolicySource &file) { return has(change.before, file) || has(change.wanted, file); });
}

HostBefore look_at_host(const AsRoot &root, const Policy &policy)
{
    HostBefore before;
    before.group = policy.agent.group;
    before.state_dir = policy.agent.state_dir;
    const auto missing = find_missing(policy, needed_agent_accounts(policy, group_members));
    before.had_group = !missing.group;
    for (const auto &account : missing.accounts)
        before.new_accounts.push_back(account.name);
    before.new_members = missing.members;
    for (const auto &path : directories_of(policy.agent.state_dir))
        before.places[path] = rights_of(path);
    auto programs = places_of_agent(root, policy);
    for (const auto &[path, rights] : read_hidden_places(root))
        programs.insert(path);
    for (const auto &path : programs)
        try {
            if (const auto rights = rights_of(path)) before.places[path] = rights;
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): others can change the way there, so apply changes nothing there
        }
    if (!build::is_system_managed) before.rule = read_sudoers(root, sudoers_directory);
    before.hidden = read_note(hidden_name, "list of what is hidden");
    before.state_note = read_note(state_note, "note of where the agents' homes are");
    before.command_name = noted_command(root, places_of_command());
    return before;
}

HostBefore joined(HostBefore earlier, const HostBefore &now)
{
    // What the earlier command made exists by now, and is not among what is missing now.
    const auto add = [](std::vector<std::string> &names, const std::vector<std::string> &more) {
        for (const auto &name : more)
            if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    if (earlier.group == now.group) {
        earlier.had_group = earlier.had_group && now.had_group;
        add(earlier.new_members, now.new_members);
    } else { // the earlier one stays, with its members: whoever made it may mean something else by now
        earlier.had_group = now.had_group;
        earlier.new_members = now.new_members;
    }
    add(earlier.new_accounts, now.new_accounts);
    earlier.places.insert(now.places.begin(), now.places.end());
    earlier.group = now.group;
    earlier.state_dir = now.state_dir;
    earlier.command = now.command;
    if (!earlier.policy) earlier.policy = now.policy;
    if (earlier.policy && now.policy) earlier.policy->wanted = now.policy->wanted;
    return earlier;
}

std::string to_text(const HostBefore &before)
{
    Json places = Json::object();
    for (const auto &[path, rights] : before.places)
        places[path] = json_of(rights);
    Json json = {{"version", unfinished_version},
                 {"command", before.command},
                 {"group", before.group},
                 {"state_dir", before.state_dir},
                 {"had_group", before.had_group},
                 {"new_accounts", before.new_accounts},
                 {"new_members", before.new_members},
                 {"places", places},
                 {"rule", json_of(before.rule)},
                 {"hidden", json_of(before.hidden)},
                 {"state_note", json_of(before.state_note)},
                 {"command_name", before.command_name},
                 {"policy", nullptr}};
    if (before.policy)
        json["policy"] = {{"before", policy_files_to_json(before.policy->before)}, {"wanted", policy_files_to_json(before.policy->wanted)}};
    try {
        return json.dump(1) + "\n";
    } catch (const Json::type_error &) { // of bytes that are not UTF-8: pi-agent writes none
        throw Failure(ExitStatus::configuration, std::string("the sudo rule ") + sudoers_directory +
                                                     "/pi-agent is not text any more; remove it, and run the command again");
    }
}

HostBefore host_before_of(const std::string &text)
{
    try {
        const auto json = Json::parse(text);
        if (json.at("version") != unfinished_version)
            throw Failure(ExitStatus::configuration,
                          path_of_applied(unfinished_apply_name) + " was written by another version of pi-agent");
        HostBefore before;
        before.command = json.at("command").get<std::string>();
        before.group = json.at("group").get<std::string>();
        before.state_dir = json.at("state_dir").get<std::string>();
        before.had_group = json.at("had_group").get<bool>();
        before.new_accounts = json.at("new_accounts").get<std::vector<std::string>>();
        before.new_members = json.at("new_members").get<std::vector<std::string>>();
        for (const auto &[path, rights] : json.at("places").items())
            before.places[path] = rights.is_null() ? std::nullopt : std::optional(rights_of_json(rights));
        before.rule = text_of(json.at("rule"));
        before.hidden = text_of(json.at("hidden"));
        before.state_note = text_of(json.at("state_note"));
        before.command_name = json.at("command_name").get<std::string>();
        if (const auto &policy = json.at("policy"); !policy.is_null())
            before.policy = PolicyChange{policy_files_of(policy.at("before")), policy_files_of(policy.at("wanted"))};
        return before;
    } catch (const Json::exception &) {
        throw Failure(ExitStatus::configuration,
                      path_of_applied(unfinished_apply_name) +
                          " is damaged; remove it, and 'sudo pi-agentctl apply' makes the host follow the policy");
    }
}

std::optional<HostBefore> read_unfinished(const AsRoot & /*root*/)
{
    const auto text = if_there([] {
        return std::optional(read_trusted_file(path_of_applied(unfinished_apply_name), unfinished_limit, "note of an unfinished apply"));
    });
    return text ? std::optional(host_before_of(*text)) : std::nullopt;
}

void write_unfinished(const AsRoot & /*root*/, const HostBefore &before)
{
    const auto directory = open_applied_directory();
    replace_root_file(directory, unfinished_apply_name, to_text(before), unfinished_mode, path_of_applied(unfinished_apply_name));
}

void remove_unfinished_note(const AsRoot & /*root*/)
{
    const auto directory = if_there(open_applied_directory);
    if (directory) remove_root_file(directory, unfinished_apply_name, path_of_applied(unfinished_apply_name));
}

} // namespace pi_agent
