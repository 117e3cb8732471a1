// The process that reads the policy's secrets.
#include "runner/root/errand/record_handover.hpp"

#include "common/seams/defence.hpp"
#include "runner/root/errand/child.hpp"
#include "runner/root/errand/env_files.hpp"

namespace pi_agent {

namespace {

constexpr int record_patience_seconds = 5;

} // namespace

void hand_record_over(const AsRoot &root, const Policy &policy, const EnvironmentInput &environment, const LaunchRecord &record,
                      FdRef control, FdRef terminal)
{
    if (policy.env_files.empty() || !defence_is_on("late-secrets"))
        return send_launch(control, record, terminal, in_seconds(record_patience_seconds));
    Child sender(root, "sender of the policy's variables", [&] {
        EnvironmentInput with_values = environment;
        with_values.managed_files = read_managed_env_files(policy.env_files);
        LaunchRecord complete = record;
        complete.environment = compose_environment(with_values);
        send_launch(control, complete, terminal, in_seconds(record_patience_seconds));
        return std::string();
    });
    sender.receive_long(record_patience_seconds + child_patience_seconds);
}

} // namespace pi_agent
