// Which part of the user's config directory is whose: the class of each path.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace pi_agent {

// mirror: the host's, restored at every start. seed: the host's when there is none inside, or when the host's has changed.
// once: the host's until the agent changes something in it, then the agent's, as a whole (ConfigClasses::whole_of).
// agent: what is inside, never overwritten. never: not copied, and what was copied before goes.
enum class FileClass { mirror, seed, once, agent, never };

std::optional<FileClass> parse_file_class(std::string_view text) noexcept;
std::string_view to_string(FileClass file_class) noexcept;
// mirror, seed and once: the host's counts.
bool is_copied(FileClass file_class) noexcept;

// Paths are relative to the config directory, without '.', '..' or empty components.
class ConfigClasses {
public:
    // For `path` and everything beneath it; of several rules the longest counts, and each counts more than the defaults.
    void set(const std::string &path, FileClass file_class) { rules_[path] = file_class; }
    [[nodiscard]] FileClass of(std::string_view path) const;
    // True when something beneath the directory `path` may be copied: then it must be looked into whatever its own class is.
    [[nodiscard]] bool copies_below(std::string_view path) const;
    // Of a path of class `once`: what goes together with it. What the rule names, or a name at the top; of sessions each file.
    [[nodiscard]] std::string whole_of(std::string_view path) const;
    // The class of `path` and of all beneath it; none where they differ, as those of the config directory itself ("") do.
    [[nodiscard]] std::optional<FileClass> of_all(std::string_view path) const;
    [[nodiscard]] const std::map<std::string, FileClass, std::less<>> &rules() const noexcept { return rules_; }

private:
    [[nodiscard]] std::map<std::string, FileClass, std::less<>>::const_iterator rule_of(std::string_view path) const;

    std::map<std::string, FileClass, std::less<>> rules_;
};

} // namespace pi_agent
