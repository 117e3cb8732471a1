// What cvtsudoers prints, whatever it prints: faults in harmless words, or one refusal.
#include "admin/diagnose/faults.hpp"
#include "admin/host/host_things.hpp"
#include "support/property.hpp"

using namespace pi_agent;
using namespace pi_agent::fuzz;

void pi_agent::fuzz::try_input(std::string_view input)
{
    const std::string runner = "/usr/libexec/pi-agent/pi-agent-runner";
    for (const SudoKind kind : {SudoKind::original, SudoKind::rs}) {
        const auto read = [&](const std::string &json) {
            return unless_refused([&] { return judge_sudoers(json, "alice", runner, kind); });
        };
        const auto faults = read(std::string(input));
        require_linear(input, read);
        if (!faults) continue;
        for (const auto &fault : *faults) {
            require(!fault.about.empty() && !fault.remedy.empty(), "a fault without a name or remedy");
            require_harmless(fault.what + "\n" + fault.remedy);
        }
    }
    sudo_kind_of(std::string(input));
}
