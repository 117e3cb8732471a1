// A start that gives something up has a part of what it would have without, in everything: files, networks, keys, variables, documents,
// notes, devices. From the policy's text to what each part of a start plans.
#include "common/decide/decision.hpp"

#include "runner/as_user/project.hpp"
#include "runner/as_user/protected_paths.hpp"
#include "runner/plan/sandbox_plan.hpp"
#include "runner/root/errand/errand.hpp"
#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/drawn.hpp"
#include "support/forked.hpp"
#include "support/policy_text.hpp"
#include "support/skipped.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <iostream>
#include <random>

using namespace pi_agent;
using namespace pi_agent::test;

namespace narrowing_property_test {

namespace {

namespace fs = std::filesystem;
using Facts = std::set<std::string>;

class Draw {
public:
    explicit Draw(unsigned seed) : random_(seed) {}
    std::size_t below(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }
    bool coin() { return below(2) == 0; }
    template <typename List>
    std::string one_of(const List &list)
    {
        return list[below(std::size(list))];
    }
    template <typename List>
    std::string some_of(const List &list)
    {
        std::string text;
        for (const char *one : list)
            if (coin()) text += (text.empty() ? "" : ", ") + std::string(one);
        return text;
    }

private:
    std::mt19937 random_;
};

// --- The user's root: two repositories, a worktree of one that lies elsewhere, directories without one, and second names of two files.

constexpr const char *files[] = {
    "app/main",        "app/deploy/keys/own", "app/.env",           "app/.git/config", "infra/deploy/keys/theirs",
    "infra/readme",    "secrets/token",       "secrets/deep/other", "ci/run",          "ci/deep/step",
    "plain/ci/script", "plain/notes",         "lib/.git/config",    "lib/ci/job",      "lib/src/code"};
constexpr const char *starts[] = {"",   "app",     "app/deploy/keys", "infra",   "infra/deploy", "secrets", "secrets/deep",
                                  "ci", "ci/deep", "plain",           "lib/src", "tree"};
constexpr const char *main_git = "infra/main/.git";

struct UsersRoot {
    UsersRoot() : account(user_account()), path(place / "projects")
    {
        set_mode(place.path(), 0755);
        for (const char *file : files) {
            place.make("projects/" + fs::path(file).parent_path().string());
            place.write("projects/" + std::string(file), file);
        }
        fs::create_hard_link(path + "/infra/deploy/keys/theirs", path + "/app/linked");
        fs::create_hard_link(path + "/secrets/deep/other", path + "/plain/linked");
        place.link("projects/steps", "ci"); // protected by this name, too
        make_worktree();
        give(path, account);
        for (const auto &entry : fs::recursive_directory_iterator(path))
            give(entry.path(), account);
    }

    [[nodiscard]] AccessRules access() const
    {
        AccessRules rules{"users.alice", Position{"p.yaml", 5, 3}, {}, account.home + "/.pi/agent", "pi-agent", {}};
        rules.roots.push_back(GrantedRoot{RootSpec{path, Position{"p.yaml", 6, 12}}, std::nullopt});
        return rules;
    }

    // Every file that there is, and its content, which is its name; a second name has the first one's.
    [[nodiscard]] std::map<std::string, std::string> contents() const
    {
        std::map<std::string, std::string> found;
        for (const auto &entry : fs::recursive_directory_iterator(path))
            if (entry.is_regular_file() && !entry.is_symlink())
                found[entry.path().string().substr(path.size() + 1)] = std::to_string(inode_of(open_path(entry.path(), O_PATH)));
        return found;
    }

