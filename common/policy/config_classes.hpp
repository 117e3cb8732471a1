// Which part of the user's config directory is whose: the class of each path.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace pi_agent {

// mirror: the host's, restored at every start. seed: the host's when there is none inside, or when the host's has changed.
// agent: what is inside, never overwritten. never: not copied, and what was copied before goes.
enum class FileClass { mirror, seed, agent, never };

std::optional<FileClass> parse_file_class(std::string_view text) noexcept;
std::string_view to_string(FileClass file_class) noexcept;
// mirror and seed: the host's counts.
bool is_copied(FileClass file_class) noexcept;

// Paths are relative to the config directory, without '.', '..' or empty components.
class ConfigClasses {
public:
    // For `path` and everything beneath it; of several rules the longest counts, and each counts more than the defaults.
    void set(const std::string &path, FileClass file_class) { rules_[path] = file_class; }
    [[nodiscard]] FileClass of(std::string_view path) const;
    // True when something beneath the directory `path` may be copied: then it must be looked into whatever its own class is.
    [[nodiscard]] bool copies_below(std::string_view path) const;
    [[nodiscard]] const std::map<std::string, FileClass, std::less<>> &rules() const noexcept { return rules_; }

private:
    std::map<std::string, FileClass, std::less<>> rules_;
};

} // namespace pi_agent
