// Reads hosts, compares what a session asks for with the rules, and addresses with where the kernel sends them.
#include "gate/rules.hpp"

#include "common/seams/seams.hpp"

#include <boost/asio/ip/network_v4.hpp>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cstring>

namespace pi_agent {

namespace ip = boost::asio::ip;

// Reading hosts strictly, into one form.

Host to_host(const Address &address)
{
    if (!address.is_v6()) return {address.to_string(), address};
    const ip::address_v6 six = address.to_v6();
    // Without its zone, which a socket of the session has for a link-local address: no rule names one, and no message takes its "%".
    const Address one = six.is_v4_mapped() ? Address(ip::make_address_v4(ip::v4_mapped, six)) : Address(ip::address_v6(six.to_bytes()));
    return {one.to_string(), one};
}

std::optional<Host> read_host(std::string_view text)
{
    const bool has_brackets = text.starts_with('[') && text.ends_with(']') && text.find(':') != text.npos;
    const auto host = read_one_host(has_brackets ? text.substr(1, text.size() - 2) : text);
    if (!host) return std::nullopt;
    boost::system::error_code no_address;
    const Address address = boost::asio::ip::make_address(*host, no_address);
    return Host{*host, no_address ? std::nullopt : std::optional(address)};
}

std::optional<Target> read_target(std::string_view text, std::uint16_t usual_port)
{
    const std::size_t colon = text.rfind(':');
    const bool has_port = colon != text.npos && text.find(']', colon) == text.npos;
    if (has_port && text.front() != '[' && text.find(':') != colon) return std::nullopt; // an address of IPv6 without brackets
    const auto host = read_host(has_port ? text.substr(0, colon) : text);
    const auto digits = has_port ? text.substr(colon + 1) : std::string_view();
    const auto port = has_port ? to_number<std::uint16_t>(digits) : std::optional(usual_port);
    if (!host || !port || *port == 0 || digits.size() > 5) return std::nullopt;
    return Target{*host, *port};
}

bool is_loopback(const Host &host) noexcept
{
    return host.address ? host.address->is_loopback() : host.text == "localhost" || host.text.ends_with(".localhost");
}

// Comparing what a session asks for with the rules, as everybody compares them (common/policy/host_rule.hpp).

GateRules::GateRules(std::vector<GateRule> rules) : written_(std::move(rules))
{
    for (const auto &written : written_) {
        auto parsed = parse_host_rule(host_and_port(written.host, written.port));
        const auto *rule = std::get_if<HostRule>(&parsed);
        if (rule == nullptr || rule->host != written.host)
            throw Failure(ExitStatus::internal, "the gate got a rule that is not one: " + written.host + " (" + written.where + ")");
        rules_.push_back(*rule);
    }
}

RuleAnswer GateRules::find(const Host &host, std::uint16_t port) const
{
    const HostMatch match = find_rule(rules_, {host.text, port});
    const auto written = [this](const HostRule *rule) { return rule == nullptr ? nullptr : &written_[std::size_t(rule - rules_.data())]; };
    return {written(match.rule), written(match.other_port)};
}

bool GateRules::may_lead_to(const Address &address, std::uint16_t port) const
{
    const HostRule asked{address.to_string(), port};
    return is_of_internet(address) || !defence_is_on("gate-addresses") ||
           std::any_of(rules_.begin(), rules_.end(), [&](const HostRule &rule) { return is_address(rule) && covers(rule, asked); });
}

// Ranges of addresses that are not of the Internet.

namespace {

constexpr const char *reserved[] = {
#include "gate/reserved_ranges.inc"
};

// One of the other family is in none.
bool is_in(const Address &address, const char *range)
{
    boost::system::error_code other_family;
    if (address.is_v4()) {
        const ip::network_v4 network = ip::make_network_v4(range, other_family);
        return !other_family && ip::network_v4(address.to_v4(), network.prefix_length()).canonical() == network;
    }
    const ip::network_v6 network = ip::make_network_v6(range, other_family);
    return !other_family && ip::network_v6(address.to_v6(), network.prefix_length()).canonical() == network;
}

// What the address stands for where it has another one inside that a gateway or the kernel would reach: IPv4 in ::ffff:0:0/96 (mapped) and
// in 64:ff9b::/96 (NAT64). Otherwise itself.
Address within(const Address &address)
{
    if (!is_in(address, "::ffff:0:0/96") && !is_in(address, "64:ff9b::/96")) return address;
    const auto bytes = address.to_v6().to_bytes();
    return ip::address_v4({bytes[12], bytes[13], bytes[14], bytes[15]});
}

// Of an address below a prefix of so many bits. The bits from 64 to 71 are left out.
ip::address_v4 inside_of(const ip::address_v6 &address, unsigned bits)
{
    constexpr std::size_t left_out = 8;
    const auto bytes = address.to_bytes();
    ip::address_v4::bytes_type inside{};
    std::size_t at = bits / 8;
    for (auto &byte : inside) {
        if (at == left_out) ++at;
        byte = bytes.at(at++);
    }
    return ip::address_v4(inside);
}

constexpr unsigned the_route_itself = RTM_F_FIB_MATCH; // and not what it comes to for one address
// Of a network. A route without a gateway for more addresses is one to everywhere, or to a half of it.
constexpr unsigned fewest_bits_v4 = 8, fewest_bits_v6 = 16;

} // namespace

std::vector<ip::network_v6> translating_prefixes(const std::vector<Address> &known)
{
    constexpr unsigned lengths[] = {32, 40, 48, 56, 64, 96}; // RFC 6052, 2.2
    std::vector<ip::network_v6> prefixes;
    for (const auto &address : known) {
        if (!address.is_v6()) continue;
        for (const unsigned bits : lengths) {
            const ip::network_v6 prefix(address.to_v6(), static_cast<unsigned short>(bits));
            const std::uint32_t inside = inside_of(address.to_v6(), bits).to_uint();
            if (inside == 0xC00000AA || inside == 0xC00000AB) prefixes.push_back(prefix.canonical()); // 192.0.0.170 and .171 (RFC 7050, 8)
        }
    }
    return prefixes;
}

Address translated(const Address &address, const std::vector<ip::network_v6> &prefixes)
{
    const auto below = std::find_if(prefixes.begin(), prefixes.end(), [&](const auto &prefix) {
        return address.is_v6() && ip::network_v6(address.to_v6(), prefix.prefix_length()).canonical() == prefix;
    });
    if (below == prefixes.end() || !defence_is_on("gate-translation")) return address;
    return inside_of(address.to_v6(), below->prefix_length());
}

bool is_of_internet(const Address &address)
{
    const Address one = within(address);
    const bool is_assigned = one.is_v4() || (one.to_v6().scope_id() == 0 && is_in(one, "2000::/3"));
    return is_assigned && std::none_of(std::begin(reserved), std::end(reserved), [&](const char *range) { return is_in(one, range); });
}

// Asking the kernel for routes (rtnetlink(7), RTM_GETROUTE).

HostRoutes::HostRoutes() : netlink_(UniqueFd::adopt(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)))
{
    if (!netlink_) throw_errno("opening a socket for the host's routes");
}