    TemporaryDirectory place{place_for_projects()};
    Account account;
    std::string path;

private:
    void make_worktree() const
    {
        const std::string git = "projects/" + std::string(main_git);
        for (const char *directory : {"/objects", "/refs", "/worktrees/tree"})
            place.make(git + directory);
        place.write(git + "/HEAD", "ref: refs/heads/main\n");
        place.write(git + "/worktrees/tree/commondir", "../..\n");
        place.write(git + "/worktrees/tree/HEAD", "ref: refs/heads/tree\n");
        place.write(git + "/worktrees/tree/gitdir", path + "/tree/.git\n");
        place.make("projects/tree");
        place.write("projects/tree/.git", "gitdir: " + path + "/" + main_git + "/worktrees/tree\n");
        place.write("projects/tree/work", "work");
    }
};

// --- What a session sees of it: by the same child that opens it and the same search as a start.

// Of each of its trees.
std::vector<GuardedPaths> guarded_in(const UsersRoot &root, const OpenedProject &project, const ProjectsPolicy &projects)
{
    const AsRoot self = AsRoot::claim();
    GuardedTrees trees{{project.shown.directory, project.shown.path()}, project.repository, project.below, {}};
    std::vector<int> keep = {project.shown.directory.get()};
    for (const auto &tree : project.git_directories) {
        trees.git_directories.push_back({tree.directory, tree.path()});
        keep.push_back(tree.directory.get());
    }
    if (project.root_directory) {
        trees.around = {{project.root_directory, project.shown.root_path}, project.shown.inside};
        keep.push_back(project.root_directory.get());
    }
    Child child(self, "finder", root.account, keep,
                [&](const AsUser &user, FdRef channel) { serve_guarded_paths(user, trees, projects, channel); });
    std::vector<GuardedPaths> guarded;
    while (guarded.size() < project.trees().size())
        guarded.push_back(decode_guarded_paths(child.receive_long(child_patience_seconds)));
    return guarded;
}

bool lies_in(const std::string &path, const std::vector<std::string> &paths)
{
    return std::any_of(paths.begin(), paths.end(), [&](const std::string &one) { return is_within(path, one); });
}

Facts files_in(const UsersRoot &root, const std::map<std::string, std::string> &contents, const std::string &start,
               const ProjectsPolicy &projects)
{
    Facts facts;
    const AsRoot self = AsRoot::claim();
    const UniqueFd cwd = open_path(start.empty() ? root.path : root.path + "/" + start, O_PATH | O_DIRECTORY);
    const AccessRules access = root.access();
    Child child(self, "opener", root.account, {cwd.get()},
                [&](const AsUser &, FdRef channel) { open_as_caller(root.account, access, cwd, channel); });
    Policy policy;
    policy.projects = projects;
    const auto opened = open_project(child, root.account, access, HostView{}, std::move(policy), {});
    const auto &project = std::get<OpenedProject>(opened);
    const std::vector<GuardedPaths> guarded = guarded_in(root, project, projects);
    for (std::size_t index = 0; index < guarded.size(); ++index) {
        const std::string top = project.trees().at(index)->path();
        for (const auto &[name, content] : contents) {
            const std::string path = root.path + "/" + name;
            if (!is_within(path, top)) continue;
            const std::string below = path.substr(top.size() + 1);
            if (lies_in(below, guarded[index].masked)) continue;
            facts.insert("read " + content);
            if (!lies_in(below, guarded[index].read_only)) facts.insert("write " + name);
        }
    }
    return facts;
}

// Many draws are alike in what counts here. A refused start sees nothing.
class FilesOfStarts {
public:
    explicit FilesOfStarts(const UsersRoot &root) : root_(root), contents_(root.contents()) {}

    const Facts &of(const std::string &start, const ProjectsPolicy &projects)
    {
        std::string key = fmt::format("{}|{}|{}|", start, static_cast<int>(projects.scope), projects.repository_alone);
        for (const auto &mask : projects.mask)
            key += mask.path + ",";
        for (const auto &path : projects.protect.value_or(std::vector<PolicyPath>{{"default", {}}}))
            key += path.path + ";";
        const auto [at, is_new] = known_.emplace(key, Facts());
        if (!is_new) return at->second;
        try {
            at->second = files_in(root_, contents_, start, projects);
        } catch (const Failure &failure) {
            CHECK_MESSAGE(failure.kind() == FailureKind::masked, key << failure.what());
            ++refused_;
        }
        return at->second;
    }

