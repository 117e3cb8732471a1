// Landlock for the session.
#include "runner/inside/agent_process.hpp"

#include <sys/syscall.h>

namespace pi_agent {

namespace {

// From <linux/landlock.h> of Linux 6.12; Debian 12's header is older than the kernels it may run on.
struct RulesetAttributes {
    std::uint64_t handled_file_system, handled_network, scoped;
};
constexpr std::uint64_t scope_abstract_unix_socket = 1U << 0U;
constexpr std::uint64_t scope_signal = 1U << 1U;
constexpr unsigned create_ruleset_version = 1U << 0U;
constexpr long first_version_with_scopes = 6;
constexpr long first_version_with_refer = 2; // before it, any file-system rule forbids renaming between directories
constexpr long first_version_with_truncate = 3;
constexpr long first_version_with_ioctl = 5;
constexpr std::uint64_t refer_and_before = (1U << 14U) - 1; // execute … make_sym, refer
constexpr std::uint64_t refer_right = 1U << 13U;
constexpr std::uint64_t truncate_right = 1U << 14U;
constexpr std::uint64_t ioctl_right = 1U << 15U;
constexpr std::uint64_t file_rights = (1U << 0U) | (1U << 1U) | (1U << 2U) | truncate_right | ioctl_right; // execute, write_file, read_file
constexpr int rule_path_beneath = 1;

struct [[gnu::packed]] PathBeneathAttributes {
    std::uint64_t allowed;
    std::int32_t parent;
};

long ask_for_version()
{
    return syscall(SYS_landlock_create_ruleset, nullptr, 0, create_ruleset_version);
}

UniqueFd make_ruleset(const RulesetAttributes &attributes) noexcept
{
    return UniqueFd::adopt(static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
}

void allow_beneath(FdRef ruleset, FdRef place, std::uint64_t rights)
{
    const PathBeneathAttributes attributes{rights, place.get()};
    // EBADFD: a file without a place in any file system (memfd_create(2)), which Landlock does not restrict (landlock_add_rule(2)).
    if (syscall(SYS_landlock_add_rule, ruleset.get(), rule_path_beneath, &attributes, 0) != 0 && errno != EBADFD)
        throw_errno("allowing a place in Landlock");
}

std::uint64_t rights_of(long version)
{
    const bool truncates = version >= first_version_with_truncate && defence_is_on("landlock-truncate");
    return refer_and_before | (truncates ? truncate_right : 0) | (version >= first_version_with_ioctl ? ioctl_right : 0);
}

void allow_view(FdRef ruleset, const std::array<UniqueFd, 3> &stdio, std::uint64_t all_rights)
{
    allow_beneath(ruleset, open_or_throw("opening /", "/", O_PATH | O_DIRECTORY), all_rights);
    // mq_open(3) opens a queue of the session's own IPC namespace beneath a mount of the kernel's, which is in no view. Where the view has
    // that file system at its usual place, its rule covers both.
    const UniqueFd queues = UniqueFd::adopt(open("/dev/mqueue", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (queues) allow_beneath(ruleset, queues, all_rights);
    for (const auto &fd : stdio) {
        struct stat facts {};
        // Devices too: the session's terminal and the host's /dev/null, by names such as /dev/stdout. Pipes and sockets need no rule.
        const bool needs_rule = fd && fstat(fd.get(), &facts) == 0 && (S_ISREG(facts.st_mode) || S_ISCHR(facts.st_mode));
        if (needs_rule) allow_beneath(ruleset, fd, file_rights & all_rights);
    }
}

} // namespace

std::string landlock_here()
{
    const long version = ask_for_version();
    if (version >= first_version_with_refer) return landlock_is_there;
    if (version >= 0) return "too old in this kernel (version " + std::to_string(version) + ")";
    return errno == EPERM ? "refused by a system-call filter around this host" : "not in this kernel, or not enabled";
}

LandlockInForce restrict_with_landlock(const std::array<UniqueFd, 3> &stdio)
{
    if (!defence_is_on("landlock")) return {false, false};
    const long version = ask_for_version();
    // EPERM: the kernel never answers so. A container's filter that is older than Landlock does, as docker's did.
    if (version < 0 && errno != ENOSYS && errno != EOPNOTSUPP && errno != EPERM) throw_errno("asking for Landlock");
    // Also -1: no Landlock in this kernel, not enabled, or withheld from this host.
    if (version < first_version_with_refer) return {false, false};
    const bool scopes = version >= first_version_with_scopes;
    const RulesetAttributes attributes{rights_of(version), 0, scopes ? scope_abstract_unix_socket | scope_signal : 0};
    // An older kernel knows a shorter structure and refuses a longer one only when the rest is not zero.
    const UniqueFd ruleset = make_ruleset(attributes);
    if (!ruleset) throw_errno("making the Landlock rules");
    allow_view(ruleset, stdio, attributes.handled_file_system);
    if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) throw_errno("entering the Landlock rules");
    return {true, scopes};
}

bool stand_below_launcher() noexcept
{
    if (!defence_is_on("landlock") || !defence_is_on("agent-below-launcher")) return true;
    if (ask_for_version() < first_version_with_refer) return true;
    const UniqueFd ruleset = make_ruleset({refer_right, 0, 0}); // what every domain forbids unless it is told otherwise (landlock(7))
    const UniqueFd root = UniqueFd::adopt(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!ruleset || !root) return false;
    const PathBeneathAttributes everywhere{refer_right, root.get()};
    return syscall(SYS_landlock_add_rule, ruleset.get(), rule_path_beneath, &everywhere, 0) == 0 &&
           syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0;
}

} // namespace pi_agent
