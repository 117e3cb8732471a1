// Whether the cluster of the policy's placement can be asked from this host, and what a start asks it for.
#include "admin/diagnose/explain.hpp"
#include "admin/diagnose/faults.hpp"

#include "admin/programs/program.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/decide/decision.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int cluster_patience_seconds = 20; // Slurm's programs give up after ten

// Where the first level says that sessions have jobs.
std::optional<SaidAt> first_with_jobs(const Policy &policy)
{
    const auto said = [](const Rules &rules) -> std::optional<SaidAt> {
        if (rules.placement.engine != PlacementEngine::slurm) return std::nullopt;
        return rules.places.at("placement.engine");
    };
    if (auto place = said(policy.rules)) return place;
    for (const auto &entry : policy.users)
        if (entry.rules)
            if (auto place = said(*entry.rules)) return place;
    return std::nullopt;
}

bool has_srun(const Policy &policy)
{
    return access(srun_of(policy).c_str(), X_OK) == 0;
}

} // namespace

std::vector<Diagnostic> find_idle_placement(const Policy &policy)
{
    if (has_any_jobs(policy)) return {};
    std::vector<Diagnostic> found;
    const auto look = [&](const Rules &rules) {
        for (const auto *key : {"placement.srun", "placement.partition", "placement.account", "placement.qos", "placement.constraint"})
            if (const auto said = rules.places.find(key); said != rules.places.end())
                found.push_back({said->second.where, said->second.key, "says which job, and no session has one",
                                 "say 'engine: slurm', or remove the key"});
    };
    look(policy.rules);
    for (const auto &entry : policy.users)
        if (entry.rules) look(*entry.rules);
    return found;
}

std::vector<Diagnostic> find_missing_cluster(const Policy &policy)
{
    const auto place = first_with_jobs(policy);
    if (!place || has_srun(policy)) return {};
    return {{place->where, place->key,
             "slurm, and this host has no " + escape_for_display(srun_of(policy)) + ": sessions start here inside of jobs alone",
             "install Slurm's client if users shall type pi here, or correct placement.srun"}};
}

bool has_any_jobs(const Policy &policy)
{
    return first_with_jobs(policy).has_value();
}

Faults find_cluster_faults(const Policy &policy)
{
    if (!has_any_jobs(policy) || !has_srun(policy) || !has_program("sinfo")) return {};
    const std::string remedy = "find out with sinfo and 'systemctl status slurmctld' why, or say placement: {engine: none}";
    const auto result = run_program_apart({"sinfo", "--noheader", "--format=%D"}, cluster_patience_seconds);
    if (result.status != 0)
        return {{"cluster", "Slurm does not answer, so pi gets no node: " + escape_for_display(one_line(result.output)), remedy}};
    if (result.output.find_first_of("123456789") == std::string::npos) return {{"cluster", "Slurm's cluster has no nodes", remedy}};
    return {};
}

std::string placement_text(const Policy &policy)
{
    if (!has_jobs(policy)) return "";
    std::vector<std::string> options;
    for (const auto &option : job_options(policy, job_name))
        options.push_back(escape_for_display(option));
    return fmt::format("runs:     in a job of Slurm's on a node of the cluster, and by the policy of that node\n"
                       "          ({}: {} {})\n",
                       to_string(policy.rules.places.at("placement.engine").where), escape_for_display(srun_of(policy)),
                       fmt::join(options, " "));
}

} // namespace pi_agent
