// What the policy lets a session connect to.
#pragma once

#include "common/policy/host_rule.hpp"
#include "gate/host_text.hpp"
#include "runner/wire/gate_messages.hpp"

#include <vector>

namespace pi_agent {

// What a session asks for, compared with all rules.
struct RuleAnswer {
    const GateRule *rule = nullptr;   // that allows it
    const GateRule *almost = nullptr; // where none does: that would, at another port
};

class GateRules {
public:
    // Throws Failure for a rule that is none: a rule that can never hold must not be taken in silence.
    explicit GateRules(std::vector<GateRule> rules);

    // By the name, or by the address where somebody asks for one.
    [[nodiscard]] RuleAnswer find(const Host &host, std::uint16_t port) const;

    // Whether a name that leads to this address may be connected to: it is one of the Internet, or a rule names it by itself or by a range
    // with that port. So a rule for a name never opens what its owner points it at in the networks of this host. "localhost" is dialled
    // without asking anybody.
    [[nodiscard]] bool may_lead_to(const Address &address, std::uint16_t port) const;

private:
    std::vector<GateRule> written_; // each at the same place as what it means
    std::vector<HostRule> rules_;
};

} // namespace pi_agent
