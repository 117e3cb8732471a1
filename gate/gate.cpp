// Reaching the outside by the rules.
#include "gate/gate.hpp"

#include "common/seams/seams.hpp"
#include "gate/addresses.hpp"

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

// The gate's descriptors and memory are the session's to use up; then nothing was denied.
bool is_full(const boost::system::error_code &problem)
{
    return problem == asio::error::no_descriptors || problem == asio::error::no_memory || problem == asio::error::no_buffer_space ||
           problem == boost::system::errc::too_many_files_open_in_system;
}

void dial_good(Gate &gate, const Target &target, const std::string &where, const std::vector<Address> &good, WhenReached when_reached)
{
    dial(gate.loop, good, target.port,
         [where, when = std::move(when_reached)](const boost::system::error_code &problem, tcp::socket socket) {
             if (problem) return when(not_reached(is_full(problem) ? std::optional(DenialReason::no_room) : std::nullopt, where));
             when({std::move(socket), {}, where});
         });
}

// Whether a name may lead there. What listens on this host, or beside it, trusts who comes from there: a rule has to name it.
bool may_dial(Gate &gate, const Address &address, std::uint16_t port, const std::vector<asio::ip::network_v6> &translating)
{
    if (!gate.rules.may_lead_to(translated(address, translating), port)) return false;
    if (gate.rules.find(to_host(address), port).rule != nullptr) return true;
    const Place place = gate.routes.place_of(address);
    return (place != Place::here || !defence_is_on("gate-own-address")) && (place != Place::near || !defence_is_on("gate-on-link"));
}

void dial_some(Gate &gate, const Target &target, const std::string &where, const std::vector<Address> &found,
               const std::vector<asio::ip::network_v6> &translating, WhenReached when_reached)
{
    std::vector<Address> good;
    std::copy_if(found.begin(), found.end(), std::back_inserter(good),
                 [&](const Address &address) { return may_dial(gate, address, target.port, translating); });
    if (good.empty()) return when_reached(not_reached(DenialReason::private_address, where));
    dial_good(gate, target, where, good, std::move(when_reached));
}

void reach_by_name(Gate &gate, const Target &target, const std::string &where, WhenReached when_reached)
{
    gate.lookup.find(target.host.text, [&gate, where, target, when = std::move(when_reached)](const Lookup::Answer &found) {
        // Of a name that nobody answered for, nothing is denied: the host's own programs do not find it either.
        if (found.addresses.empty())
            return when(not_reached(found.is_known ? std::optional(DenialReason::no_address) : std::nullopt, where));
        const auto is_v6 = [](const Address &address) { return address.is_v6(); };
        if (std::none_of(found.addresses.begin(), found.addresses.end(), is_v6))
            return dial_some(gate, target, where, found.addresses, {}, when);
        gate.lookup.find(translation_name,
                         [&gate, where, target, addresses = found.addresses, is_v6, when](const Lookup::Answer &known) mutable {
                             if (!known.is_known)
                                 std::erase_if(addresses, is_v6); // nobody says which of them have an address of IPv4 inside
                             dial_some(gate, target, where, addresses, translating_prefixes(known.addresses), when);
                         });
    });
}

} // namespace

Gate::Gate(asio::io_context &the_loop, FdRef runner, const GateOrder &order)
    : loop(the_loop), idle(order.idle_seconds), rules(order.rules), denials(the_loop, runner), lookup(the_loop)
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
