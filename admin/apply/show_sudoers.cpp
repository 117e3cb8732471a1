// The text of the rule, checked by itself.
#include "admin/apply/apply.hpp"

#include "admin/host/sudoers.hpp"
#include "admin/programs/program.hpp"
#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/policy/policy_load.hpp"

namespace pi_agent {

void run_sudoers(std::ostream &out, std::ostream &notes)
{
    const auto policy = load_policy(policy_path);
    const auto sudo = installed_sudo_kind();
    const auto text = sudoers_text(policy, policy_path, build::runner_path, sudo);
    const auto visudo = visudo_of(sudo);
    if (!has_program(visudo)) {
        notes << "pi-agentctl: there is no visudo here, so nobody has checked this\n";
    } else if (const auto result = run_program({visudo, "-c", "-f", "-"}, text); result.status != 0) {
        throw Failure(ExitStatus::internal, visudo + " refuses the rule that was generated: " + one_line(result.output));
    }
    if (!policy.wrapper.enable) notes << "pi-agentctl: wrapper.enable is false: apply would install no rule, and remove the one there is\n";
    out << text;
}

} // namespace pi_agent