    [[nodiscard]] int refused() const { return refused_; }

private:
    const UsersRoot &root_;
    const std::map<std::string, std::string> contents_;
    std::map<std::string, Facts> known_;
    int refused_ = 0;
};

// --- Policies.

constexpr const char *masks[] = {"infra/deploy/keys", "secrets", "'.env'", "deploy/keys", "infra"};
constexpr const char *protects[] = {"default", "[ci/]", "[steps, readme]", "[]"};
constexpr const char *providers[] = {"anthropic: {key_file: /etc/a}", "openai: {key_file: /etc/o}", "google: {key_file: /etc/g}"};
constexpr const char *hosts[] = {"a.example", "'*.b.example'", "localhost:5432", "api.openai.com"};
constexpr const char *networks[] = {"full", "loopback", "[127.0.0.0/8, 10.0.0.0/8]", "none"};
constexpr const char *variables[] = {"PLAIN: a", "GEMINI_API_KEY: policy-google", "AWS_REGION: b", "HTTPS_PROXY: 'http://policy@proxy'"};
constexpr const char *users_variables[] = {"OPENAI_API_KEY: users-entry-openai", "no_proxy: users-entry"};
constexpr const char *documents[] = {"models: {providers: {anthropic: {apiKey: document-anthropic}}}", "settings: {a: 1}", "mcp: {b: 2}"};
constexpr const char *devices[] = {"/dev/kvm", "/dev/dri"};

std::string network_of(Draw &draw, bool is_closed)
{
    if (draw.coin()) return fmt::format("{{hosts: [{}], may_grant: [c.example]}}", draw.some_of(hosts));
    return is_closed ? "none" : draw.one_of(networks);
}

std::string policy_text(Draw &draw)
{
    const bool has_providers = draw.coin();
    std::string text = fmt::format("version: 1\nnetwork: {}\nprojects: {{scope: {}, protect: {}, mask: [{}], read_only: {}}}\n",
                                   network_of(draw, has_providers), draw.below(4) == 0 ? "project" : "root", draw.one_of(protects),
                                   draw.some_of(masks), draw.below(4) == 0);
    if (has_providers) text += fmt::format("providers: {{{}}}\n", draw.some_of(providers));
    text += fmt::format("env: {{{}}}\ndevices: [{}]\nenv_files: [{}]\n", draw.some_of(variables), draw.some_of(devices),
                        draw.coin() ? "/etc/pi-agent/env" : "");
    for (const char *document : documents)
        if (draw.coin()) text += document + std::string("\n");
    return text + fmt::format("users: {{alice: {{roots: [{{path: /srv/a{}}}], env: {{{}}}{}}}}}\n",
                              draw.below(3) == 0 ? ", network: " + network_of(draw, has_providers) : "", draw.some_of(users_variables),
                              draw.below(3) == 0 && has_providers ? ", providers: {anthropic: {key_file: /etc/b}}" : "");
}

// --- What a session has.

const std::vector<EnvAssignment> roots_files = {{"ANTHROPIC_API_KEY", "file-anthropic", "/etc/pi-agent/env:1"},
                                                {"AWS_BEARER_TOKEN_BEDROCK", "file-bedrock", "/etc/pi-agent/env:2"},
                                                {"https_proxy", "http://file-password@proxy", "/etc/pi-agent/env:3"}};
const std::vector<EnvAssignment> users_files = {{"ANTHROPIC_OAUTH_TOKEN", "own-anthropic", "env:1"},
                                                {"OPENAI_API_KEY", "own-openai", "env:2"}};

// By hold_outside and show_gate, as a start does.
EnvironmentInput environment_of(const Policy &policy, const AccessRules &access)
{
    EnvironmentInput input{{},         users_files,         policy.env, {}, access.env, "/var/lib/pi-agent/users/alice/home",
                           "pi-agent", policy.agent.binary, "ID"};
    if (!policy.env_files.empty()) input.managed_files = roots_files;
    hold_outside(input, policy);
    if (policy.network.mode == NetworkMode::hosts) input.gate.merge(gate_environment());
    return input;
}

void add_network(Facts &facts, const Policy &policy)
{
    const auto &network = policy.network;
    if (network.mode == NetworkMode::full) facts.insert({"reach anything", "reach the host's loopback"});
    for (const auto &range : network.allowed)
        facts.insert(range.prefix > 8 || overlap(range, loopback_ranges().front()) || overlap(range, loopback_ranges().back())
                         ? "reach the host's loopback"
                         : "reach " + to_string(range));
    for (const auto &rule : network.hosts)
        facts.insert("reach host " + to_string(rule));
    for (const auto &provider : routed_providers(policy))
        facts.insert("ask " + provider.name);
}

void add_documents(Facts &facts, const Policy &policy, const AccessRules &access, const EnvironmentInput &environment)
{
    const AgentPlaces agents = places_of_state(policy, access, {{"/srv/a", 1, 2}});
    const SyncPlan plan = plan_sync(policy, access, user_account(), managed_environment(environment), agents,
                                    std::vector<std::string>(policy.providers.size(), "placeholder"));
    const WritingPlan written = with_held_models(plan.writing);
    for (const auto &[name, rule] : written.documents)
        facts.insert("document " + name + " with " + rule.managed);
    for (const char *provider : {"anthropic", "openai", "google"})
        if (!plan.writing.held_providers.contains(provider)) facts.insert(std::string("the user's own key of ") + provider);
    for (const auto &provider : plan.writing.managed_providers)
        if (!plan.writing.held_providers.contains(provider)) facts.insert("the policy's key of " + provider);
    for (const auto &name : plan.reading.documents)
        facts.insert("read " + name);
    for (const char *path : {"/srv/a/.env", "/srv/a/app/deploy/keys", "/srv/a/infra/deploy/keys", "/srv/a/secrets", "/srv/a/plain"})
        if (!is_masked(agents, path)) facts.insert(std::string("follow into ") + path);
}

void add_notes(Facts &facts, const Policy &policy)
{
    const std::string notes = box_notes({policy, "/srv/a", "/home", "pi-agent"});
    for (const char *name : {"a.example", "*.b.example", "localhost:5432", "api.openai.com", "10.0.0.0/8"})
        if (contains(notes, name)) facts.insert(std::string("is told of ") + name);
}

Facts facts_of(const Policy &policy, const AccessRules &access)
{
    Facts facts;
    add_network(facts, policy);
    const EnvironmentInput environment = environment_of(policy, access);
    for (const auto &[name, variable] : layer_environment(environment))
        facts.insert("variable " + name + "=" + variable.value);
    add_documents(facts, policy, access, environment);
    add_notes(facts, policy);
    for (const auto &device : policy.devices)
        facts.insert("device " + device.path);
    return facts;
}

// As a start has it: where all is read-only, nothing is protected besides.
ProjectsPolicy guarded(ProjectsPolicy projects)
{
    if (projects.read_only) projects.protect.emplace();
    return projects;
}

std::string beyond(const Facts &after, const Facts &before)
{
    std::string more;
    for (const auto &fact : after)
        if (!before.contains(fact)) more += "\n  " + fact;
    return more;
}

std::string files_beyond(const Facts &after, const Facts &before, const ProjectsPolicy &projects, bool was_read_only)
{
    std::string more;
    for (const auto &fact : after) {
        const bool is_writing = fact.starts_with("write ");
        if (is_writing && projects.read_only) continue;
        if (!before.contains(fact) || (is_writing && was_read_only)) more += "\n  " + fact;
    }
    return more;
}

// No layer brings in a key that the policy keeps outside, whatever network the session has. Keys are called after their provider here.
std::string first_key_inside(const Facts &facts, const Policy &policy)
{
    for (const auto &provider : policy.providers)
        for (const auto &fact : facts)
            if (contains(fact, "-" + provider.name)) return fact;
    return "";
}

} // namespace

TEST_CASE("a start that gives something up has a part of what it would have without, in everything" * doctest::skip(not_root()))
{
    const int count = drawn_of(10'000);
    const auto seed = seed_of_run();
    std::cout << "policies and starts drawn with PI_AGENT_SEED=" << seed << '\n';
    Draw draw(seed);
    const UsersRoot root;
    FilesOfStarts of_starts(root);
    int narrower = 0;
    int refused = 0;
    for (int number = 0; number < count; ++number) {
        const auto text = policy_text(draw);
        const auto start = draw.one_of(starts);
        const Account alice{"alice", Uid(1000), Gid(1000), "/home/alice", {}};
        const Policy whole = parse(text);
        const auto access = std::get<AccessRules>(find_access_rules(whole, alice, "p.yaml"));
        const Policy policy = policy_in(policy_for(whole, access), access.roots.front().spec);
        const Narrowing narrowing{static_cast<LeftNetwork>(draw.below(3)), draw.coin(), draw.coin()};
        const auto before = facts_of(policy, access);
        const auto &files_before = of_starts.of(start, guarded(policy.projects));
        const auto inside = first_key_inside(before, policy);
        CHECK_MESSAGE(inside.empty(), "seed " << seed << ": " << text << inside);
        try {
            const auto asked = narrowed(policy, narrowing);
            const auto after = facts_of(asked, access);
            const auto &files_after = of_starts.of(start, guarded(asked.projects));
            const auto more = beyond(after, before) + files_beyond(files_after, files_before, asked.projects, policy.projects.read_only);
            CHECK_MESSAGE(more.empty(), "seed " << seed << ", started in '" << start << "', network " << static_cast<int>(narrowing.network)
                                                << ", read only " << narrowing.read_only << ", project " << narrowing.project_only << "\n"
                                                << text << "has more:" << more);
            narrower += after.size() < before.size() || files_after.size() < files_before.size() ? 1 : 0;
        } catch (const Failure &failure) {
            CHECK_MESSAGE(failure.kind() == FailureKind::start_asks, text << failure.what());
            ++refused;
        }
    }
    CHECK(narrower > count / 4);
    CHECK(refused > count / 100);
    CHECK(of_starts.refused() > 10);
}

} // namespace narrowing_property_test
