// Brings an agent's home in order: its disk limit, the version that it is of, and the user's config.
#include "runner/root/errand/errand.hpp"

#include <fmt/format.h>

namespace pi_agent {

// --- Runs the migration hooks, then the two halves of the config sync, and watches both.

namespace {

constexpr auto sync_interval = std::chrono::milliseconds(250);
constexpr std::size_t most_notices = 100; // the children keep to fewer

std::string notice_of_move(const Version &from, const Version &to)
{
    const std::string begin = "the agent's home was last used by pi-agent " + to_string(from) + ", this is ";
    if (to < from) return begin + "the older " + to_string(to) + ": nothing in it is changed back";
    return begin + to_string(to) + ": it is brought up to date";
}

// Where the agent keeps the sessions of a directory, in its config directory: the agent's own way to name it.
std::string sessions_of(std::string directory)
{
    if (directory.starts_with('/')) directory.erase(0, 1);
    std::replace_if(
        directory.begin(), directory.end(), [](char one) { return one == '/' || one == '\\' || one == ':'; }, '-');
    return "sessions/--" + directory + "--";
}

void wait_for_answer(Child &child, const MigrationAudience &audience)
{
    Deadline patience = in_seconds(child_patience_seconds);
    for (;;) {
        const bool has_spoken = audience.watch.wait({child.channel()}, Clock::now() + sync_interval).has_value();
        if (Clock::now() >= patience && defence_is_on("hook-deadline"))
            throw Failure(ExitStatus::system_failure, "the process that runs a migration hook was stopped");
        if (!has_spoken) continue;
        if (child.receive_one()) return;
        patience = in_seconds(child_patience_seconds);
        audience.show_progress(child.progress());
    }
}

// The reader's failure explains the writer's, so look for it first.
void rethrow_reader_failure(Child &reader)
{
    while (wait_for_input(reader.channel(), Clock::now()))
        if (const std::optional<Packet> packet = reader.receive_one(); packet && packet->bytes.empty()) return;
}

[[noreturn]] void refuse_slow(const std::string &directory)
{
    throw Failure(FailureKind::user_configuration,
                  escape_for_display(directory) + " could not be copied within " + std::to_string(sync_patience_seconds) +
                      " seconds; check whether its file system is slow, or whether it holds more than configuration");
}

} // namespace

void migrate_home(const AsRoot &root, const Account &agent, const StateDirectory &state, const MigrationAudience &audience,
                  const MigrationPlan &plan)
{
    const std::optional<Version> stamp = read_stamp(state);
    if (stamp == plan.version) return;
    if (stamp) {
        audience.tell(notice_of_move(*stamp, plan.version));
        Child child(root, "process that runs migration hooks", agent, {state.home.get()}, [&](const AsUser &self, FdRef channel) {
            fault_point("migrating");
            run_migrations(self, plan, *stamp, {state.home, state.home_path}, channel);
            send_answer(channel, "");
        });
        try {
            wait_for_answer(child, audience);
        } catch (...) { // whatever it is, end the hook first: a killed child would leave it running
            child.hang_up();
            throw;
        }
    }
    write_stamp(state, plan.version); // last: a start that ended earlier does all of it again
}

UniqueFd open_defaults(const AsRoot & /*root*/)
{
    try {
        return open_trusted(build::defaults_path, O_RDONLY | O_DIRECTORY, "directory of default files");
    } catch (const SystemFailure &failure) {
        throw Failure(FailureKind::agent_home, std::string(failure.what()) +
                                                   "; these files begin every agent's home, so the installation is incomplete: ask the "
                                                   "administrator to install pi-agent again");
    }
}

SyncPlan plan_sync(const Policy &policy, const AccessRules &rules, const Account &user, const Environment &managed,
                   const AgentPlaces &agents, const std::vector<std::string> &placeholders)
{
    SyncPlan plan;
    plan.reading.sources = {ConfigSource{rules.config_directory, agent_directory, true},
                            ConfigSource{user.home + "/.agents/skills", ".agents/skills", false}};
    plan.reading.agents = agents;
    plan.reading.classes = plan.writing.classes = policy.config_classes;
    plan.writing.managed_providers = providers_with_keys(managed);
    for (const char *name : {"settings.json", "auth.json", "mcp-auth.json", "trust.json"})
        plan.writing.documents[name];                                                   // always: both sides write them
    if (!plan.writing.managed_providers.empty()) plan.writing.documents["models.json"]; // it may hold keys
    for (const auto &[name, managed_text] : policy.documents)
        plan.writing.documents[name].managed = managed_text;
    if (policy.mcp_lock) plan.writing.documents["mcp.json"].is_alone = true;
    auto held_models = models_of_held_keys(policy.providers, placeholders, gate_route_port);
    for (const auto &provider : held_models["providers"].items())
        plan.writing.held_providers.insert(provider.key());
    SessionPlaces &places = plan.reading.places;
    places.held_providers = plan.writing.held_providers;
    places.held_providers.insert(plan.writing.managed_providers.begin(), plan.writing.managed_providers.end());
    places.home = user.home;
    places.env_files = policy.host_env_files;
    for (const auto &variable : managed)
        places.variables.insert(variable.first);
    if (!policy.providers.empty()) {
        plan.writing.documents["models.json"];
        plan.writing.held_models = held_models.dump();
    }
    // Files that do not count are not read, whatever they are. Of settings.json the host's lastChangelogVersion counts in any class.
    for (const auto &[name, rule] : plan.writing.documents)
        if (name == "settings.json" || is_copied(policy.config_classes.of(name))) plan.reading.documents.push_back(name);
    return plan;
}

void plan_sessions(SyncPlan &plan, const std::string &directory, bool asked_for)
{
    const std::string path = sessions_of(directory);
    const FileClass policys = plan.reading.classes.of(path);
    if (is_copied(policys)) return;
    if (policys == FileClass::never) {
        if (asked_for)
            throw Failure(FailureKind::sessions_outside,
                          "the policy keeps the sessions of your own agent outside (config.classes), so --pi-agent-sessions cannot copy "
                          "them; start without it, or ask the administrator");
    } else if (asked_for) {
        plan.reading.classes.set(path, FileClass::once);
        plan.writing.classes.set(path, FileClass::once);
    } else {
        plan.reading.sessions_outside = path;
    }
}

std::vector<std::string> sync_config(const AsRoot &root, const Account &user, const Account &agent, const SyncPlan &plan,
                                     const StateDirectory &state, FdRef locked_settings, const SessionWatch &watch,
                                     const ShowProgress &show_progress)
{
    const std::string &config_directory = plan.reading.sources.front().directory;
    const UniqueFd manifest = open_meta_file(state, "manifest");
    const UniqueFd spare = open_meta_file(state, "manifest.new");
    const WritingPlaces places{state.home, state.staging, manifest, spare, locked_settings};
    auto [sending, receiving] = make_channel();
    std::vector<int> for_writer = {state.home.get(), state.staging.get(), manifest.get(), spare.get(), receiving.get()};
    for (const FdRef optional : {locked_settings, plan.writing.defaults})
        if (optional.get() >= 0) for_writer.push_back(optional.get());

    Child writer(root, "writer of the config", agent, for_writer, [&, from = FdRef(receiving)](const AsUser &self, FdRef channel) {
        write_config(self, places, plan.writing, from, channel);
    });
    receiving.reset();
    Child reader(root, "reader of the config", user, {sending.get()},
                 [&, to = FdRef(sending)](const AsUser &self, FdRef channel) { read_config(self, plan.reading, to, channel); });
    sending.reset();

    std::vector<std::string> notices;
    bool reading = true;
    bool writing = true;
    fault_point("syncing");
    Deadline patience = in_seconds(child_patience_seconds);
    const Deadline deadline = in_seconds(sync_patience_seconds);
    while (reading || writing) {
        const FdRef none(-1);
        const auto which = watch.wait({reading ? reader.channel() : none, writing ? writer.channel() : none}, Clock::now() + sync_interval);
        if (!which) show_progress((reading ? reader : writer).progress());
        if (!which && Clock::now() >= patience && defence_is_on("sync-deadline"))
            throw Failure(
                FailureKind::no_progress,
                fmt::format("reading {} made no progress for {} seconds and was stopped; check whether its file system does not answer",
                            config_directory, child_patience_seconds));
        if (!which) continue;
        patience = in_seconds(child_patience_seconds);
        if (Clock::now() >= deadline) refuse_slow(config_directory);
        Child &spoke = *which == 0 ? reader : writer;
        try {
            const std::optional<Packet> packet = spoke.receive_one();
            if (!packet)
                show_progress(spoke.progress());
            else if (packet->bytes == answer_rewritten)
                replace_meta_file(state, "manifest.new", "manifest");
            else if (packet->bytes.empty())
                (&spoke == &reader ? reading : writing) = false;
            else if (notices.size() < most_notices)
                notices.push_back(packet->bytes);
        } catch (const Failure &) {
            if (&spoke == &writer && reading) rethrow_reader_failure(reader);
            throw;
        }
    }
    return notices;
}

// --- Holds the agent of one user to limits.disk: by a project quota.

namespace {

constexpr const char *joined_name = "disk-project"; // in meta: the project that all of the home has joined
constexpr std::size_t joined_limit = 64;
constexpr std::uint64_t room_to_work = std::uint64_t{16} << 20U;

std::string limit_text(const SaidLimit &said)
{
    return "limits.disk: " + said.text + " (" + to_string(said.where) + ")";
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
        if (!problem_of_number(root, project).empty()) continue; // an administrator's by now, whose limit stays (Q6)
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
    if (has_session_without(root, held_link, holder.user.uid, holder.session)) return;
    write_meta_file(state, joined_name, std::to_string(project)); // last: a start that ended earlier does all of it again
}

std::string notice_of_use(const SaidLimit &said, const std::optional<DiskUse> &use)
{
    if (!use || use->bytes + room_to_work <= said.amount) return "";
    return "nearly full: your agent has " + std::to_string(use->bytes >> 20U) + " MiB of its " + limit_text(said) +
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
