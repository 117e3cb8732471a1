// The command render: the plan of a rendering, from the policy and from what was found on this host; and every demand of the policy that
// a Job cannot meet.
#include "admin/render/render.hpp"

#include "admin/diagnose/faults.hpp"
#include "admin/text/terminal.hpp"
#include "runner/as_user/project.hpp"
#include "runner/root/door/admission.hpp"

#include <cctype>
#include <sstream>

namespace pi_agent {

namespace {

constexpr std::size_t label_limit = 63; // RFC 1123
constexpr std::size_t hash_length = 9;  // "-1f3a99c2"

// `project`: its place inside.
std::vector<HostCertificates> find_host_certificates(const Policy &policy, const AccessRules &rules, const EnvironmentInput &input,
                                                     const std::string &project)
{
    const auto is_in_workspace = [&](const std::string &path) { return is_within(path, input.home) || is_within(path, project); };
    std::vector<HostCertificates> all;
    for (const auto &variable : find_certificate_variables(input)) {
        std::istringstream paths(variable.path); // SSL_CERT_DIR has a list
        bool is_shown = true;
        for (std::string path; std::getline(paths, path, ':');)
            is_shown = is_shown && (path.empty() || is_in_workspace(path));
        if (is_shown) continue;
        HostCertificates found{variable.name, "env." + variable.name, {rules.where.file, 0, 0}};
        if (const auto place = policy.env_where.find(variable.name); variable.from == "env" && place != policy.env_where.end())
            found.where = place->second;
        if (rules.env.contains(variable.name)) { // the strongest layer
            found.key = rules.entry + ".env." + variable.name;
            found.where = rules.where;
        }
        for (const auto &file : policy.env_files)
            if (variable.from.substr(0, variable.from.rfind(':')) == file.path) {
                found.key = "env_files";
                found.where = file.where;
            }
        all.push_back(std::move(found));
    }
    return all;
}

void refuse(Problems &problems, const Position &where, const std::string &key, const std::string &what, const std::string &remedy)
{
    problems.add(where, key, "kubernetes cannot honour it: " + what, remedy);
}

Position file_of(const RenderPlan &plan)
{
    return {plan.rules.where.file, 0, 0};
}

bool has_loopback(const IpRange &range)
{
    const auto loopback = loopback_ranges();
    return std::ranges::any_of(loopback, [&](const IpRange &own) { return overlap(range, own); });
}

void add_network(const RenderPlan &plan, Problems &problems)
{
    const auto &network = plan.policy.network;
    if (network.mode == NetworkMode::loopback)
        refuse(problems, network.where, "network", "loopback is this host's own", "say none or full");
    if (network.mode == NetworkMode::hosts)
        refuse(problems, network.where, "network", "only the runner starts the gate that connects to its hosts, and to no other",
               "say none or full, or list addresses");
    if (!plan.policy.providers.empty()) // whatever the network: a Job's containers get env_files themselves, keys included
        refuse(problems, plan.policy.providers.front().where, "providers", "only the runner keeps their keys outside",
               "bring the keys with the engine's own secrets (env_files)");
    if (network.mode == NetworkMode::listed && std::ranges::any_of(network.allowed, has_loopback))
        refuse(problems, network.where, "network", "the list has this host's loopback", "take the loopback out of it");
}

void add_projects(const RenderPlan &plan, Problems &problems)
{
    const auto &protect = plan.policy.projects.protect;
    const Position protecting = protect && !protect->empty() ? protect->front().where : file_of(plan);
    for (const auto &link : plan.links)
        refuse(problems, protecting, "projects.protect", quote(link) + " is a symlink, which the engine would follow as root",
               "put in its place what it leads to");
    for (const auto &path : plan.missing)
        refuse(problems, path.where, "projects.protect", quote(path.path) + " does not exist, and only the runner keeps it from being made",
               "its user creates it, or you take it out of the list");
    for (const auto &mask : plan.policy.projects.mask)
        refuse(problems, mask.where, "projects.mask", quote(mask.path) + " is looked for at each start, by the runner",
               "keep such files out of the project");
    if (plan.policy.projects.read_only) {
        const auto &places = plan.policy.rules.places;
        const auto found = places.find("projects.read_only");
        refuse(problems, found == places.end() ? file_of(plan) : found->second.where, "projects.read_only",
               "only the runner keeps the project from being changed", "render for a directory that is not read-only");
    }
    for (const auto &path : plan.beside)
        refuse(problems, plan.rules.where, plan.rules.entry + ".roots",
               "the repository has its git directory elsewhere, at " + escape_for_display(path), "render for its main working tree");
}

void add_view(const RenderPlan &plan, Problems &problems)
{
    const auto &policy = plan.policy;
    if (policy.view == View::host)
        refuse(problems, file_of(plan), "view", "all of this host's /etc", "say minimal, and bring files with the image");
    for (const auto &path : policy.view_paths)
        refuse(problems, path.where, "view_paths", quote(path.path) + " is this host's", "bring it with the image");
    for (const auto &path : policy.devices)
        refuse(problems, path.where, "devices", quote(path.path) + " is this host's", "give it to the container yourself, or leave it out");
    const auto add_list = [&](const HomeDirectories &directories, bool is_cache, const std::string &what) {
        for (const auto &path : directories.paths)
            if (path.where.line > 0)
                refuse(problems, path.where, key_of_home_directory(policy.rules, path.path, is_cache),
                       quote(written_home_path(path.path)) + " " + what, "leave it out, or bring it with the image");
    };
    add_list(policy.toolchains.readable, false, "belongs to the user, whose home nobody else opens");
    add_list(policy.toolchains.caches, true, "would have to be copied for each session");
    for (const auto &[key, name] : {std::pair(&plan.rules.ssh_key, ".ssh.key"), std::pair(&plan.rules.signing_key, ".signing.key")})
        if (*key)
            refuse(problems, plan.rules.where, plan.rules.entry + name, "the key belongs to the user, whose home nobody else opens",
                   "leave it out");
}

void add_agent(const RenderPlan &plan, Problems &problems)
{
    const auto &agent = plan.policy.agent;
    if (split_last(agent.binary).second != agent.binary_name)
        refuse(problems, agent.where, "agent.binary_name", "a container calls the program " + escape_for_display(agent.binary),
               "leave it out, or name the program so");
    if (!plan.policy.wrapper.clipboard)
        refuse(problems, plan.policy.wrapper.where, "wrapper.clipboard", "only pi takes that out of what the agent writes to a terminal",
               "leave it out");
    for (const auto &certificates : plan.certificates)
        refuse(problems, certificates.where, certificates.key,
               certificates.name + " names certificates of this host, which are not shown there",
               "put them into the project, or leave it to the image, if that has them");
}

void add_limits(const RenderPlan &plan, Problems &problems)
{
    for (const auto &row : limit_rows)
        if (const auto &said = plan.policy.limits.*row.said; said && row.no_job != nullptr)
            refuse(problems, said->where, row.key, (row.units == "%" ? said->text + " " : "") + row.no_job, row.job_remedy);
}

void add_hardening(const RenderPlan &plan, Problems &problems)
{
    if (plan.policy.tracing == Tracing::always)
        refuse(problems, file_of(plan), "hardening.tracing", "what debuggers call is not in the profile", "leave it out");
    const auto &calls = plan.policy.calls;
    for (const auto &[key, list] : {std::pair("hardening.deny_system_calls", &calls.denied),
                                    {"hardening.allow_system_calls", &calls.allowed},
                                    {"hardening.address_families", &calls.families}})
        for (const auto &name : *list)
            refuse(problems, name.where, key, quote(name.path) + " is not in the profile", "leave it out, and change the profile yourself");
}

Position place_of(const EnvironmentPlaces &places, const std::string &name, const Position &otherwise)
{
    const auto found = places.find(name);
    return found == places.end() ? otherwise : found->second;
}

void add_environment(const RenderPlan &plan, Problems &problems)
{
    const auto &policy = plan.policy;
    const std::string remedy = "put it into a file of env_files, which a rendering names and does not quote";
    const auto add_secrets = [&](const Environment &env, const EnvironmentPlaces &places, const std::string &key,
                                 const Position &otherwise) {
        for (const auto &[name, value] : env)
            if (looks_secret(name, value))
                refuse(problems, place_of(places, name, otherwise), key + "." + name, "it looks like a secret", remedy);
    };
    add_secrets(policy.env, policy.env_where, "env", file_of(plan));
    add_secrets(plan.rules.env, plan.rules.env_where, plan.rules.entry + ".env", plan.rules.where);
    for (const auto &where : plan.host_variables)
        refuse(problems, plan.rules.where, "host_env_files", escape_for_display(where) + " sets variables, and belongs to the user",
               "move them into a file of env_files");
    for (const auto &file : plan.env_files)
        if (!file.plain)
            refuse(problems, file.file.where, "env_files", file.file.path + " has quotes or continued lines, which others read otherwise",
                   "write each line as NAME=VALUE");
}

// A Job has them in a ConfigMap.
void add_documents(const RenderPlan &plan, Problems &problems)
{
    std::set<std::string> variables;
    for (const auto &file : plan.env_files)
        variables.insert(file.names.begin(), file.names.end());
    for (const auto &[file, text] : plan.policy.documents)
        if (const auto secret = secret_in_document(text, key_of_document(file), variables); !secret.empty())
            refuse(problems, file_of(plan), secret, "it looks like a secret, and settings go into a ConfigMap",
                   "write the name of a variable of env_files there");
    for (const auto &[path, file_class] : plan.policy.config_classes.rules())
        if (is_copied(file_class))
            refuse(problems, file_of(plan), "config.classes." + path, "nobody copies the user's config directory there",
                   "leave it out, or put the file into the workspace");
}

// Such a name is neither quoted nor divided anywhere.
void require_harmless(const std::string &path)
{
    if (is_property_safe(path) && path.find(':') == std::string::npos) return;
    throw Failure(ExitStatus::unavailable,
                  "the name " + escape_for_display(path) +
                      " cannot be written down for an engine; rename it to use only letters, digits and / _ . = @ -");
}

// --- The command: finds out, plans, asks whether a Job can do all of it, and writes. As in the runner, children that have become the user
// look: root opens nothing that the user names (design rule 1).

constexpr int search_seconds = mask_search_seconds + child_patience_seconds;

// Makes the user's policy the one that holds in this directory.
OpenedProject open_as(const AsRoot &root, Policy &policy, const AccessRules &rules, const Account &user, const std::string &directory)
{
    const HostView view = plan_host_view(policy);
    Child child(root, "look for " + user.name, user, {}, [&](const AsUser & /*user*/, FdRef channel) {
        open_as_caller(user, rules, open_or_throw("opening " + escape_for_display(directory), directory, O_PATH | O_DIRECTORY), channel);
    });
    auto opened = open_project(child, user, rules, view, std::move(policy), {});
    if (const auto *refused = std::get_if<Refused>(&opened)) throw Failure(ExitStatus::denied, refused->text);
    policy = std::get<OpenedProject>(opened).policy;
    return std::get<OpenedProject>(std::move(opened));
}

// Finds what exists and is protected. For what does not exist, the runner would mount placeholders, which no engine can.
void find_points(const AsRoot &root, const Policy &policy, const Account &user, const OpenedProject &project, RenderFacts &facts)
{
    const int top = project.shown.directory.get();
    ProjectsPolicy searched = policy.projects;
    searched.mask.clear(); // refused for every engine that is not ours
    Child finder(root, "finder of protected paths", user, {top}, [&](const AsUser &self, FdRef channel) {
        serve_guarded_paths(self, {{project.shown.directory, facts.tree}, project.repository, project.below, {}}, searched, channel);
    });
    const GuardedPaths found = decode_guarded_paths(finder.receive_long(search_seconds));
    facts.points = plan_points(found.read_only, found.kept);
    facts.notices = found.notices;
    // What a list of the policy protects and does not exist, each with the position of its entry.
    if (const auto &wanted = policy.projects.protect; wanted && !wanted->empty())
        for (const auto &placeholder : found.placeholders) {
            const auto is_for = [&](const PolicyPath &path) {
                return is_within(join_path(project.repository.value_or(""), path.path), placeholder);
            };
            const auto entry = std::ranges::find_if(*wanted, is_for); // none behind a link
            facts.missing.push_back({placeholder, (entry == wanted->end() ? wanted->front() : *entry).where});
        }
    const auto look = [&](const AsUser & /*self*/) { return Texts{links_among(facts.points, FdRef(top))}; };
    facts.links = ask(root, {"look at protected paths", user, {top}}, look, decode_paths);
}

// Whether each line with content is literally one of the assignments, as engines read it.
bool is_plain(const std::string &path, const std::vector<EnvAssignment> &assignments)
{
    std::set<std::string> plain;
    for (const auto &assignment : assignments)
        plain.insert(assignment.name + "=" + assignment.value);
    std::istringstream text(read_trusted_file(path, env_file_limit, "file of variables"));
    for (std::string line; std::getline(text, line);)
        if (!line.empty() && line[0] != '#' && !plain.contains(line)) return false;
    return true;
}

// Throws Failure(denied) where pi would not start, and whatever else keeps a start from coming about.
RenderFacts find_render_facts(const AsRoot &root, Policy &policy, const AccessRules &rules, const Account &user,
                              const std::string &directory)
{
    RenderFacts facts{{user, find_agent(policy, rules, user), {}, {}, {}, {}, {}, {}, {}}, {}, {}};
    require_harmless_groups(policy, rules, facts.agent);
    const OpenedProject project = open_as(root, policy, rules, user, directory);
    facts.tree = project.shown.path();
    for (const auto &closed : project.closed)
        if (is_within(closed.path, facts.tree))
            throw Failure(ExitStatus::unavailable,
                          "the root " + escape_for_display(closed.path) +
                              " has rules of its own, and only the runner hides it from this session; render for a "
                              "directory that does not hold it");
    facts.below = project.below;
    if (project.shown.by_group) facts.groups.push_back(*project.shown.by_group);
    for (const auto &other : project.git_directories)
        facts.beside.push_back(other.path());
    find_points(root, policy, user, project, facts);
    facts.managed_files = read_managed_env_files(policy.env_files);
    for (const auto &file : policy.env_files)
        if (!is_plain(file.path, facts.managed_files)) facts.quoted_files.insert(file.path);
    const AgentPlaces agents = places_of_state(policy, rules, project.roots);
    for (const auto &assignment : ask_host_env_files(root, user, policy.host_env_files, agents).assignments)
        facts.host_variables.push_back(assignment.where);
    return facts;
}

} // namespace

std::string default_image()
{
    return std::string("localhost/pi-agent:") + build::version;
}

std::vector<std::string> links_among(const std::map<std::string, PointKind> &points, FdRef top)
{
    std::vector<std::string> links;
    for (const auto &point : points) {
        const UniqueFd found = find_beneath(top, point.first, O_PATH);
        struct stat facts {};
        const bool is_behind_link = !found && (errno == ELOOP || errno == EXDEV);
        if (!found && !is_behind_link) throw_errno("looking at " + escape_for_display(point.first));
        if (found && fstat(found.get(), &facts) != 0) throw_errno("examining " + escape_for_display(point.first));
        if (is_behind_link || S_ISLNK(facts.st_mode)) links.push_back(point.first);
    }
    return links;
}

WorkspaceVolume parse_workspace_volume(const std::string &text)
{
    if (text.empty()) return {};
    const bool is_efs = text.rfind("efs:", 0) == 0;
    const std::string place = is_efs ? text.substr(4) : text;
    const std::size_t colon = place.find(':');
    const std::string server = place.substr(0, colon);
    const std::string path = colon == std::string::npos ? "" : place.substr(colon + 1);
    const bool is_whole = !server.empty() && !path.empty() && (is_efs ? path.rfind("fsap-", 0) == 0 : path[0] == '/');
    if (!is_whole) throw Failure(ExitStatus::usage, "--volume: '" + text + "' is neither SERVER:/EXPORT of NFS nor efs:fs-ID:fsap-ID");
    return {is_efs ? WorkspaceVolume::Kind::efs : WorkspaceVolume::Kind::nfs, server, path};
}

void run_render(const RenderOptions &options, std::ostream &out)
{
    if (options.target == "seccomp") {
        out << render_seccomp();
        return;
    }
    if (options.target != "kubernetes")
        throw Failure(ExitStatus::usage, "--target: unknown target " + quote(options.target) + ": kubernetes or seccomp");
    if (!options.user || !options.directory)
        throw Failure(ExitStatus::usage, "a rendering for kubernetes needs --user and --cwd: it is for one user in one directory");
    const AsRoot root = claim_root("render", "reads files of variables that only root can read, and looks for others");
    const auto user = find_account(*options.user);
    if (!user) throw Failure(ExitStatus::usage, "this host has no user " + quote(*options.user));
    Policy policy = load_enabled_policy(*user);
    const AccessRules rules = authorise(policy, *user);
    policy = policy_for(std::move(policy), rules);
    RenderFacts facts = find_render_facts(root, policy, rules, *user, *options.directory);
    facts.image = options.image;
    const RenderPlan plan = plan_rendering(policy, rules, facts);
    require_honoured(plan);
    out << render_kubernetes(plan, parse_workspace_volume(options.volume), options.arguments);
}

RenderPlan plan_rendering(const Policy &policy, const AccessRules &rules, const RenderFacts &facts)
{
    const std::string home = agents_home(policy.agent.state_dir, short_name(facts.user));
    const bool at_own_path = policy.projects.paths == ProjectPaths::host;
    const std::string place = at_own_path ? facts.tree : home + "/" + alias_directory + "/" + alias_of(facts.tree);
    // Made from the user and the tree together, so that Jobs of two users never meet.
    const std::string alias = alias_of("/" + facts.user.name + facts.tree);
    const std::size_t stem = alias.size() - hash_length;
    std::string label =
        ("pi-agent-" + facts.user.name + "-" + alias.substr(0, stem)).substr(0, label_limit - hash_length) + alias.substr(stem);
    std::ranges::transform(label, label.begin(),
                           [](unsigned char byte) { return std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '-'; });
    RenderPlan plan{static_cast<const RenderFound &>(facts),
                    label,
                    policy,
                    rules,
                    place,
                    facts.below.empty() ? place : join_path(place, facts.below),
                    home,
                    {},
                    {},
                    {}};
    std::set<std::string> places;
    for (const auto &file : policy.env_files) {
        RenderedEnvFile rendered{file, {}, !facts.quoted_files.contains(file.path)};
        for (const auto &assignment : facts.managed_files)
            if (assignment.where.substr(0, assignment.where.rfind(':')) == file.path) {
                rendered.names.insert(assignment.name);
                places.insert(assignment.where);
            }
        plan.env_files.push_back(std::move(rendered));
    }
    EnvironmentInput input{{}, {}, policy.env, facts.managed_files, rules.env, home, facts.agent.name, policy.agent.binary, {}};
    input.path = policy.path;
    plan.certificates = find_host_certificates(policy, rules, input, place);
    for (const auto &[name, variable] : layer_environment(input)) // except those of one session: an engine starts the same again and again
        if (name != "PI_AGENT_SESSION" && !places.contains(variable.from)) plan.variables[name] = variable.value;
    return plan;
}

void require_honoured(const RenderPlan &plan)
{
    Problems problems;
    for (const auto add : {add_network, add_projects, add_agent, add_view, add_limits, add_environment, add_documents, add_hardening})
        add(plan, problems);
    problems.throw_if_any();
    for (const auto &path : {plan.tree, plan.home, plan.place, plan.directory, plan.policy.agent.binary})
        require_harmless(path);
    for (const auto &file : plan.env_files)
        require_harmless(file.file.path);
    for (const auto &point : plan.points)
        require_harmless(point.first);
}

} // namespace pi_agent
