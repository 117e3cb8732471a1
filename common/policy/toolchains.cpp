// Reads `toolchains:` and `readable:`, with the table of toolchains and caches, and the list of credentials.
#include "common/policy/policy_sections.hpp"

namespace pi_agent {

namespace {

// How sessions see one.
enum class HomeKind {
    program,     // toolchains.readable: read-only, where tools inside look and at its own path
    own_path,    // the same, at its own path alone: a session installs into the agent's own place of that name
    environment, // toolchains.caches: a session's changes in it end with it; at both places, because its content names its own path
    cache,       // the same, where tools inside look
};

struct ShownOfHome {
    std::string_view language; // for docs/concepts/toolchain-directories.md
    HomeKind as;
    std::string_view paths; // below the home
};

// The tables are in common/policy/home_directories.toml.
constexpr ShownOfHome shown_of_homes[] = {
#include "common/shown.inc"
};
struct MaskedNames {
    std::string_view directory, names;
};
constexpr MaskedNames masked_names[] = {
#include "common/masked.inc"
};
constexpr std::string_view never_shown_paths[] = {
#include "common/never_shown.inc"
};

std::vector<std::string> paths_as(HomeKind one, HomeKind other)
{
    std::vector<std::string> paths;
    for (const auto &group : shown_of_homes)
        if (group.as == one || group.as == other)
            for (const auto path : split(group.paths, ' '))
                paths.emplace_back(path);
    std::sort(paths.begin(), paths.end());
    return paths;
}

bool is_of_kind(HomeKind as, const std::string &path)
{
    return std::any_of(std::begin(shown_of_homes), std::end(shown_of_homes), [&](const ShownOfHome &group) {
        if (group.as != as) return false;
        const auto paths = split(group.paths, ' ');
        return std::any_of(paths.begin(), paths.end(), [&](std::string_view one) { return is_within(path, one); });
    });
}

// The first of never_shown() that is this path, contains it or is inside it, and is not masked where this path is shown.
const std::string *find_secret(std::string_view below_home, const std::vector<std::string> &masked)
{
    const auto found = std::find_if(never_shown().begin(), never_shown().end(), [&](const auto &never) {
        if (is_within(below_home, never)) return true;
        return is_within(never, below_home) && std::find(masked.begin(), masked.end(), never.substr(below_home.size() + 1)) == masked.end();
    });
    return found == never_shown().end() ? nullptr : &*found;
}

using Defaults = const std::vector<std::string> &(*)();

constexpr std::size_t list_limit = 64; // each costs mounts at every start

void add_defaults(HomeDirectories &directories, Defaults defaults)
{
    for (const auto &path : defaults())
        directories.paths.push_back({path, {}});
}

// A list of directories, or a word instead of it. Without `defaults` there are no words, and the directories hold a user's own data.
HomeDirectories read_directories(const PolicyValue &value, Defaults defaults)
{
    HomeDirectories directories;
    if (defaults != nullptr && value.is(YamlNode::Kind::scalar)) {
        directories.best_effort = read_choice(value).has_value() && value.node.text == "best_effort";
        add_defaults(directories, defaults);
        return directories;
    }
    const auto items = read_items(value).value_or(std::vector<PolicyValue>());
    if (items.size() > list_limit) {
        value.report("more than " + std::to_string(list_limit) + " directories",
                     defaults != nullptr ? "name those that are used" : "name one that holds them");
        return directories;
    }
    for (const auto &item : items) {
        const auto text = read_line(item);
        if (!text) continue;
        const std::string path = without_trailing_slashes(*text);
        if (defaults != nullptr && *text == "default") {
            add_defaults(directories, defaults); // where it stands among the paths
        } else if (defaults != nullptr && *text == "best_effort") {
            directories.best_effort = true;
        } else if (defaults == nullptr && path.starts_with('/')) {
            if (const auto problem = problem_of_shared_data(path))
                item.refuse(path, *problem);
            else
                directories.paths.push_back({path, item.where});
        } else if (auto problem = problem_of_home_directory(path)) {
            if (defaults == nullptr && path.starts_with("~/")) problem->remedy = "name a directory that holds nothing but data";
            item.refuse(path, *problem);
        } else {
            directories.paths.push_back({path.substr(2), item.where});
        }
    }
    return directories;
}

bool share_place(const PolicyPath &one, const PolicyPath &other)
{
    const std::string inside = place_in_agent_home(one.path);
    const std::string other_inside = place_in_agent_home(other.path);
    return are_nested(one.path, other.path) || (!inside.empty() && !other_inside.empty() && are_nested(inside, other_inside));
}

bool is_of_policy(const PolicyPath &path)
{
    return path.where.line > 0; // a default has no place
}

// A path that the policy names replaces the defaults that it overlaps, because the default lists grow.
void drop_replaced_defaults(ToolchainsPolicy &toolchains)
{
    std::vector<PolicyPath> named;
    for (const auto *list : {&toolchains.readable, &toolchains.caches})
        std::copy_if(list->paths.begin(), list->paths.end(), std::back_inserter(named), is_of_policy);
    for (auto *list : {&toolchains.readable, &toolchains.caches})
        std::erase_if(list->paths, [&](const PolicyPath &path) {
            return !is_of_policy(path) &&
                   std::any_of(named.begin(), named.end(), [&](const PolicyPath &other) { return share_place(path, other); });
        });
}

// Two paths that the policy names must not cover or hold each other.
void check_apart(const ToolchainsPolicy &toolchains, const std::string &key, Problems &problems)
{
    std::vector<PolicyPath> all = toolchains.readable.paths;
    all.insert(all.end(), toolchains.caches.paths.begin(), toolchains.caches.paths.end());
    for (std::size_t second = 1; second < all.size(); ++second) {
        if (!is_of_policy(all[second])) continue;
        const auto end = all.begin() + static_cast<std::ptrdiff_t>(second);
        const auto first =
            std::find_if(all.begin(), end, [&](const PolicyPath &path) { return is_of_policy(path) && share_place(path, all[second]); });
        if (first == end) continue;
        problems.add(all[second].where, key,
                     quote(written_home_path(all[second].path)) + " and " + quote(written_home_path(first->path)) +
                         " are both listed for the same place",
                     "name one of them");
    }
}

// The section or list that says it; the innermost one, if levels say different parts.
std::string key_that_says(const Rules &rules)
{
    for (const char *key : {"readable", "toolchains.caches", "toolchains.readable"})
        if (const auto place = rules.places.find(key); place != rules.places.end()) {
            const std::string &said = place->second.key;
            return said.ends_with("readable") && said.find("toolchains") == std::string::npos ? said : said.substr(0, said.rfind('.'));
        }
    return "toolchains";
}

HomeDirectories default_of(Defaults defaults)
{
    HomeDirectories directories;
    add_defaults(directories, defaults);
    return directories;
}

} // namespace

const std::vector<std::string> &default_readable()
{
    static const std::vector<std::string> paths = paths_as(HomeKind::program, HomeKind::own_path);
    return paths;
}

const std::vector<std::string> &default_caches()
{
    static const std::vector<std::string> paths = paths_as(HomeKind::environment, HomeKind::cache);
    return paths;
}

std::string place_in_agent_home(const std::string &path)
{
    // CARGO_HOME, GOPATH and RUSTUP_HOME inside (runner/plan/environment.cpp). What a session installs goes into directories of programs
    // there, so the user's stay where they are.
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> moved = {
        {{".cargo", ".local/share/cargo"}, {"go", ".local/share/go"}, {".rustup", ".local/share/rustup"}}};
    if (path.starts_with('/') || is_of_kind(HomeKind::own_path, path)) return "";
    if (is_within(path, ".cargo/bin") || is_within(path, "go/bin")) return path;
    for (const auto &[from, to] : moved)
        if (is_within(path, from)) return std::string(to).append(path.substr(from.size()));
    return path;
}

bool is_at_own_path(const std::string &path, bool is_cache)
{
    return !is_cache || is_of_kind(HomeKind::environment, path);
}

std::vector<std::string> masked_in(const std::string &path)
{
    for (const auto &[directory, names] : masked_names)
        if (directory == path) {
            const auto words = split(names, ' ');
            return {words.begin(), words.end()};
        }
    return {};
}

const std::vector<std::string> &never_shown()
{
    static const std::vector<std::string> paths = [] {
        std::vector<std::string> all(std::begin(never_shown_paths), std::end(never_shown_paths));
        for (const auto &[directory, names] : masked_names)
            for (const auto name : split(names, ' '))
                all.push_back(std::string(directory).append("/").append(name));
        return all;
    }();
    return paths;
}

std::optional<TextProblem> problem_of_secrets(std::string_view below_home)
{
    const std::string *found = find_secret(below_home, {});
    if (found == nullptr) return std::nullopt;
    const std::string what = is_within(below_home, *found) ? "belongs to ~/" : "holds ~/";
    return TextProblem{what + *found + ", which no session is shown", "name a directory of projects"};
}

std::optional<TextProblem> problem_of_secrets_anywhere(std::string_view path)
{
    for (std::size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
        const std::string_view below = path.substr(slash + 1);
        const auto found =
            std::find_if(never_shown().begin(), never_shown().end(), [&](const auto &never) { return is_within(below, never); });
        if (found != never_shown().end())
            return TextProblem{"belongs to " + *found + " of a home, which no session is shown", "name a directory of projects"};
    }
    return std::nullopt;
}

std::optional<TextProblem> problem_of_home_directory(const std::string &path)
{
    if (path == "~") return TextProblem{"is a home directory itself", "name a directory below it, e.g. ~/.nvm"};
    if (path.substr(0, 2) != "~/")
        return TextProblem{"does not begin with '~/'",
                           "name directories of the users' homes here, and others in view_paths or in a user's readable"};
    const std::string below = path.substr(2);
    if (has_odd_component(below)) return TextProblem{"holds '//', '.' or '..'", "write the path without them"};
    if (find_secret(below, masked_in(below)) == nullptr) return std::nullopt;
    auto problem = problem_of_secrets(below);
    if (problem) problem->remedy = "name a directory that holds nothing but programs, or downloads";
    return problem;
}

// Reads `toolchains:` and a user's `readable:`, and finds what of homes a session then shows.

std::optional<HomeDirectories> read_readable_toolchains(const PolicyValue &value)
{
    return read_directories(value, default_readable);
}

std::optional<HomeDirectories> read_caches(const PolicyValue &value)
{
    return read_directories(value, default_caches);
}

std::optional<std::vector<PolicyPath>> read_readable(const PolicyValue &value)
{
    return read_directories(value, nullptr).paths;
}

ToolchainsPolicy settle_toolchains(const Rules &rules, Problems &problems)
{
    ToolchainsPolicy toolchains{rules.readable.value_or(default_of(default_readable)), rules.caches.value_or(default_of(default_caches))};
    auto &readable = toolchains.readable.paths;
    if (rules.own_readable) readable.insert(readable.end(), rules.own_readable->begin(), rules.own_readable->end());
    drop_replaced_defaults(toolchains);
    const auto masked =
        std::stable_partition(readable.begin(), readable.end(), [](const auto &path) { return masked_in(path.path).empty(); });
    std::move(masked, readable.end(), std::back_inserter(toolchains.caches.paths));
    readable.erase(masked, readable.end());
    check_apart(toolchains, key_that_says(rules), problems);
    return toolchains;
}

std::string key_of_home_directory(const Rules &rules, const std::string &path, bool is_cache)
{
    const auto is_it = [&](const PolicyPath &own) { return own.path == path; };
    if (path.starts_with('/') || (rules.own_readable && std::any_of(rules.own_readable->begin(), rules.own_readable->end(), is_it)))
        return rules.places.contains("readable") ? rules.places.at("readable").key : "readable";
    return is_cache ? "toolchains.caches" : "toolchains.readable";
}

} // namespace pi_agent
