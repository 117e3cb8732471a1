// Runs when the product is built: writes the rules of calls.toml as programs of the kernel's (seccomp(2)), as C++ for
// runner/filter/seccomp_filter.cpp. libseccomp takes milliseconds for each, and no start has to wait for that. With the argument "numbers",
// it writes the numbers of the calls that a policy may name, for runner/filter/seccomp_filter.cpp.
#include "common/policy/policy_paths.hpp"
#include "runner/filter/call_rules.hpp"

#include <seccomp.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>

namespace {

using namespace pi_agent; // NOLINT(google-build-using-namespace): this file is the program

constexpr std::string_view withheld_from_root[] = {
#include "runner/filter/withheld_from_root.inc"
};
constexpr const char *root_calls[] = {
#include "runner/filter/root_calls.inc"
};
constexpr const char *mode_calls[] = {
#include "runner/filter/mode_calls.inc"
};
constexpr const char *gate_calls[] = {
#include "runner/filter/gate_calls.inc"
};

constexpr unsigned level_with_notifications = 5; // seccomp_api_get(3)

// libseccomp may not know these yet, and systemd lets through what the library of its host knows, which may be newer than the one here. All
// architectures have these numbers.
constexpr std::pair<std::string_view, int> newer_calls[] = {{"fchmodat2", 452}, {"file_setattr", 469}};

using Filter = std::unique_ptr<void, void (*)(scmp_filter_ctx)>;

void check(int result, const char *what)
{
    if (result < 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(-result));
}

// The library's macros for this are C only.
scmp_arg_cmp comparison_of(const ArgumentTest &test)
{
    if (!test.equal) return {test.index, SCMP_CMP_NE, test.value, 0};
    return {test.index, SCMP_CMP_MASKED_EQ, test.mask, test.value};
}

int number_of(std::string_view name)
{
    for (const auto &[newer, number] : newer_calls)
        if (name == newer) return number;
    return seccomp_syscall_resolve_name(std::string(name).c_str());
}

void add(const Filter &filter, std::uint32_t action, const char *name, const std::vector<ArgumentTest> &tests)
{
    const int number = number_of(name);
    if (number == __NR_SCMP_ERROR) return; // this architecture or libseccomp does not know it
    const auto comparisons = mapped(tests, [&](const auto &test) { return comparison_of(test); });
    check(seccomp_rule_add_array(filter.get(), action, number, static_cast<unsigned>(comparisons.size()), comparisons.data()), name);
}

void deny(const Filter &filter, std::initializer_list<DenialPart> parts)
{
    for (const auto &denial : denials_of(parts))
        add(filter, SCMP_ACT_ERRNO(static_cast<std::uint32_t>(denial.error)), denial.name, denial.tests);
}

Filter make_filter(std::uint32_t otherwise)
{
    Filter filter(seccomp_init(otherwise), seccomp_release);
    if (!filter) throw std::runtime_error("no filter could be made");
    // A call made as another architecture (32-bit, x32) ends the process.
    check(seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), "architecture");
    // The kernel remembers which calls always pass, but not calls of which an argument counts, like openat(2). These go through every
    // program at each call: a tree of numbers ends after eight comparisons, a list after some hundred.
    check(seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2), "tree");
    return filter;
}

template <typename Names>
void allow(const Filter &filter, const Names &names)
{
    for (const char *name : names) {
        const int number = seccomp_syscall_resolve_name(name); // negative: unknown here, and a list lets none of those through
        if (number >= 0) check(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, number, 0), name);
    }
}

void allow(const Filter &filter, const std::vector<CallAllowance> &allowances)
{
    for (const auto &allowance : allowances)
        add(filter, SCMP_ACT_ALLOW, allowance.name, {allowance.test});
}

// What lets nothing else through.
Filter calls_alone(const auto &names)
{
    Filter filter = make_filter(SCMP_ACT_ERRNO(EPERM));
    allow(filter, names);
    return filter;
}