Place HostRoutes::place_of(const Address &address)
{
    const Answer found = ask(address, 0);
    if (found.problem == ENETUNREACH || found.problem == EHOSTUNREACH) return Place::away;
    if (found.problem != 0 || found.type != RTN_UNICAST) return Place::here; // its own, or one of all hosts
    if (found.has_gateway) return Place::away;
    const Answer route = ask(address, the_route_itself);
    if (route.problem != 0) return Place::here;
    return route.bits < (address.is_v6() ? fewest_bits_v6 : fewest_bits_v4) ? Place::away : Place::near;
}

HostRoutes::Answer HostRoutes::ask(const Address &address, unsigned flags)
{
    struct Question {
        nlmsghdr header;
        rtmsg route;
        rtattr about_address;
        std::array<unsigned char, 16> address;
    } question{};
    const auto put = [&](const auto &bytes) {
        std::memcpy(question.address.data(), bytes.data(), bytes.size());
        return bytes.size();
    };
    const std::size_t size = address.is_v6() ? put(address.to_v6().to_bytes()) : put(address.to_v4().to_bytes());
    question.header = {static_cast<std::uint32_t>(offsetof(Question, address) + size), RTM_GETROUTE, NLM_F_REQUEST, ++question_, 0};
    question.route.rtm_family = address.is_v6() ? AF_INET6 : AF_INET;
    question.route.rtm_dst_len = static_cast<unsigned char>(size * 8);
    question.route.rtm_flags = flags;
    question.about_address = {static_cast<unsigned short>(RTA_LENGTH(size)), RTA_DST};
    const auto length = static_cast<ssize_t>(question.header.nlmsg_len);
    if (send(netlink_.get(), &question, question.header.nlmsg_len, MSG_DONTWAIT) != length) return {errno};
    std::array<char, 8192> bytes{};
    for (;;) { // the kernel has answered when the question is sent
        const ssize_t count = recv(netlink_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return {errno};
        const auto came = static_cast<std::size_t>(count);
        nlmsghdr header{};
        std::memcpy(&header, bytes.data(), sizeof header);
        if (came < NLMSG_LENGTH(sizeof(rtmsg)) || header.nlmsg_seq != question_) continue; // of an earlier question
        Answer answer;
        if (header.nlmsg_type != RTM_NEWROUTE) {
            nlmsgerr error{};
            std::memcpy(&error, bytes.data() + NLMSG_HDRLEN, sizeof error.error);
            answer.problem = error.error < 0 ? -error.error : EPROTO;
            return answer;
        }
        rtmsg route{};
        std::memcpy(&route, bytes.data() + NLMSG_HDRLEN, sizeof route);
        answer.type = route.rtm_type;
        answer.bits = route.rtm_dst_len;
        rtattr attribute{};
        for (std::size_t at = NLMSG_LENGTH(sizeof route); at + sizeof attribute <= came; at += RTA_ALIGN(attribute.rta_len)) {
            std::memcpy(&attribute, bytes.data() + at, sizeof attribute);
            if (attribute.rta_len < sizeof attribute) return {EPROTO};
            answer.has_gateway = answer.has_gateway || attribute.rta_type == RTA_GATEWAY || attribute.rta_type == RTA_VIA;
        }
        return answer;
    }
}

// What the runner sends at the start, checked.

bool GateRule::is_host_text(std::string_view host) noexcept
{
    if (host.starts_with("*.")) host.remove_prefix(2);
    return !host.empty() && is_host_alphabet(host);
}

bool GateProvider::is_sound(const GateProvider &provider) noexcept
{
    static constexpr std::string_view upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const auto is_method = [](const std::string &text) { return !text.empty() && text.find_first_not_of(upper) == std::string::npos; };
    const auto is_path = [](const std::string &text) { return text.starts_with('/') && text.size() <= 256 && is_printable(text); };
    constexpr std::string_view headers[] = {"authorization", "x-api-key", "x-goog-api-key", "api-key"};
    return !provider.host.empty() && is_host_alphabet(provider.host) &&
           std::find(std::begin(headers), std::end(headers), provider.header) != std::end(headers) &&
           (provider.prefix.empty() || provider.prefix == "Bearer ") && !provider.key.empty() && is_printable(provider.key) &&
           provider.key.find(' ') == std::string::npos && provider.methods.size() == provider.paths.size() &&
           std::all_of(provider.methods.begin(), provider.methods.end(), is_method) &&
           std::all_of(provider.paths.begin(), provider.paths.end(), is_path);
}

GateOrder receive_gate_order(FdRef channel, Deadline deadline)
{
    std::optional<Packet> record = receive_record(channel, deadline);
    if (!record || !record->fds.empty()) throw ProtocolError("no order for the gate came");
    GateOrder order = std::get<GateOrder>(decode_one_of<std::variant<GateOrder>>(record->bytes, "no order for the gate came"));
    explicit_bzero(record->bytes.data(), record->bytes.size());
    return order;
}

ReceivedListener receive_gate_listener(FdRef channel, Deadline deadline)
{
    std::optional<Packet> packet = receive_packet(channel, deadline);
    if (!packet || packet->fds.size() != 1) throw ProtocolError("a listener of the gate is missing");
    return {std::get<GateListener>(decode_one_of<std::variant<GateListener>>(packet->bytes, "a listener of the gate is missing")),
            std::move(packet->fds.front())};
}

} // namespace pi_agent
