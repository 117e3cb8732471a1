// Makes a session's own network lead to its gate, and nowhere else.
#include "runner/root/method/sandbox.hpp"

#include "runner/root/mount/mounts.hpp"

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cstring>

namespace pi_agent {

// --- Loads the program with which the kernel finds the gate's listener for a connection, and attaches it to the session's namespace.

namespace {

namespace look_up {

// Where a step stands that others jump to.
enum class Label { none, v4, gate, drop, pass };

using Register = unsigned char;
constexpr Register result = BPF_REG_0, first = BPF_REG_1, second = BPF_REG_2, third = BPF_REG_3, key = BPF_REG_5;
constexpr Register about = BPF_REG_6, listener = BPF_REG_7, assigned = BPF_REG_8; // kept over calls
constexpr Register frame = BPF_REG_10;
constexpr short key_place = -4; // in the frame

// The few instructions that it needs (kernel, Documentation/bpf/standardization/instruction-set.rst). The first four are of a register and
// a second one, or a number.
// NOLINTBEGIN(misc-redundant-expression): the names say what an instruction is, and several of them are 0
constexpr unsigned copy = BPF_ALU64 | BPF_MOV | BPF_X, set = BPF_ALU64 | BPF_MOV | BPF_K;
constexpr unsigned join = BPF_ALU64 | BPF_OR | BPF_X, mask = BPF_ALU | BPF_AND | BPF_K, add = BPF_ALU64 | BPF_ADD | BPF_K;
constexpr unsigned load = BPF_LDX | BPF_MEM | BPF_W, store = BPF_STX | BPF_MEM | BPF_W; // 32 bits; addresses in the order of the network
constexpr unsigned load_table = BPF_LD | BPF_DW | BPF_IMM;                              // of two halves
constexpr unsigned if_equal = BPF_JMP32 | BPF_JEQ | BPF_K, unless_equal = BPF_JMP32 | BPF_JNE | BPF_K;
constexpr unsigned if_none = BPF_JMP | BPF_JEQ | BPF_K, call = BPF_JMP | BPF_CALL, end = BPF_JMP | BPF_EXIT;
// NOLINTEND(misc-redundant-expression)

struct Step {
    unsigned code;
    Register to = 0, from = 0;
    short offset = 0;
    std::uint32_t number = 0;
    Label target = Label::none; // of a jump
    Label here = Label::none;
};

// Chooses by the address that a connection goes to. The loopback is the session's own; everything else is the gate's, and where it does not
// listen any more, nobody's.
std::vector<Step> steps(FdRef listeners)
{
    constexpr short address = offsetof(bpf_sk_lookup, local_ip6);
    return {
        {copy, about, first},
        {load, second, about, offsetof(bpf_sk_lookup, protocol)},
        {unless_equal, second, 0, 0, IPPROTO_TCP, Label::pass},
        {set, key},
        {load, second, about, offsetof(bpf_sk_lookup, family)},
        {if_equal, second, 0, 0, AF_INET, Label::v4},
        // ::1 has three words of zeros, and 1
        {set, key, 0, 0, 1},
        {load, second, about, address},
        {load, third, about, address + 4},
        {join, second, third},
        {load, third, about, address + 8},
        {join, second, third},
        {unless_equal, second, 0, 0, 0, Label::gate},
        {load, second, about, address + 12},
        {if_equal, second, 0, 0, htonl(1), Label::pass},
        {unless_equal, second, 0, 0, htonl(1), Label::gate},
        // 127.0.0.0/8
        {load, second, about, offsetof(bpf_sk_lookup, local_ip4), 0, Label::none, Label::v4},
        {mask, second, 0, 0, htonl(0xff000000U)},
        {if_equal, second, 0, 0, htonl(0x7f000000U), Label::pass},
        // The listener, held while it is looked at.
        {store, frame, key, key_place, 0, Label::none, Label::gate},
        {copy, second, frame},
        {add, second, 0, 0, static_cast<std::uint32_t>(key_place)},
        {load_table, first, BPF_PSEUDO_MAP_FD, 0, static_cast<std::uint32_t>(listeners.get())},
        {0}, // its second half
        {call, 0, 0, 0, BPF_FUNC_map_lookup_elem},
        {if_none, result, 0, 0, 0, Label::drop},
        {copy, listener, result},
        {copy, first, about},
        {copy, second, listener},
        {set, third},
        {call, 0, 0, 0, BPF_FUNC_sk_assign},
        {copy, assigned, result},
        {copy, first, listener},
        {call, 0, 0, 0, BPF_FUNC_sk_release},
        {if_equal, assigned, 0, 0, 0, Label::pass},
        {set, result, 0, 0, SK_DROP, Label::none, Label::drop},
        {end},
        {set, result, 0, 0, SK_PASS, Label::none, Label::pass},
        {end},
    };
}

std::vector<bpf_insn> assemble(const std::vector<Step> &program)
{
    std::array<std::size_t, static_cast<std::size_t>(Label::pass) + 1> places{};
    for (std::size_t index = 0; index < program.size(); ++index)
        places.at(static_cast<std::size_t>(program[index].here)) = index;
    std::vector<bpf_insn> instructions;
    for (const Step &step : program) {
        bpf_insn one{};
        one.code = static_cast<unsigned char>(step.code);
        one.dst_reg = step.to & 0xfU;
        one.src_reg = step.from & 0xfU;
        one.off = step.offset;
        one.imm = static_cast<std::int32_t>(step.number);
        if (step.target != Label::none) // counted from the next instruction
            one.off = static_cast<short>(places.at(static_cast<std::size_t>(step.target)) - instructions.size() - 1);
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

// As long as the result is open, each TCP connection of that namespace arrives at `v4` or `v6`, whatever its port, unless it goes to the
// loopback (BPF_PROG_TYPE_SK_LOOKUP of the kernel). A listener at all addresses would take the port from servers of the session, and know
// only the ports that it was opened for. Where the gate has closed its listener the connection is refused. `v6` may be empty.
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

// --- Enters the session's network namespace for one thread: brings the loopback up, makes every address local, and listens.

constexpr int waiting_connections = 1024;
constexpr int route_patience_seconds = 2;
constexpr const char *loopback = "lo";
// glibc answers AF_INET with AI_ADDRCONFIG only where there is an address besides 127.0.0.1 (its check_pf.c); `getent ahostsv4` asks so.
constexpr const char *second_loopback = "lo:1";
constexpr std::uint32_t second_loopback_address = 0x7f000002; // 127.0.0.2

UniqueFd make_socket(int family, int type, int protocol = 0)
{
    UniqueFd made = UniqueFd::adopt(socket(family, type | SOCK_CLOEXEC, protocol));
    if (!made && errno != EAFNOSUPPORT) throw_errno("making a socket for the gate");
    return made;
}

// Connections that a listener takes for another port hold that port as it does (SO_REUSEADDR): a server of the session may have it as well.
void set_on(FdRef socket, int level, int option)
{
    const int on = 1;
    if (setsockopt(socket.get(), level, option, &on, sizeof on) != 0) throw_errno("setting an option of the gate's socket");
}

[[noreturn]] void refuse_port(const char *address, std::uint16_t port)
{
    throw_errno(std::string("listening at ") + address + " port " + std::to_string(port) + " of the session");
}

// Empty where this kernel has no IPv6, or none there.
UniqueFd listen_at(const char *address, std::uint16_t port, int type)
{
    sockaddr_in v4{AF_INET, htons(port), {}, {}};
    sockaddr_in6 v6{AF_INET6, htons(port), 0, {}, 0};
    const bool is_v6 = inet_pton(AF_INET, address, &v4.sin_addr) != 1;
    if (is_v6 && inet_pton(AF_INET6, address, &v6.sin6_addr) != 1) throw Failure(ExitStatus::internal, "the gate has no such address");
    UniqueFd made = make_socket(is_v6 ? AF_INET6 : AF_INET, type);
    if (!made && is_v6) return made;
    if (!made) refuse_port(address, port);
    if (type == SOCK_STREAM) set_on(made, SOL_SOCKET, SO_REUSEADDR);
    if (is_v6) set_on(made, IPPROTO_IPV6, IPV6_V6ONLY);
    // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): as bind(2) wants it
    const bool is_bound = (is_v6 ? bind(made.get(), reinterpret_cast<const sockaddr *>(&v6), sizeof v6)
                                 : bind(made.get(), reinterpret_cast<const sockaddr *>(&v4), sizeof v4)) == 0;
    // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
    if (!is_bound && is_v6 && errno == EADDRNOTAVAIL) return {};
    if (!is_bound || (type == SOCK_STREAM && listen(made.get(), waiting_connections) != 0)) refuse_port(address, port);
    return made;
}

void set_loopback_up()
{
    const UniqueFd socket = make_socket(AF_INET, SOCK_DGRAM);
    ifreq request{};
    std::strncpy(request.ifr_name, loopback, sizeof request.ifr_name - 1);
    if (ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) throw_errno("looking at the session's loopback");
    const unsigned flags = static_cast<unsigned>(request.ifr_flags);
    request.ifr_flags = static_cast<short>(flags | IFF_UP);
    if ((flags & IFF_UP) == 0 && ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) // systemd and podman do it themselves
        throw_errno("bringing the session's loopback up");
    const sockaddr_in second{AF_INET, 0, {htonl(second_loopback_address)}, {}};
    std::strncpy(request.ifr_name, second_loopback, sizeof request.ifr_name - 1);
    std::memcpy(&request.ifr_addr, &second, sizeof request.ifr_addr);
    if (ioctl(socket.get(), SIOCSIFADDR, &request) != 0) throw_errno("adding an address to the session's loopback");
}

// Makes all addresses of the family local (rtnetlink(7)). What is connected to them comes from the loopback's own address: the kernel would
// take the very address that is asked for (of IPv4 alone), and programs that find out their own address by such a socket would take that.
void make_all_local(unsigned char family)
{
    struct Order {
        nlmsghdr header;
        rtmsg route;
        rtattr about_device;
        int device;
        rtattr about_source;
        in_addr source;
    } order{};
    static_assert(sizeof(Order) == NLMSG_LENGTH(sizeof(rtmsg)) + RTA_SPACE(sizeof(int)) + RTA_LENGTH(sizeof(in_addr)));
    const std::size_t size = family == AF_INET ? sizeof order : offsetof(Order, about_source);
    order.header = {static_cast<std::uint32_t>(size), RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, 1, 0};
    order.route.rtm_family = family;
    order.route.rtm_table = RT_TABLE_LOCAL;
    order.route.rtm_protocol = RTPROT_STATIC;
    order.route.rtm_scope = RT_SCOPE_HOST;
    order.route.rtm_type = RTN_LOCAL;
    order.about_device = {RTA_LENGTH(sizeof(int)), RTA_OIF};
    order.device = static_cast<int>(if_nametoindex(loopback));
    order.about_source = {RTA_LENGTH(sizeof(in_addr)), RTA_PREFSRC};
    order.source.s_addr = htonl(INADDR_LOOPBACK);
    const UniqueFd netlink = make_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    if (!netlink || ::send(netlink.get(), &order, size, 0) != static_cast<ssize_t>(size)) throw_errno("asking for the session's routes");
    struct Answer {
        nlmsghdr header;
        nlmsgerr result;
    } answer{};
    if (!wait_for_input(netlink, in_seconds(route_patience_seconds))) throw Failure(ExitStatus::system_failure, "no answer about routes");
    const ssize_t length = recv(netlink.get(), &answer, sizeof answer, 0);
    if (length < static_cast<ssize_t>(sizeof answer) || answer.header.nlmsg_type != NLMSG_ERROR)
        throw Failure(ExitStatus::system_failure, "the kernel gave a strange answer about routes");
    if (answer.result.error != 0) throw SystemFailure(-answer.result.error, "making the session's addresses local");
}

void require_own(FdRef network_namespace)
{
    const struct stat facts = examine(network_namespace, "examining the session's network namespace");
    for (const char *process : {"1", "self"}) {
        const auto other = namespace_of(process, "net");
        if (!other) throw_errno("reading the host's network namespace");
        if (*other == NamespaceId{facts.st_dev, facts.st_ino})
            throw Failure(FailureKind::network_not_enforced, "the session has no network namespace of its own, so no gate is opened in it");
    }
}

void add(GateSockets &sockets, ListenerKind kind, std::uint16_t port, UniqueFd socket)
{
    if (socket) sockets.listeners.push_back({{kind, port}, std::move(socket)});
}

// In the session's namespace.
void listen_in_session(GateSockets &sockets, UniqueFd &v4, UniqueFd &v6, const std::vector<std::uint16_t> &host_ports)
{
    set_loopback_up();
    // Named ports first: the kernel chooses one that is left for the two at port 0, and a rule may name any.
    for (const std::uint16_t port : host_ports)
        for (const char *address : {loopback_v4, loopback_v6})
            add(sockets, ListenerKind::transparent, port, listen_at(address, port, SOCK_STREAM));
    v4 = listen_at(loopback_v4, 0, SOCK_STREAM);
    v6 = listen_at(loopback_v6, 0, SOCK_STREAM);
    make_all_local(AF_INET);
    if (v6) make_all_local(AF_INET6);
    add(sockets, ListenerKind::proxy, gate_proxy_port, listen_at(loopback_v4, gate_proxy_port, SOCK_STREAM));
    add(sockets, ListenerKind::reverse, gate_route_port, listen_at(loopback_v4, gate_route_port, SOCK_STREAM));
    add(sockets, ListenerKind::dns_udp, name_server_port, listen_at(name_server_inside, name_server_port, SOCK_DGRAM));
    add(sockets, ListenerKind::dns_tcp, name_server_port, listen_at(name_server_inside, name_server_port, SOCK_STREAM));
}

} // namespace

GateSockets open_gate_sockets(const AsRoot &root, FdRef network_namespace, const std::vector<std::uint16_t> &host_ports)
{
    require_own(network_namespace); // in the host's, every address of the world would become this host's
    GateSockets sockets;
    UniqueFd v4, v6;
    with_network_of(root, network_namespace, [&] { listen_in_session(sockets, v4, v6, host_ports); });
    sockets.lookup = direct_to_gate(root, network_namespace, v4, v6);
    add(sockets, ListenerKind::transparent, 0, std::move(v4));
    add(sockets, ListenerKind::transparent, 0, std::move(v6));
    fault_point("gate-listens");
    return sockets;
}

} // namespace pi_agent
