// The messages of the config sync as bytes.
#include "runner/wire/sync_messages.hpp"

#include "common/base/text.hpp"

#include <algorithm>

namespace pi_agent {

HostFacts facts_of(const struct stat &facts) noexcept
{
    return HostFacts{facts.st_ino, static_cast<std::uint64_t>(facts.st_size), nanoseconds_of(facts.st_mtim), nanoseconds_of(facts.st_ctim),
                     facts.st_mode & 0777U};
}

bool is_plain_relative(std::string_view path) noexcept
{
    return path.size() <= 4096 && path.find('\0') == std::string_view::npos && !has_odd_component(path);
}

bool is_kept_link(std::string_view path, std::string_view target)
{
    if (target.empty() || target.size() > 4096 || target.front() == '/' || target.find('\0') != std::string_view::npos) return false;
    return !leads_above(target, std::count(path.begin(), path.end(), '/') - 2);
}

} // namespace pi_agent
