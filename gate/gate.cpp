// Reaching the outside by the rules.
#include "gate/gate.hpp"

#include "common/seams/seams.hpp"
#include "gate/addresses.hpp"

#include <boost/asio/ip/udp.hpp>

#include <algorithm>

namespace pi_agent {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

Reached not_reached(std::optional<DenialReason> reason, const std::string &where)
{
    return {std::nullopt, reason, where};
}

Reached refused_by(const RuleAnswer &answer)
{
    return answer.almost == nullptr ? not_reached(DenialReason::no_rule, "") : not_reached(DenialReason::other_port, answer.almost->where);
}

// Whether the address is the host's own: a socket can have no other. True where nobody can say.
bool is_own(asio::io_context &loop, const Address &address)
{
    using asio::ip::udp;
    const Address nobodys = asio::ip::make_address(address.is_v6() ? "2001:db8::1" : "192.0.2.1"); // RFC 3849, RFC 5737
    boost::system::error_code problem;
    udp::socket probe(loop);
    probe.open(address.is_v6() ? udp::v6() : udp::v4(), problem);
    if (problem) return true;
    probe.bind({nobodys, 0}, problem);
    if (!problem) return false; // here a socket can have any (net.ipv4.ip_nonlocal_bind)
    probe.bind({address, 0}, problem);
    return problem != boost::system::errc::address_not_available;
}

// Of the host itself, by its own address on one of its networks: what listens there trusts who comes from the host. Both ends are then the
// same, but for a second address in one network: the kernel goes there from the first.
bool is_this_host(asio::io_context &loop, const tcp::socket &socket)
{
    boost::system::error_code problem;
    const tcp::endpoint ours = socket.local_endpoint(problem);
    const tcp::endpoint theirs = socket.remote_endpoint(problem);
    return (problem || ours.address() == theirs.address() || is_own(loop, theirs.address())) && defence_is_on("gate-own-address");
}

void dial_good(Gate &gate, const Target &target, const std::string &where, const std::vector<Address> &good, WhenReached when_reached)
{
    const bool is_named = is_loopback(target.host) || target.host.address;
    dial(gate.loop, good, target.port,
         [&gate, where, is_named, when = std::move(when_reached)](const boost::system::error_code &problem, tcp::socket socket) {
             if (problem) return when(not_reached({}, where));
             boost::system::error_code gone;
             const tcp::endpoint there = socket.remote_endpoint(gone);
             const bool may_be_here = is_named || (!gone && gate.rules.find(to_host(there.address()), there.port()).rule != nullptr);
             if (!may_be_here && is_this_host(gate.loop, socket)) return when(not_reached(DenialReason::private_address, where));
             when({std::move(socket), {}, where});
         });
}

void reach_by_name(Gate &gate, const Target &target, const std::string &where, WhenReached when_reached)
{
    gate.lookup.find(target.host.text, [&gate, where, target, when = std::move(when_reached)](const Lookup::Answer &found) {
        // Of a name that nobody answered for, nothing is denied: the host's own programs do not find it either.
        if (found.addresses.empty())
            return when(not_reached(found.is_known ? std::optional(DenialReason::no_address) : std::nullopt, where));
        std::vector<Address> good;
        std::copy_if(found.addresses.begin(), found.addresses.end(), std::back_inserter(good),
                     [&](const Address &address) { return gate.rules.may_lead_to(address, target.port); });
        if (good.empty()) return when(not_reached(DenialReason::private_address, where));
        dial_good(gate, target, where, good, when);
    });
}

} // namespace

Gate::Gate(asio::io_context &the_loop, FdRef channel, const GateOrder &order)
    : loop(the_loop), idle(order.idle_seconds), rules(order.rules), denials(the_loop, channel), lookup(the_loop)
{
}

std::shared_ptr<void> Gate::count_connection(bool is_at_route)
{
    const std::size_t more = is_at_route ? 1 : 0;
    if (connections >= connection_limit || at_route + more > route_limit) return {};
    ++connections;
    at_route += more;
    return {this, [more](Gate *gate) {
                --gate->connections;
                gate->at_route -= more;
            }};
}

std::optional<Reached> why_not(const Gate &gate, const Target &target)
{
    const RuleAnswer answer = gate.rules.find(target.host, target.port);
    return answer.rule == nullptr ? std::optional(refused_by(answer)) : std::nullopt;
}

void reach_name(Gate &gate, const Target &target, WhenReached when_reached)
{
    reach_by_name(gate, target, {}, std::move(when_reached));
}

void reach(Gate &gate, const Target &target, WhenReached when_reached)
{
    const RuleAnswer answer = gate.rules.find(target.host, target.port);
    if (answer.rule == nullptr) return when_reached(refused_by(answer));
    const GateRule &rule = *answer.rule;
    // "localhost" is whatever the host has there. A rule for an address, or a range of them, means this one alone.
    if (is_loopback(target.host) && (!target.host.address || rule.host == "localhost"))
        return dial_good(gate, target, rule.where, {asio::ip::address_v4::loopback(), asio::ip::address_v6::loopback()},
                         std::move(when_reached));
    if (target.host.address) return dial_good(gate, target, rule.where, {*target.host.address}, std::move(when_reached));
    reach_by_name(gate, target, rule.where, std::move(when_reached));
}

} // namespace pi_agent
