// Loads the program with which the kernel finds the gate's listener for a connection, and attaches it to the session's namespace.
#include "runner/root/network/gate_sockets.hpp"

#include <arpa/inet.h>
#include <array>
#include <cstddef>
#include <cstring>
#include <linux/bpf.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace pi_agent {

namespace {

namespace look_up {

// Where a step stands that others jump to.
enum class Label { none, v4, gate, drop, pass };

struct Step {
    Label here;
    bpf_insn instruction;
    Label target;
};

// --- The few instructions that it needs (kernel, Documentation/bpf/standardization/instruction-set.rst).

using Register = unsigned char;
constexpr Register result = BPF_REG_0, first = BPF_REG_1, second = BPF_REG_2, third = BPF_REG_3, key = BPF_REG_5;
constexpr Register about = BPF_REG_6, listener = BPF_REG_7, assigned = BPF_REG_8; // kept over calls
constexpr Register frame = BPF_REG_10;
constexpr short key_place = -4; // in the frame

bpf_insn instruction(unsigned code, Register to, Register from, short offset, std::int32_t number)
{
    bpf_insn made{};
    made.code = static_cast<unsigned char>(code);
    made.dst_reg = to & 0xfU;
    made.src_reg = from & 0xfU;
    made.off = offset;
    made.imm = number;
    return made;
}

Step copy(Register to, Register from)
{
    return {Label::none, instruction(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0), Label::none};
}

Step set(Register to, std::int32_t number)
{
    return {Label::none, instruction(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, number), Label::none};
}

// A field of bpf_sk_lookup: 32 bits, addresses in the order of the network.
Step load(Register to, std::size_t field)
{
    return {Label::none, instruction(BPF_LDX | BPF_MEM | BPF_W, to, about, static_cast<short>(field), 0), Label::none};
}

Step go_on_at(Label target, unsigned condition, Register compared, std::uint32_t number)
{
    return {Label::none, instruction(BPF_JMP32 | condition | BPF_K, compared, 0, 0, static_cast<std::int32_t>(number)), target};
}

Step call(std::int32_t function)
{
    return {Label::none, instruction(BPF_JMP | BPF_CALL, 0, 0, 0, function), Label::none};
}

Step at(Label here, Step step)
{
    step.here = here;
    return step;
}

// Chooses by the address that a connection goes to. The loopback is the session's own; everything else is the gate's, and where it does not
// listen any more, nobody's.
std::vector<Step> steps(FdRef listeners)
{
    constexpr std::size_t address = offsetof(bpf_sk_lookup, local_ip6);
    const Step or_second = {Label::none, instruction(BPF_ALU64 | BPF_OR | BPF_X, second, third, 0, 0), Label::none};
    const Step end = {Label::none, instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0), Label::none};
    return {
        copy(about, first),
        load(second, offsetof(bpf_sk_lookup, protocol)),
        go_on_at(Label::pass, BPF_JNE, second, IPPROTO_TCP),
        set(key, 0),
        load(second, offsetof(bpf_sk_lookup, family)),
        go_on_at(Label::v4, BPF_JEQ, second, AF_INET),
        // ::1 has three words of zeros, and 1
        set(key, 1),
        load(second, address),
        load(third, address + 4),
        or_second,
        load(third, address + 8),
        or_second,
        go_on_at(Label::gate, BPF_JNE, second, 0),
        load(second, address + 12),
        go_on_at(Label::pass, BPF_JEQ, second, htonl(1)),
        go_on_at(Label::gate, BPF_JNE, second, htonl(1)),
        // 127.0.0.0/8
        at(Label::v4, load(second, offsetof(bpf_sk_lookup, local_ip4))),
        {Label::none, instruction(BPF_ALU | BPF_AND | BPF_K, second, 0, 0, static_cast<std::int32_t>(htonl(0xff000000U))), Label::none},
        go_on_at(Label::pass, BPF_JEQ, second, htonl(0x7f000000U)),
        // The listener, held while it is looked at.
        at(Label::gate, {Label::none, instruction(BPF_STX | BPF_MEM | BPF_W, frame, key, key_place, 0), Label::none}),
        copy(second, frame),
        // NOLINTBEGIN(misc-redundant-expression): the names say what an instruction is, and several of them are 0
        {Label::none, instruction(BPF_ALU64 | BPF_ADD | BPF_K, second, 0, 0, key_place), Label::none},
        {Label::none, instruction(BPF_LD | BPF_DW | BPF_IMM, first, BPF_PSEUDO_MAP_FD, 0, listeners.get()), Label::none},
        // NOLINTEND(misc-redundant-expression)
        {Label::none, instruction(0, 0, 0, 0, 0), Label::none}, // the second half of a number of 64 bits
        call(BPF_FUNC_map_lookup_elem),
        {Label::none, instruction(BPF_JMP | BPF_JEQ | BPF_K, result, 0, 0, 0), Label::drop},
        copy(listener, result),
        copy(first, about),
        copy(second, listener),
        set(third, 0),
        call(BPF_FUNC_sk_assign),
        copy(assigned, result),
        copy(first, listener),
        call(BPF_FUNC_sk_release),
        go_on_at(Label::pass, BPF_JEQ, assigned, 0),
        at(Label::drop, set(result, SK_DROP)),
        end,
        at(Label::pass, set(result, SK_PASS)),
        end,
    };
}

std::vector<bpf_insn> assemble(const std::vector<Step> &program)
{
    std::array<std::size_t, static_cast<std::size_t>(Label::pass) + 1> places{};
    for (std::size_t index = 0; index < program.size(); ++index)
        places.at(static_cast<std::size_t>(program[index].here)) = index;
    std::vector<bpf_insn> instructions;
    for (std::size_t index = 0; index < program.size(); ++index) {
        bpf_insn one = program[index].instruction;
        if (program[index].target != Label::none) // counted from the next instruction
            one.off = static_cast<short>(places.at(static_cast<std::size_t>(program[index].target)) - index - 1);
        instructions.push_back(one);
    }
    return instructions;
}

} // namespace look_up

