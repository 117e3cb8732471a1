// Gives rights up, checks that they are gone, and tries to take them back.
#include "runner/filter/seccomp_filter.hpp"
#include "runner/root/confined/session_end.hpp"

#include <cstdlib>
#include <linux/capability.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>

namespace pi_agent {

namespace {

// The rights for what is left to do: unmount; become the user and the agent to remove their files; end their processes; and remove
// directories that root gave to the agent.
constexpr std::array kept = {CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, CAP_KILL, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_CHOWN};

constexpr int thread_patience_seconds = 2;
constexpr int capability_limit = 64;                 // as many as fit into these:
using Words = std::array<__user_cap_data_struct, 2>; // of version 3 (capget(2))

constexpr std::uint64_t bit(int capability)
{
    return std::uint64_t{1} << static_cast<unsigned>(capability);
}

constexpr std::uint64_t kept_bits()
{
    std::uint64_t bits = 0;
    for (const int capability : kept)
        bits |= bit(capability);
    return bits;
}

struct Capabilities {
    std::uint64_t effective, permitted, inheritable;
    bool operator==(const Capabilities &) const = default;
};

Capabilities read_capabilities()
{
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    Words words{};
    if (syscall(SYS_capget, &header, words.data()) != 0) throw_errno("reading the runner's capabilities");
    const auto &[low, high] = words;
    return {low.effective | std::uint64_t{high.effective} << 32U, low.permitted | std::uint64_t{high.permitted} << 32U,
            low.inheritable | std::uint64_t{high.inheritable} << 32U};
}

bool set_capabilities(std::uint64_t bits)
{
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const auto low = static_cast<std::uint32_t>(bits);
    const auto high = static_cast<std::uint32_t>(bits >> 32U);
    Words words{{{low, low, 0}, {high, high, 0}}};
    return syscall(SYS_capset, &header, words.data()) == 0;
}

[[noreturn]] void refuse_to_go_on(const std::string &what)
{
    throw Failure(ExitStatus::internal, "root's process " + what + ", so nothing is started");
}

bool is_one_thread()
{
    struct stat threads {};
    if (stat("/proc/self/task", &threads) != 0) throw_errno("counting the runner's threads");
    return threads.st_nlink == 3; // the directory itself, and one entry
}

// Capabilities belong to a thread. The kernel still counts a joined thread until it has put it away, which takes a moment on a busy host.
void require_one_thread()
{
    const Deadline deadline = in_seconds(thread_patience_seconds);
    while (!is_one_thread()) {
        if (Clock::now() >= deadline) refuse_to_go_on("has more threads than one");
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

// Whether a program that is started may have the capability; empty where this kernel does not know it. Throws where the kernel does not
// say.
std::optional<bool> in_bounding_set(int capability)
{
    if (const int answer = prctl(PR_CAPBSET_READ, capability, 0, 0, 0); answer >= 0) return answer != 0;
    if (errno != EINVAL || capability <= *std::max_element(kept.begin(), kept.end()))
        throw_errno("asking for capability " + std::to_string(capability));
    return std::nullopt;
}

// How many capabilities this kernel has. All numbers are tried: an unknown one is the end only where no higher one is known.
int number_of_capabilities()
{
    int known = 0;
    for (int capability = 0; capability < capability_limit; ++capability) {
        if (!in_bounding_set(capability)) continue;
        if (capability != known) refuse_to_go_on("was told of a capability " + std::to_string(capability) + " and of none before it");
        known = capability + 1;
    }
    return known;
}

void shrink_bounding_set(int known)
{
    for (int capability = 0; capability < known; ++capability)
        if ((kept_bits() & bit(capability)) == 0 && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
            throw_errno("giving up capability " + std::to_string(capability));
    for (int capability = 0; capability < known; ++capability)
        if ((kept_bits() & bit(capability)) == 0 && in_bounding_set(capability) != false)
            refuse_to_go_on("kept capability " + std::to_string(capability) + " for programs that it starts");
}

void give_up_capabilities()
{
    if (!defence_is_on("runner-capabilities")) return;
    require_one_thread();
    const std::uint64_t left = read_capabilities().permitted & kept_bits(); // a container's root may have less
    const int known = number_of_capabilities();
    shrink_bounding_set(known);
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) throw_errno("giving up ambient capabilities");
    if (!set_capabilities(left)) throw_errno("giving up capabilities");
    if (read_capabilities() != Capabilities{left, left, 0}) refuse_to_go_on("kept capabilities that it gave up");
    // Try to take them back: success means that they were not given up, and nothing after this line may run.
    for (int capability = 0; capability < known; ++capability)
        if ((left & bit(capability)) == 0 && set_capabilities(left | bit(capability))) std::abort();
}

void give_up_privileges_by_exec()
{
    if (!defence_is_on("runner-no-new-privileges")) return;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno("setting no_new_privs for the runner");
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) refuse_to_go_on("may gain privileges by exec");
}

} // namespace

void confine_root(const AsRoot & /*root*/)
{
    give_up_capabilities();
    give_up_privileges_by_exec();
    fault_point("giving-up");
    if (!defence_is_on("runner-call-filter")) return;
    install_root_call_filter();
    // A question that the kernel answers for everybody, and the filter denies.
    constexpr unsigned long which = 0xffffffff;
    if (personality(which) != -1 || errno != EPERM) std::abort();
}

} // namespace pi_agent
