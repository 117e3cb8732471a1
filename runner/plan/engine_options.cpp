// The options of an engine's command `run`, as far as docker and podman take them alike.
#include "runner/plan/engine_options.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/seams/defence.hpp"

namespace pi_agent {

void EngineOptions::add_if(const char *defence, const std::string &option, const std::string &other)
{
    const bool has_it = is_on(defence);
    if (has_it || !other.empty()) list_.push_back(has_it ? option : other);
}

void EngineOptions::add_account(const SandboxPlan &plan)
{
    list_.push_back("--user=" + std::to_string(plan.agent.value()) + ":" + std::to_string(plan.agent_group.value()));
    for (const gid_t group : plan.account_groups)
        list_.push_back("--group-add=" + std::to_string(group));
    for (const Gid group : plan.groups)
        list_.push_back("--group-add=" + std::to_string(group.value()));
}

void EngineOptions::add_bind(const std::string &source, const std::string &target, bool read_only)
{
    const bool is_read_only = read_only && is_on("read-only");
    list_.push_back("--mount=type=bind,src=" + safe(source) + ",dst=" + safe(target) + ",ro=" + (is_read_only ? "true" : "false") +
                    ",bind-propagation=rprivate");
}

bool EngineOptions::is_on(const char *defence) const
{
    return defence_is_on((engine_ + ":" + defence).c_str());
}

const std::string &EngineOptions::safe(const std::string &path) const
{
    if (!is_property_safe(path)) throw Failure(ExitStatus::internal, engine_ + " would be told of " + escape_for_display(path));
    return path;
}

std::string host_name_argument(const std::string &engine, const std::string &name)
{
    if (name.empty() || !is_property_safe(name))
        throw Failure(ExitStatus::unavailable, "the name of this host (" + escape_for_display(name) + ") has characters that " + engine +
                                                   " takes for no name's; give the host another one (hostnamectl set-hostname), or "
                                                   "choose another method");
    return "--hostname=" + name;
}

} // namespace pi_agent
