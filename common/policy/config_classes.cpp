// The classes of the config directory: the policy's rules, then what the agent is known to do with its files.
#include "common/policy/config_classes.hpp"

#include <algorithm>
#include <array>

namespace pi_agent {

namespace {

struct NamedClass {
    std::string_view name;
    FileClass file_class;
};

constexpr std::array class_names = {
    NamedClass{"mirror", FileClass::mirror},
    NamedClass{"seed", FileClass::seed},
    NamedClass{"agent", FileClass::agent},
    NamedClass{"never", FileClass::never},
};

// By the first component of a path. Documents that both sides write, and credentials, are merged by key (runner/plan/documents.hpp): seed
// says that what was changed inside survives.
constexpr std::array default_classes = {
    NamedClass{"settings.json", FileClass::seed}, NamedClass{"auth.json", FileClass::seed},
    NamedClass{"mcp-auth.json", FileClass::seed}, NamedClass{"sessions", FileClass::agent},
    NamedClass{"bin", FileClass::agent},          NamedClass{"git", FileClass::agent},
    NamedClass{"npm", FileClass::agent},          NamedClass{"models-store.json", FileClass::agent},
    NamedClass{"trust.json", FileClass::agent},   NamedClass{"crashes.json", FileClass::agent},
    NamedClass{"tmp", FileClass::never},
};

FileClass default_class(std::string_view top) noexcept
{
    const auto *const found =
        std::find_if(default_classes.begin(), default_classes.end(), [top](const NamedClass &known) { return known.name == top; });
    if (found != default_classes.end()) return found->file_class;
    if (top.ends_with(".lock") || top.starts_with("mcp-auth-refresh-")) return FileClass::never;
    return top.ends_with(".log") ? FileClass::agent : FileClass::mirror;
}

} // namespace

std::optional<FileClass> parse_file_class(std::string_view text) noexcept
{
    for (const auto &known : class_names)
        if (known.name == text) return known.file_class;
    return std::nullopt;
}

std::string_view to_string(FileClass file_class) noexcept
{
    return class_names[static_cast<std::size_t>(file_class)].name;
}

bool is_copied(FileClass file_class) noexcept
{
    return file_class == FileClass::mirror || file_class == FileClass::seed;
}

FileClass ConfigClasses::of(std::string_view path) const
{
    for (std::string_view part = path; !rules_.empty();) {
        if (const auto found = rules_.find(part); found != rules_.end()) return found->second;
        const std::size_t slash = part.rfind('/');
        if (slash == std::string_view::npos) break;
        part = part.substr(0, slash);
    }
    return default_class(path.substr(0, path.find('/')));
}

bool ConfigClasses::copies_below(std::string_view path) const
{
    if (is_copied(of(path))) return true;
    const std::string beginning = std::string(path) + "/";
    for (auto rule = rules_.lower_bound(beginning); rule != rules_.end() && rule->first.starts_with(beginning); ++rule)
        if (is_copied(rule->second)) return true;
    return false;
}

} // namespace pi_agent
