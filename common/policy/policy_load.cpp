// Finds and reads the files of the policy, and turns them into a checked one.
#include "common/policy/policy_load.hpp"

#include "common/host/account.hpp"
#include "common/host/beneath.hpp"
#include "common/policy/policy_sections.hpp"

#include <fmt/format.h>

namespace pi_agent {

namespace {

constexpr const char *policy_suffix = ".yaml";

std::string beside(const std::string &main_file, const char *name)
{
    return main_file.substr(0, main_file.rfind('/') + 1) + name;
}

std::string file_of(const std::string &main_file, const std::string &user)
{
    return directory_of_users(main_file) + "/" + user + policy_suffix;
}

// Reads one file; what makes it untrustworthy or unreadable becomes a diagnostic.
void add_source(const std::string &path, std::vector<PolicySource> &sources, Problems &problems)
{
    try {
        sources.push_back({path, read_trusted_file(path, yaml_size_limit, "policy")});
    } catch (const SystemFailure &failure) {
        const bool absent = failure.error_number() == ENOENT;
        problems.add({path}, "", failure.what(),
                     absent ? "ask the administrator to write one: sudo pi-agentctl init, then sudo pi-agentctl apply (on NixOS: the "
                              "module m3ta.pi-agent)"
                     : failure.error_number() == EACCES
                         ? "ask the administrator to make it readable for all: sudo pi-agentctl check says how"
                         : "ask the administrator to look at it: sudo pi-agentctl check");
    } catch (const Failure &failure) {
        problems.add({path}, "", failure.what(), "");
    }
}

std::vector<std::string> list_directory(const std::string &path, Problems &problems)
{
    std::vector<std::string> paths;
    try {
        for (const auto &name : list_trusted_directory(path, ".yml", "policy directory"))
            problems.add({path + "/" + name}, "", "is not read as a part of the policy", "end its name with '.yaml', or move it away");
        for (const auto &name : list_trusted_directory(path, policy_suffix, "policy directory"))
            paths.push_back(path + "/" + name);
    } catch (const Failure &failure) {
        problems.add({path}, "", failure.what(), "");
    }
    return paths;
}

void add_all_users(const std::string &main_file, std::vector<PolicySource> &sources, Problems &problems)
{
    for (const auto &path : list_directory(directory_of_users(main_file), problems)) {
        if (user_of_file(path, main_file))
            add_source(path, sources, problems);
        else
            problems.add({path}, "", "is not named after a user",
                         "name it NAME.yaml after an account; entries of groups belong in policy.yaml or policy.d");
    }
}

// If it cannot be examined, it is not missing: reading it reports why.
bool is_there(const std::string &path)
{
    try {
        return if_there([&] { return open_trusted(path, O_PATH, "policy"); }).is_open();
    } catch (const Failure &) {
        return true;
    }
}

// False if the name is not plain.
bool has_user_file(const std::string &main_file, const std::string &user)
{
    return is_account_name(user) && is_there(file_of(main_file, user));
}

// Adds `from` to `into`: sections join; anything else that both files give is reported with both places. A user counts as one thing.
void join(YamlNode &into, YamlNode from, const std::string &path, Problems &problems)
{
    std::map<std::string, std::size_t> known;
    for (std::size_t index = 0; index < into.entries.size(); ++index)
        known.emplace(into.entries[index].key, index);
    for (auto &entry : from.entries) {
        const auto found = known.find(entry.key);
        if (found == known.end()) {
            into.entries.push_back(std::move(entry));
            continue;
        }
        auto &present = into.entries[found->second];
        const auto key = path.empty() ? entry.key : path + "." + entry.key;
        const bool sections = present.value.kind == YamlNode::Kind::mapping && entry.value.kind == YamlNode::Kind::mapping;
        if (sections && path != "users") {
            join(present.value, std::move(entry.value), key, problems);
        } else {
            problems.add(entry.where, key, "given twice, first at " + to_string(present.where), "keep one of them");
        }
    }
}

bool is_policy_shape(const YamlNode &root, bool main_file, Problems &problems)
{
    if (root.kind == YamlNode::Kind::mapping) return true;
    if (root.kind == YamlNode::Kind::null && !main_file) return false; // a file of comments adds nothing
    problems.add(root.where, "", "must be a mapping, found " + describe(root), "begin the policy with 'version: 1'");
    return false;
}

// The entry of `users` that the file's text is. A file cannot say run_as: a start reads one file, and could not see that two users share an
// account.
std::optional<YamlEntry> read_user_file(const PolicySource &source, const std::string &user, Problems &problems)
{
    auto root = parse_yaml(source.name, source.text, problems);
    if (!root) return std::nullopt;
    for (const auto &entry : root->entries)
        if (entry.key == "run_as")
            problems.add(entry.where, "users." + user + ".run_as", "a file of users.d cannot say it",
                         "put this user into policy.yaml or policy.d");
    const Position where = root->where;
    return YamlEntry{user, where, std::move(*root)};
}

// Makes one section of all these files, and joins it once.
YamlNode join_user_files(const std::vector<PolicySource> &sources, bool &complete, Problems &problems)
{
    YamlNode users;
    users.kind = YamlNode::Kind::mapping;
    for (const auto &source : sources) {
        const auto user = user_of_file(source.name, sources.front().name);
        if (!user) continue;
        auto entry = read_user_file(source, *user, problems);
        complete = complete && entry;
        if (entry) users.entries.push_back(std::move(*entry));
    }
    return users;
}

YamlNode join_sources(const std::vector<PolicySource> &sources, bool &complete, Problems &problems)
{
    YamlNode joined;
    joined.kind = YamlNode::Kind::mapping;
    for (const auto &source : sources) {
        if (user_of_file(source.name, sources.front().name)) continue; // below
        const bool main_file = &source == &sources.front();
        if (main_file) joined.where = {source.name};
        auto root = parse_yaml(source.name, source.text, problems);
        if (!root || !is_policy_shape(*root, main_file, problems)) {
            complete = complete && root.has_value() && root->kind == YamlNode::Kind::null && !main_file;
            continue;
        }
        read_version(*root, main_file, problems);
        if (!main_file) std::erase_if(root->entries, [](const YamlEntry &entry) { return entry.key == "version"; });
        join(joined, std::move(*root), "", problems);
    }
    if (YamlNode users = join_user_files(sources, complete, problems); !users.entries.empty()) {
        YamlNode section;
        section.kind = YamlNode::Kind::mapping;
        section.entries.push_back({"users", users.entries.front().where, std::move(users)});
        join(joined, std::move(section), "", problems);
    }
    return joined;
}

// `pi-agent-4201` is left out: so are the accounts of agents called whose users' names do not fit.
void find_people(Policy &policy, const std::string &main_file)
{
    const std::string prefix = policy.agent.user + "-";
    for (const auto &entry : policy.users)
        if (!entry.is_group && entry.name.starts_with(prefix) && !to_number<uid_t>(std::string_view(entry.name).substr(prefix.size())) &&
            !user_of_file(entry.where.file, main_file))
            policy.people.insert(entry.name);
}

// Nobody knows what an unreadable file would have said, so no rule between keys is checked on the rest.
PolicyReading read(const std::vector<PolicySource> &sources, const UserFiles &files, Problems problems = {})
{
    PolicyReading reading;
    reading.complete = problems.empty();
    reading.policy = read_policy(join_sources(sources, reading.complete, problems), problems);
    find_people(reading.policy, sources.front().name);
    if (reading.complete) check_policy_rules(reading.policy, files, problems);
    reading.problems = problems.all();
    return reading;
}

Policy parse(const std::vector<PolicySource> &sources, const UserFiles &files)
{
    auto reading = read(sources, files);
    if (!reading.problems.empty()) throw PolicyError(reading.problems);
    return std::move(reading.policy);
}

UserFiles user_files_of(const std::vector<PolicySource> &sources)
{
    const bool has_files = std::any_of(sources.begin(), sources.end(), [&](const PolicySource &source) {
        return user_of_file(source.name, sources.front().name).has_value();
    });
    return {has_files, {}};
}

} // namespace

// Finding and reading the files of the policy.

std::string directory_of_parts(const std::string &main_file)
{
    return beside(main_file, "policy.d");
}

std::string directory_of_users(const std::string &main_file)
{
    return beside(main_file, "users.d");
}

std::optional<std::string> user_of_file(const std::string &path, const std::string &main_file)
{
    const std::string directory = directory_of_users(main_file) + "/";
    if (!path.starts_with(directory) || !path.ends_with(policy_suffix)) return std::nullopt;
    std::string name = path.substr(directory.size());
    name.resize(name.size() - std::string_view(policy_suffix).size());
    return is_account_name(name) ? std::optional(name) : std::nullopt;
}

bool has_user_files(const std::string &main_file)
{
    try {
        const auto path = directory_of_users(main_file);
        const auto directory = if_there([&] { return open_trusted(path, O_RDONLY | O_DIRECTORY, "policy directory"); });
        const auto is_users = [](const std::string &name) { return name.front() != '.' && name.ends_with(policy_suffix); };
        return directory && find_name(directory, is_users, path);
    } catch (const Failure &) { // a user may pass through it without listing it
        return true;
    }
}

std::vector<PolicySource> read_policy_sources(const std::string &main_file, const std::optional<std::string> &user)
{
    Problems problems;
    auto sources = read_policy_sources(main_file, user, problems);
    if (!problems.empty()) throw PolicyError(problems.all(), !is_there(main_file) ? FailureKind::no_policy : FailureKind::invalid_policy);
    return sources;
}

std::vector<PolicySource> read_policy_sources(const std::string &main_file, const std::optional<std::string> &user, Problems &problems)
{
    std::vector<PolicySource> sources;
    add_source(main_file, sources, problems);
    for (const auto &path : list_directory(directory_of_parts(main_file), problems))
        add_source(path, sources, problems);
    if (!user)
        add_all_users(main_file, sources, problems);
    else if (has_user_file(main_file, *user))
        add_source(file_of(main_file, *user), sources, problems);
    return sources;
}

std::string policy_stamp(const std::string &main_file, const std::string &user)
{
    const auto directory = directory_of_parts(main_file);
    std::vector<std::string> paths = {main_file, directory};
    if (is_account_name(user)) paths.push_back(file_of(main_file, user));
    try {
        for (const auto &name : list_trusted_directory(directory, policy_suffix, "policy directory"))
            paths.push_back(directory + "/" + name);
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): what is wrong is found out by who reads it
    }
    std::string stamp;
    for (const auto &path : paths) {
        struct stat status {};
        if (::stat(path.c_str(), &status) != 0) status = {}; // as above
        stamp +=
            fmt::format("{}:{}:{}:{}.{} ", status.st_dev, status.st_ino, status.st_size, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
    }
    return stamp;
}

// Turns trusted files into a checked policy.

Policy parse_policy(const std::vector<PolicySource> &sources)
{
    return parse(sources, user_files_of(sources));
}

PolicyReading read_policy_as_far_as_possible(const std::vector<PolicySource> &sources)
{
    return read(sources, user_files_of(sources));
}

PolicyReading read_policy_as_far_as_possible(const std::string &main_file)
{
    Problems problems;
    const auto sources = read_policy_sources(main_file, std::nullopt, problems);
    if (sources.empty() || sources.front().name != main_file) // the others are nothing without it
        return {{}, problems.all(), false, !is_there(main_file)};
    return read(sources, {has_user_files(main_file), {}}, std::move(problems));
}

Policy load_policy(const std::string &main_file)
{
    return parse(read_policy_sources(main_file), {has_user_files(main_file), {}});
}

Policy load_policy_for(const std::string &main_file, const std::string &user)
{
    UserFiles files{has_user_files(main_file), {}};
    if (files.are_possible) files.has_unread = [&](const std::string &other) { return other != user && has_user_file(main_file, other); };
    return parse(read_policy_sources(main_file, user), files);
}

Policy load_policy_to_start(const std::string &main_file, const std::string &user)
{
    try {
        return load_policy_for(main_file, user);
    } catch (const PolicyError &error) {
        const auto &found = error.diagnostics();
        if (std::none_of(found.begin(), found.end(), [](const Diagnostic &one) { return one.where.line > 0 || !one.key.empty(); })) throw;
        const auto is_own = [&](const Diagnostic &one) { return user_of_file(one.where.file, main_file).has_value(); };
        const bool is_users_alone = std::all_of(found.begin(), found.end(), is_own);
        const std::string count = found.size() == 1                 ? "1 error"
                                  : found.size() > most_diagnostics ? "more than " + std::to_string(most_diagnostics) + " errors"
                                                                    : std::to_string(found.size()) + " errors";
        throw Failure(FailureKind::invalid_policy, "the administrator's policy has " + count + ", so " +
                                                       (is_users_alone ? "you cannot" : "nobody can") +
                                                       " start pi. Ask them to run: pi-agentctl check");
    }
}

} // namespace pi_agent
