// Installs the agent's filters of system calls, and writes a session's own. What a filter asks about is in call_answers.cpp.
#include "runner/inside/agent_process.hpp"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace pi_agent {

namespace {

#include "runner/filter/call_filters.inc"

constexpr unsigned wait_killable = 1U << 5U; // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, newer than some headers

void install(const char *defence, std::span<const sock_filter> filter, const char *what)
{
    if (!defence_is_on(defence)) return;
    give_up_new_privileges();
    load_call_filter(filter, what);
}

// --- A session's own filter is written by hand, because libseccomp would take milliseconds of each start, and nothing but numbers of calls
// and one argument of two calls are compared.

struct CallNumber {
    std::string_view name;
    std::uint32_t number;
};

#include "runner/filter/call_numbers.inc"

#if defined(__x86_64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t architecture = 0;
#endif
static_assert(architecture != 0, "name this architecture as the kernel does");

constexpr std::uint32_t first_x32_call = 0x40000000; // no other machine has numbers as high
constexpr std::uint32_t no_call = 0xffffffff;        // what a debugger puts there so that the kernel makes none
constexpr std::uint32_t whole_question = 0xffffffff; // personality(2): which it is

const CallNumber *find_number(std::string_view name)
{
    const auto *const found =
        std::find_if(std::begin(call_numbers), std::end(call_numbers), [&](const CallNumber &call) { return call.name == name; });
    return found == std::end(call_numbers) ? nullptr : found;
}

constexpr std::uint32_t end_process = SECCOMP_RET_KILL_PROCESS;
constexpr std::uint32_t let_through = SECCOMP_RET_ALLOW;

constexpr std::uint32_t fail_with(std::uint32_t error)
{
    return SECCOMP_RET_ERRNO | error;
}

// What the kernel looks at of an argument that it takes as an int.
constexpr std::size_t first_argument = offsetof(seccomp_data, args) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0);

class CallProgram {
public:
    CallProgram()
    {
        load(offsetof(seccomp_data, arch));
        test(BPF_JEQ, architecture, 1, 0);
        end_with(end_process);
        load(offsetof(seccomp_data, nr));
        test(BPF_JGE, first_x32_call, 0, 2);
        test(BPF_JEQ, no_call, 1, 0);
        end_with(end_process);
    }

    void refuse(std::uint32_t number)
    {
        test(BPF_JEQ, number, 0, 1);
        end_with(fail_with(EPERM));
    }

    // A call whose first argument is none of `values` ends with `error`.
    void require_first_argument(std::uint32_t number, const std::vector<std::uint32_t> &values, std::uint32_t error)
    {
        const auto count = static_cast<std::uint8_t>(values.size());
        test(BPF_JEQ, number, 0, static_cast<std::uint8_t>(count + 3)); // past what follows here
        load(first_argument);
        for (std::uint8_t index = 0; index < count; ++index)
            test(BPF_JEQ, values[index], static_cast<std::uint8_t>(count - index), 0); // to the last line here
        end_with(fail_with(error));
        end_with(let_through);
    }

    [[nodiscard]] std::vector<sock_filter> take()
    {
        end_with(let_through);
        return std::move(code_);
    }

private:
    void load(std::size_t offset) { code_.push_back({BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)}); }
    void end_with(std::uint32_t action) { code_.push_back({BPF_RET | BPF_K, 0, 0, action}); }
    // The distances count from the next line.
    void test(unsigned how, std::uint32_t value, std::uint8_t if_true, std::uint8_t if_false)
    {
        code_.push_back({static_cast<std::uint16_t>(BPF_JMP | how | BPF_K), if_true, if_false, value});
    }

    std::vector<sock_filter> code_;
};

std::vector<std::uint32_t> numbers_of_families(unsigned families)
{
    constexpr std::uint32_t numbers[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}; // in the order of address_families
    static_assert(std::size(numbers) == std::size(address_families));
    std::vector<std::uint32_t> chosen;
    for (std::size_t index = 0; index < std::size(numbers); ++index)
        if ((families & (1U << index)) != 0) chosen.push_back(numbers[index]);
    return chosen;
}

} // namespace

void install_call_filter()
{
    install("call-filter", call_program, "installing the list of calls");
}

void refuse_tracing()
{
    install("seccomp-filter", no_tracing_program, "refusing what debuggers do");
}

void refuse_attributes()
{
    install("attribute-filter", no_attributes_program, "refusing what changes attributes of files");
}

UniqueFd install_agent_call_filter(SetGidCalls set_gid)
{
    if (!defence_is_on("seccomp-filter")) return {};
    give_up_new_privileges();
    const bool others_too = defence_is_on("limits-of-others");
    if (set_gid == SetGidCalls::asked && others_too) {
        // Once the question is read, a signal interrupts no chmod(2), as outside (Linux 5.19).
        const sock_fprog program = program_of(asking_call_program);
        UniqueFd questions = UniqueFd::adopt(
            static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | wait_killable, &program)));
        if (questions) return questions;
        if (errno != EBUSY && errno != EINVAL) throw_errno("seccomp: installing the filter that asks");
    }
    if (others_too)
        load_call_filter(agent_call_program, "installing the filter");
    else
        load_call_filter(agent_call_program_without_tuning, "installing the filter");
    return {};
}

bool install_session_call_filter(const std::vector<sock_filter> &program) noexcept
{
    if (program.empty()) return true;
    const sock_fprog lines = program_of(program);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &lines) == 0;
}

std::vector<sock_filter> session_call_program(const SessionCalls &calls)
{
    if (calls.refused.empty() && !calls.keeps_personality && !calls.families) return {};
    CallProgram program;
    for (const auto &name : calls.refused)
        if (const auto *call = find_number(name)) program.refuse(call->number);
    if (const auto *call = find_number("personality"); call != nullptr && calls.keeps_personality)
        program.require_first_argument(call->number, {PER_LINUX, ADDR_NO_RANDOMIZE, whole_question}, EPERM);
    if (const auto *call = find_number("socket"); call != nullptr && calls.families)
        program.require_first_argument(call->number, numbers_of_families(*calls.families), EAFNOSUPPORT);
    return program.take();
}

} // namespace pi_agent
