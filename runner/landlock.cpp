// Landlock scopes for the session.
#include "runner/landlock.hpp"

#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/fd.hpp"

#include <cerrno>
#include <cstdint>
#include <sys/syscall.h>
#include <unistd.h>

namespace pi_agent {

namespace {

// From <linux/landlock.h> of Linux 6.12; Debian 12's header is older than the kernels it may run on.
struct RulesetAttributes {
    std::uint64_t handled_file_system;
    std::uint64_t handled_network;
    std::uint64_t scoped;
};
constexpr std::uint64_t scope_abstract_unix_socket = 1U << 0U;
constexpr std::uint64_t scope_signal = 1U << 1U;
constexpr unsigned create_ruleset_version = 1U << 0U;
constexpr long first_version_with_scopes = 6;

} // namespace

bool scope_with_landlock()
{
    if (!defence_is_on("landlock")) return false;
    const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, create_ruleset_version);
    if (version < 0 && errno != ENOSYS && errno != EOPNOTSUPP) throw_errno("asking for Landlock");
    if (version < first_version_with_scopes) return false; // also -1: no Landlock in this kernel, or not enabled
    const RulesetAttributes attributes{0, 0, scope_abstract_unix_socket | scope_signal};
    const UniqueFd ruleset = UniqueFd::adopt(static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
    if (!ruleset) throw_errno("making the Landlock scope");
    if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) throw_errno("entering the Landlock scope");
    return true;
}

} // namespace pi_agent