// --- What the kernel is asked.

UniqueFd ask_kernel(bpf_cmd command, bpf_attr &attribute, const char *action)
{
    UniqueFd made = UniqueFd::adopt(static_cast<int>(syscall(SYS_bpf, command, &attribute, sizeof attribute)));
    if (!made)
        throw Failure(FailureKind::network_not_enforced,
                      "this host cannot lead connections of a session to its gate: " + std::string(SystemFailure(errno, action).what()) +
                          "; network: {hosts: […]} needs a kernel from 5.9 on with CONFIG_BPF_SYSCALL and CONFIG_NET_SOCK_MSG, and the "
                          "right to load such programs; or change the policy's network");
    return made;
}

std::uint64_t number_of(const void *pointer)
{
    return reinterpret_cast<std::uint64_t>(pointer); // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast): as bpf(2) wants pointers
}

UniqueFd make_table(const std::array<FdRef, 2> &listeners)
{
    bpf_attr table{};
    table.map_type = BPF_MAP_TYPE_SOCKMAP;
    table.key_size = sizeof(std::uint32_t);
    table.value_size = sizeof(std::uint64_t);
    table.max_entries = static_cast<std::uint32_t>(listeners.size());
    UniqueFd made = ask_kernel(BPF_MAP_CREATE, table, "making a table of sockets");
    for (std::uint32_t index = 0; index < listeners.size(); ++index) {
        if (listeners.at(index).get() < 0) continue;
        const auto socket = static_cast<std::uint64_t>(listeners.at(index).get());
        bpf_attr entry{};
        entry.map_fd = static_cast<std::uint32_t>(made.get());
        entry.key = number_of(&index);
        entry.value = number_of(&socket);
        if (syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &entry, sizeof entry) != 0) throw_errno("putting the gate's listeners into a table");
    }
    return made;
}

} // namespace

UniqueFd direct_to_gate(const AsRoot & /*root*/, FdRef network_namespace, FdRef v4, FdRef v6)
{
    const UniqueFd table = make_table({v4, v6});
    const std::vector<bpf_insn> instructions = look_up::assemble(look_up::steps(table));
    bpf_attr program{};
    program.prog_type = BPF_PROG_TYPE_SK_LOOKUP;
    program.expected_attach_type = BPF_SK_LOOKUP;
    program.insns = number_of(instructions.data());
    program.insn_cnt = static_cast<std::uint32_t>(instructions.size());
    program.license = number_of("GPL");
    const UniqueFd loaded = ask_kernel(BPF_PROG_LOAD, program, "loading the program that looks for listeners");
    bpf_attr link{};
    link.link_create.prog_fd = static_cast<std::uint32_t>(loaded.get());
    link.link_create.target_fd = static_cast<std::uint32_t>(network_namespace.get());
    link.link_create.attach_type = BPF_SK_LOOKUP;
    return ask_kernel(BPF_LINK_CREATE, link, "attaching it to the session's network");
}

} // namespace pi_agent
