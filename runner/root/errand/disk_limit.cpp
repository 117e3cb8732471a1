// Holds the agent of one user to limits.disk: by a project quota.
#include "runner/root/errand/disk_limit.hpp"

#include "common/seams/seams.hpp"
#include "runner/as_agent/disk.hpp"
#include "runner/as_agent/manifest.hpp"
#include "runner/root/session/scratch.hpp"

namespace pi_agent {

namespace {

constexpr const char *joined_name = "disk-project"; // in meta: the project that all of the home has joined
constexpr std::size_t joined_limit = 64;
constexpr std::uint64_t room_to_work = std::uint64_t{16} << 20U;

std::string limit_text(const SaidLimit &said)
{
    return "limits.disk: " + said.text + " (" + to_string(said.where) + ")";
}

std::string in_mebibytes(std::uint64_t bytes)
{
    return std::to_string(bytes >> 20U) + " MiB";
}

// An administrator's own project quotas must not lose files to ours. Only what root alone can change counts: the agent may have given its
// home any project, and that would be a way around the limit.
std::string problem_of_project(FdRef directory, std::uint32_t own)
{
    const auto project = project_of(directory);
    if (!project || *project == 0 || *project == own || is_project_of_agents(*project)) return "";
    return "it has the project " + std::to_string(*project) + " of other quotas; take it out of them (its project must be 0)";
}

std::string problem_of_places(const AsRoot &root, const DiskHolder &holder, const StateDirectory &state, std::uint32_t project)
{
    const Policy &policy = holder.policy;
    if (auto problem = problem_of_method(policy.sandbox.method); !problem.empty()) return problem;
    if (auto problem = problem_of_number(root, project); !problem.empty()) return problem;
    const auto look = [&](FdRef place, FdRef roots_own, const std::string &path) {
        std::string problem = problem_of_quotas(place);
        if (!problem.empty()) return path + ": " + problem + "; " + quota_remedy;
        problem = problem_of_project(roots_own, project);
        return problem.empty() ? problem : path + ": " + problem;
    };
    for (const FdRef place : {FdRef(state.home), FdRef(state.staging)})
        if (auto problem = look(place, state.meta, state.home_path); !problem.empty()) return problem;
    if (policy.scratch == ScratchKind::tmpfs) return "";
    const UniqueFd temporary = open_scratch_parent(root, policy.agent.state_dir);
    return look(temporary, temporary, policy.agent.state_dir + "/" + scratch_parent);
}

// An agent that was held once, and is not now. Files keep their project, which harms nobody.
void let_go(const AsRoot &root, const StateDirectory &state, Uid user)
{
    const auto joined = read_meta_file(state, joined_name, joined_limit);
    // A limit that was set before all of the home had joined has no such file, nor one whose file went with the home's content.
    std::set<std::uint32_t> projects;
    if (const auto project = joined ? to_number<std::uint32_t>(*joined) : std::nullopt) projects.insert(*project);
    for (const auto own : {project_of_agent(user), std::optional(former_project_of_agent(user))})
        if (!joined && own && passes_project_on(state.home, *own)) projects.insert(*own);
    for (const std::uint32_t project : projects) {
        lift_disk_limit(root, state.home, project, state.home_path);
        lift_disk_limit(root, state.staging, project, state.home_path);
    }
    // An agent that is not held may take files out of the project: the next limit begins with all of them.
    if (unlinkat(state.meta.get(), joined_name, 0) != 0 && errno != ENOENT) throw_errno("forgetting a disk quota");
}

bool has_joined(const StateDirectory &state, std::uint32_t project)
{
    return read_meta_file(state, joined_name, joined_limit) == std::to_string(project) && passes_project_on(state.home, project) &&
           passes_project_on(state.staging, project);
}

void join(const AsRoot &root, const DiskHolder &holder, const StateDirectory &state, std::uint32_t project)
{
    let_go(root, state, holder.user.uid); // the kernel lets nobody but root join a project that is full
    lift_disk_limit(root, state.home, project, state.home_path);
    lift_disk_limit(root, state.staging, project, state.home_path);
    const UniqueFd log = open_meta_file(state, "manifest");
    const UniqueFd spare = open_meta_file(state, "manifest.new");
    const std::string doing = "putting the agent's home under its disk quota";
    const std::vector<int> places = {state.home.get(), state.staging.get(), log.get(), spare.get()};
    Child child(root, doing + " of " + holder.user.name, holder.agent, places, [&](const AsUser &self, FdRef channel) {
        fault_point("walking-home");
        join_home(self, state.home, {log, spare}, project, channel);
        join_tree(self, state.staging, project, channel);
        send_answer(channel, "");
    });
    while (!child.receive_one()) { // takes as long as the home is large: the user may end the start meanwhile
        holder.watch.check();
        holder.show(doing);
    }
    // A session from before the limit has no filter, and may take files out again. The next start finds them by another walk.
    if (has_unheld_session(root, holder.user.uid, holder.session)) return;
    write_meta_file(state, joined_name, std::to_string(project)); // last: a start that ended earlier does all of it again
}

std::string notice_of_use(const SaidLimit &said, const std::optional<DiskUse> &use)
{
    if (!use || use->bytes + room_to_work <= said.amount) return "";
    return "nearly full: your agent has " + in_mebibytes(use->bytes) + " of its " + limit_text(said) +
           ", so its work may fail for want of space; remove what it does not need (pi-agentctl shell), or ask the administrator";
}

} // namespace

HeldDisk hold_to_disk_limit(const AsRoot &root, const DiskHolder &holder, const StateDirectory &state)
{
    const auto &said = holder.policy.limits.disk;
    if (!said) {
        let_go(root, state, holder.user.uid);
        return {};
    }
    const auto project = project_of_agent(holder.user.uid);
    const std::string problem = project
                                    ? problem_of_places(root, holder, state, *project)
                                    : "no project of quotas is left for a user with the number " + std::to_string(holder.user.uid.value());
    if (!problem.empty()) {
        let_go(root, state, holder.user.uid);
        if (holder.policy.limits.without_quota == WithoutQuota::refuse)
            throw Failure(FailureKind::limits_not_enforced,
                          "this host cannot enforce the policy's " + limit_text(*said) + ": " + problem + "; or remove the key");
        return {std::nullopt, problem, ""};
    }
    const DiskQuota quota{*project, said->amount};
    const auto limit = [&] {
        set_disk_limit(root, state.home, quota, state.home_path);
        set_disk_limit(root, state.staging, quota, state.home_path);
    };
    try {
        if (!has_joined(state, quota.project)) join(root, holder, state, quota.project);
    } catch (...) { // sessions that run are held by it, and their agent may have made this start fail
        limit();
        throw;
    }
    limit();
    return {quota, "", notice_of_use(*said, disk_use(root, state.home, quota.project))};
}

} // namespace pi_agent
