// Comparing what a session asks for with the rules, as everybody compares them (common/policy/host_rule.hpp).
#include "gate/rules.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"
#include "gate/addresses.hpp"

#include <algorithm>

namespace pi_agent {

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

} // namespace pi_agent
