// The class of each path of the user's config directory: whether the host's or the agent's version counts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace pi_agent {

// mirror: the host's, restored at every start. seed: the host's if the home has no version, or if the host's has changed. once: the host's
// until the agent changes something in it, then the whole is the agent's (ConfigClasses::whole_of). agent: the version inside, never
// overwritten. never: not copied, and earlier copies are removed.
enum class FileClass { mirror, seed, once, agent, never };

std::optional<FileClass> parse_file_class(std::string_view text) noexcept;
std::string_view to_string(FileClass file_class) noexcept;
// mirror, seed and once: the host's version counts.
bool is_copied(FileClass file_class) noexcept;

// Paths are relative to the config directory, without '.', '..' or empty components.
class ConfigClasses {
public:
    // For `path` and everything below it. The longest rule counts, and any rule counts more than the defaults.
    void set(const std::string &path, FileClass file_class) { rules_[path] = file_class; }
    [[nodiscard]] FileClass of(std::string_view path) const;
    // True if something below the directory `path` may be copied. Then it must be searched, whatever its own class is.
    [[nodiscard]] bool copies_below(std::string_view path) const;
    // For a path of class `once`: the whole that it belongs to. That is the path of the rule, or a name at the top; for sessions, each
    // file.
    [[nodiscard]] std::string whole_of(std::string_view path) const;
    // The class of `path` and everything below it; empty if they differ, as for the config directory itself ("").
    [[nodiscard]] std::optional<FileClass> of_all(std::string_view path) const;
    [[nodiscard]] const std::map<std::string, FileClass, std::less<>> &rules() const noexcept { return rules_; }

private:
    [[nodiscard]] std::map<std::string, FileClass, std::less<>>::const_iterator rule_of(std::string_view path) const;

    std::map<std::string, FileClass, std::less<>> rules_;
};

} // namespace pi_agent
