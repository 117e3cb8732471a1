// Comparing what a session asks for with the rules.
#include "gate/rules.hpp"

#include "common/base/error.hpp"
#include "common/seams/seams.hpp"
#include "gate/addresses.hpp"

#include <algorithm>

namespace pi_agent {

namespace ip = boost::asio::ip;

GateRules::Rule GateRules::read(const GateRule &written)
{
    Rule rule{written};
    boost::system::error_code problem;
    const auto refuse = [&] {
        throw Failure(ExitStatus::internal, "the gate got a rule that is not one: " + written.host + " (" + written.where + ")");
    };
    if (written.host.find('/') != std::string::npos) {
        if (written.host.find(':') == std::string::npos)
            rule.range_v4 = ip::make_network_v4(written.host, problem);
        else
            rule.range_v6 = ip::make_network_v6(written.host, problem);
        const bool is_whole = rule.range_v4 ? rule.range_v4->canonical() == *rule.range_v4 : rule.range_v6->canonical() == *rule.range_v6;
        if (problem || !is_whole) refuse();
        return rule;
    }
    rule.is_wildcard = written.host.starts_with("*.");
    const auto host = read_host(rule.is_wildcard ? written.host.substr(2) : written.host);
    if (!host || (rule.is_wildcard && host->address)) refuse();
    rule.address = host->address;
    rule.name = rule.is_wildcard ? "." + host->text : host->text;
    return rule;
}

GateRules::GateRules(std::vector<GateRule> rules)
{
    for (const auto &rule : rules)
        rules_.push_back(read(rule));
}

bool GateRules::names(const Rule &rule, const Address &address)
{
    const Address one = within(address);
    if (rule.address) return *rule.address == one || *rule.address == address;
    if (is_of_metadata(one)) return false; // a range never means it
    return rule.range_v4 ? is_in(one, *rule.range_v4) : rule.range_v6 && is_in(one, *rule.range_v6);
}

bool GateRules::is_for(const Rule &rule, const Host &host)
{
    if (rule.name == "localhost") return is_loopback(host);
    if (host.address) return names(rule, *host.address);
    if (rule.is_wildcard) return host.text.size() > rule.name.size() && host.text.ends_with(rule.name);
    return !rule.address && !rule.range_v4 && !rule.range_v6 && rule.name == host.text;
}

RuleAnswer GateRules::find(const Host &host, std::uint16_t port) const
{
    RuleAnswer answer;
    for (const auto &rule : rules_) {
        if (!is_for(rule, host)) continue;
        if (rule.written.port == port) return {&rule.written, nullptr};
        if (answer.almost == nullptr) answer.almost = &rule.written;
    }
    return answer;
}

bool GateRules::may_lead_to(const Address &address, std::uint16_t port) const
{
    return is_of_internet(address) || !defence_is_on("gate-addresses") ||
           std::any_of(rules_.begin(), rules_.end(), [&](const Rule &rule) { return rule.written.port == port && names(rule, address); });
}

} // namespace pi_agent
