// From trusted files to a checked policy.
#include "common/policy_load.hpp"

#include "build_config.hpp"
#include "common/policy_rules.hpp"
#include "common/policy_sections.hpp"
#include "common/trusted_file.hpp"
#include "common/yaml_tree.hpp"

#include <fmt/format.h>
#include <map>
#include <sys/stat.h>

namespace pi_agent {

const char *const policy_path = PI_AGENT_POLICY_PATH;

namespace {

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

YamlNode join_sources(const std::vector<PolicySource> &sources, Problems &problems)
{
    YamlNode joined;
    joined.kind = YamlNode::Kind::mapping;
    bool complete = true;
    for (const auto &source : sources) {
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
    // What a file that cannot be read would have said is unknown: whatever else is found now may not be so.
    if (!complete) problems.throw_if_any();
    return joined;
}

// Reads one file; what makes it untrustworthy or unreadable becomes a diagnostic.
void add_source(const std::string &path, std::vector<PolicySource> &sources, Problems &problems)
{
    try {
        sources.push_back({path, read_trusted_file(path, yaml_size_limit, "policy")});
    } catch (const SystemFailure &failure) {
        const bool absent = failure.error_number() == ENOENT;
        problems.add({path}, "", failure.what(),
                     absent ? "write a policy there (see the examples that come with pi-agent), then run 'pi-agentctl apply'"
                            : "let root make it readable by all (chmod a+r), and its directory passable (chmod a+rx)");
    } catch (const Failure &failure) {
        problems.add({path}, "", failure.what(), "");
    }
}

std::vector<std::string> list_directory(const std::string &path, Problems &problems)
{
    std::vector<std::string> paths;
    try {
        for (const auto &name : list_trusted_directory(path, ".yml", "policy directory")) {
            problems.add({path + "/" + name}, "", "would not be read", "end its name with '.yaml', or move it away");
        }
        for (const auto &name : list_trusted_directory(path, ".yaml", "policy directory"))
            paths.push_back(path + "/" + name);
    } catch (const Failure &failure) {
        problems.add({path}, "", failure.what(), "");
    }
    return paths;
}

} // namespace

std::string directory_of_parts(const std::string &main_file)
{
    return main_file.substr(0, main_file.rfind('/') + 1) + "policy.d";
}

Policy parse_policy(const std::vector<PolicySource> &sources)
{
    Problems problems;
    const auto root = join_sources(sources, problems);
    auto policy = read_policy(root, problems);
    policy.wrapper.command_name = PI_AGENT_COMMAND_NAME; // no policy says another
    check_policy_rules(policy, problems);
    problems.throw_if_any();
    return policy;
}

std::string policy_stamp(const std::string &main_file)
{
    const auto directory = directory_of_parts(main_file);
    std::vector<std::string> paths = {main_file, directory};
    try {
        for (const auto &name : list_trusted_directory(directory, ".yaml", "policy directory"))
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

std::vector<PolicySource> read_policy_sources(const std::string &main_file)
{
    Problems problems;
    std::vector<PolicySource> sources;
    add_source(main_file, sources, problems);
    const auto directory = directory_of_parts(main_file);
    for (const auto &path : list_directory(directory, problems))
        add_source(path, sources, problems);
    problems.throw_if_any();
    return sources;
}

Policy load_policy(const std::string &main_file)
{
    return parse_policy(read_policy_sources(main_file));
}

} // namespace pi_agent