Filter root_calls_alone()
{
    std::vector<const char *> kept;
    std::remove_copy_if(std::begin(allowed_calls), std::end(allowed_calls), std::back_inserter(kept), [](std::string_view name) {
        return std::find(std::begin(withheld_from_root), std::end(withheld_from_root), name) != std::end(withheld_from_root);
    });
    Filter filter = calls_alone(kept);
    allow(filter, root_calls);
    add(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3", {});
    allow(filter, allowances_of(for_root));
    return filter;
}

Filter allowed_calls_alone()
{
    Filter filter = calls_alone(allowed_calls);
    allow(filter, trace_calls);
    std::vector<CallAllowance> allowances = allowances_of(for_agents);
    for (const auto &call : allowable_calls) { // the session's own filter refuses those that the policy does not name
        allow(filter, std::array{call.name});
        // Allowed whatever their arguments.
        std::erase_if(allowances, [&](const CallAllowance &one) { return std::string_view(one.name) == call.name; });
    }
    deny(filter, {DenialPart::unknown});
    allow(filter, allowances);
    return filter;
}

Filter gate_calls_alone()
{
    Filter filter = calls_alone(gate_calls);
    allow(filter, allowances_of(for_gates));
    return filter;
}

Filter all_but_trace_calls()
{
    Filter filter = make_filter(SCMP_ACT_ALLOW);
    for (const char *name : trace_calls)
        add(filter, SCMP_ACT_ERRNO(EPERM), name, {});
    return filter;
}

Filter all_but(std::initializer_list<DenialPart> parts)
{
    Filter filter = make_filter(SCMP_ACT_ALLOW);
    deny(filter, parts);
    return filter;
}

Filter all_but_asked_calls()
{
    Filter filter = all_but({DenialPart::always, DenialPart::unknown, DenialPart::snapshot});
    for (const auto &call : denials_of({DenialPart::set_gid, DenialPart::nobodys_group, DenialPart::plain_list, DenialPart::tuning}))
        add(filter, SCMP_ACT_NOTIFY, call.name, call.tests);
    return filter;
}

void write(const char *name, const Filter &filter)
{
    const UniqueFd file = UniqueFd::adopt(memfd_create(name, MFD_CLOEXEC));
    if (!file) throw std::runtime_error("no temporary file could be made");
    check(seccomp_export_bpf(filter.get(), file.get()), name);
    lseek(file.get(), 0, SEEK_SET);
    std::size_t count = 0;
    std::printf("constexpr sock_filter %s[] = {\n", name);
    for (sock_filter line{}; read(file.get(), &line, sizeof line) == sizeof line; ++count)
        std::printf("    {0x%02x, %d, %d, 0x%08x},\n", line.code, line.jt, line.jf, line.k);
    std::printf("};\n");
    if (count == 0 || count > BPF_MAXINSNS) throw std::runtime_error(std::string(name) + " has a length that no kernel takes");
}

void write_number(const char *name)
{
    const int number = seccomp_syscall_resolve_name(name);
    if (number >= 0) std::printf("    {\"%s\", %d},\n", name, number); // a call that is unknown here is on no list, and so refused
}

void write_numbers()
{
    std::printf("constexpr CallNumber call_numbers[] = {\n");
    for (const auto &call : deniable_calls)
        write_number(call.name);
    for (const auto &call : allowable_calls)
        write_number(call.name);
    write_number("socket");
    std::printf("};\n");
}

} // namespace

int main(int count, char **arguments)
{
    try {
        if (count > 1 && std::string_view(arguments[1]) == "numbers") {
            write_numbers();
            return 0;
        }
        // The kernel here may differ from the kernel that runs the filters.
        if (seccomp_api_set(level_with_notifications) != 0) throw std::runtime_error("this libseccomp knows no notifications");
        write("root_call_program", root_calls_alone());
        write("call_program", allowed_calls_alone());
        write("no_tracing_program", all_but_trace_calls());
        write("no_attributes_program", all_but({DenialPart::attribute}));
        write("mode_call_program", calls_alone(mode_calls));
        write("gate_call_program", gate_calls_alone());
        write("agent_call_program",
              all_but({DenialPart::always, DenialPart::unknown, DenialPart::set_gid, DenialPart::snapshot, DenialPart::tuning}));
        write("asking_call_program", all_but_asked_calls());
        write("agent_call_program_without_tuning", // for a build with test seams
              all_but({DenialPart::always, DenialPart::unknown, DenialPart::set_gid, DenialPart::snapshot}));
        return 0;
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "make_call_filters: %s\n", failure.what());
        return 1;
    }
}
