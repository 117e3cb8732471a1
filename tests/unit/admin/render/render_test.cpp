// Renderings of every example policy for every engine: admin/render/render.hpp. PI_AGENT_WRITE_RENDERINGS=1 writes
// tests/unit/data/renderings anew; read what changed.
#include "admin/render/render.hpp"

#include "common/decide/effective.hpp"
#include "support/failure.hpp"
#include "support/policy_text.hpp"
#include "support/temporary_directory.hpp"

#include <cerrno>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace pi_agent;
using namespace pi_agent::test;

namespace render_test {

namespace {

constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30U;
constexpr RenderTarget all_targets[] = {RenderTarget::kubernetes, RenderTarget::podman, RenderTarget::quadlet, RenderTarget::systemd,
                                        RenderTarget::slurm};

std::string read_file(const std::filesystem::path &path)
{
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// Somebody of each example, and a repository of theirs.
struct Person {
    std::string name;
    std::string home;
    std::vector<gid_t> groups;
    std::string root;
};

Person person_of(const std::string &example)
{
    if (example == "ci-runner") return {"ci", "/home/ci", {1007}, "/srv/ci/one"};
    if (example == "team-with-groups") return {"bob", "/home/bob", {1001}, "/home/bob/work/tool"};
    return {"alice", "/home/alice", {1000}, "/home/alice/projects"};
}

RenderFacts facts_of(const Person &person)
{
    const bool is_alice = person.name == "alice";
    return {{{person.name, Uid(person.groups[0]), Gid(person.groups[0]), person.home, person.groups},
             {"pi-agent", Uid(990), Gid(985), "/nonexistent", {985}},
             person.root,
             is_alice ? "demo" : "",
             {},
             {},
             {{is_alice ? "demo/.git" : ".git", PointKind::prefix}, {is_alice ? "demo/.git/hooks" : ".git/hooks", PointKind::read_only}},
             {},
             16 * gibibyte,
             "localhost/pi-agent:golden"},
            {},
            {}};
}

RenderPlan planned(const Policy &policy, const RenderFacts &facts)
{
    auto plan = plan_rendering(policy, std::get<AccessRules>(find_access_rules(policy, facts.user, "p.yaml")), facts);
    for (const char *name : {"BASH_ENV", "NPM_CONFIG_GLOBALCONFIG", "PATH", "PI_AGENT_VERSION", "SHELL"}) // of the build
        plan.variables[name] = "/golden";
    return plan;
}

std::string render(RenderTarget target, const RenderPlan &plan)
{
    const std::vector<std::string> arguments = {"-p", "say 100% \"$HOME\" isn't it"};
    try {
        require_honoured(target, plan);
    } catch (const PolicyError &error) {
        return std::string(error.what()) + "\n";
    }
    std::string text;
    if (target == RenderTarget::kubernetes)
        text = render_kubernetes(plan, parse_workspace_volume("nfs.example.net:/workspaces"), arguments);
    if (target == RenderTarget::podman) text = render_podman(plan, arguments);
    if (target == RenderTarget::quadlet) text = render_quadlet(plan, arguments);
    if (target == RenderTarget::systemd) text = render_systemd(plan, arguments);
    if (target == RenderTarget::slurm) text = render_slurm(plan, arguments);
    return text.substr(text.find('\n') + 1); // the first line has the version
}

// A policy that alice may use, of these lines beside.
RenderPlan plan_with(const std::string &lines, const std::string &of_alice = "")
{
    return planned(parse("version: 1\nusers: {alice: {roots: [~/projects]" + of_alice + "}}\n" + lines), facts_of(person_of("")));
}

std::string refusal(RenderTarget target, const RenderPlan &plan)
{
    try {
        require_honoured(target, plan);
        return "";
    } catch (const Failure &failure) {
        return failure.what();
    }
}

} // namespace

TEST_CASE("every example policy is rendered for every engine as the golden files say")
{
    const std::filesystem::path place = std::filesystem::path(PI_AGENT_EXAMPLES).parent_path() / "tests/unit/data/renderings";
    int seen = 0;
    for (const auto &entry : std::filesystem::directory_iterator(PI_AGENT_EXAMPLES)) {
        const std::string name = entry.path().stem().string();
        const auto policy = parse_policy({{entry.path().filename().string(), read_file(entry.path())}});
        auto facts = facts_of(person_of(name));
        for (const auto &file : policy.env_files)
            facts.managed_files.push_back({"LLM_KEY", "s3cret", file.path + ":1"});
        const auto plan = planned(policy, facts);
        for (const auto target : all_targets) {
            const auto file = place / (name + "." + to_string(target) + ".txt");
            const std::string text = render(target, plan);
            CHECK_FALSE(contains(text, "s3cret"));
            if (std::getenv("PI_AGENT_WRITE_RENDERINGS") != nullptr) // NOLINT(concurrency-mt-unsafe)
                std::ofstream(file) << text;
            else
                CHECK_MESSAGE(text == read_file(file), file.string());
            ++seen;
        }
    }
    CHECK(seen == 35);
}

TEST_CASE("what an engine cannot honour is an error that names the key and its place")
{
    struct Row {
        std::string lines;
        std::string key;
        std::set<RenderTarget> met_by;
    };
    using T = RenderTarget;
    const std::vector<Row> rows = {
        {"network: loopback\n", "p.yaml:3:10: network: ", {T::systemd, T::slurm}},
        {"network: [10.0.0.0/8]\n", "p.yaml:3:10: network: ", {T::systemd, T::kubernetes, T::slurm}},
        {"network: [10.0.0.0/8, 127.0.0.0/8]\n", "p.yaml:3:10: network: ", {T::systemd, T::slurm}},
        {"network: [126.0.0.0/7]\n", "p.yaml:3:10: network: ", {T::systemd, T::slurm}},
        {"network: ['::/1']\n", "p.yaml:3:10: network: ", {T::systemd, T::slurm}},
        {"network: {hosts: [a.example]}\n", "p.yaml:3:10: network: ", {T::slurm}},
        {"network: {hosts: []}\nproviders: {openai: {key_file: /etc/k}}\n", "p.yaml:4:13: providers: ", {T::slurm}},
        {"network: none\n", "network: ", {T::systemd, T::kubernetes, T::slurm, T::podman, T::quadlet}},
        {"projects: {mask: [.env]}\n", "p.yaml:3:19: projects.mask: ", {T::slurm}},
        {"view: host\n", "p.yaml: view: ", {T::systemd, T::slurm}},
        {"view_paths: [/srv/tools]\n", "p.yaml:3:14: view_paths: ", {T::systemd, T::slurm, T::podman, T::quadlet}},
        {"toolchains: {readable: [~/.nvm]}\n", "p.yaml:3:25: toolchains.readable: ", {T::slurm}},
        {"toolchains: {caches: [~/.npm]}\n", "p.yaml:3:23: toolchains.caches: ", {T::slurm}},
        {"limits: {memory: 50%}\n", "p.yaml:3:18: limits.memory: ", {T::systemd, T::slurm, T::podman, T::quadlet}},
        {"limits: {tasks: 100}\n", "p.yaml:3:17: limits.tasks: ", {T::systemd, T::slurm, T::podman, T::quadlet}},
        {"limits: {sessions: 2}\n", "p.yaml:3:20: limits.sessions: ", {T::kubernetes, T::slurm}},
        {"limits: {disk: 10G}\n", "p.yaml:3:16: limits.disk: ", {T::slurm}},
        {"agent: {binary_name: coder}\n", "p.yaml:3:8: agent.binary_name: ", {T::systemd, T::slurm}},
        {"env: {SSL_CERT_FILE: /srv/ca.pem}\n", "p.yaml:3:7: env.SSL_CERT_FILE: ", {T::slurm}},
        {"env: {SSL_CERT_FILE: /etc/ssl/certs/own.pem}\n", "p.yaml:3:7: env.SSL_CERT_FILE: ", {T::systemd, T::slurm}},
        {"env: {SSL_CERT_DIR: '/etc/ssl/certs:/srv/ca'}\n", "p.yaml:3:7: env.SSL_CERT_DIR: ", {T::slurm}},
        {"view_paths: [/srv/ca]\nenv: {NODE_EXTRA_CA_CERTS: /srv/ca/own.pem}\n",
         "p.yaml:4:7: env.NODE_EXTRA_CA_CERTS: ",
         {T::systemd, T::slurm, T::podman, T::quadlet}},
        {"env: {SSL_CERT_FILE: /home/alice/projects/ca.pem}\n", "", {T::systemd, T::slurm, T::podman, T::quadlet, T::kubernetes}},
        {"config: {classes: {skills: mirror}}\n", "p.yaml: config.classes.skills: ", {T::systemd, T::slurm, T::podman, T::quadlet}},
        {"config: {classes: {skills: never}}\n", "", {T::systemd, T::slurm, T::podman, T::quadlet, T::kubernetes}},
        {"mcp: {s: {args: ['--token', abc]}}\n", "p.yaml: mcp.s.args.1: ", {T::systemd, T::slurm, T::podman, T::quadlet}},
        {"settings_lock: true\n", "p.yaml: settings_lock: ", {T::kubernetes, T::slurm}},
        {"env: {API_KEY: x}\n", "p.yaml:3:7: env.API_KEY: ", {T::slurm}},
        {"wrapper: {clipboard: false}\n", "p.yaml:3:10: wrapper.clipboard: ", {T::systemd, T::quadlet, T::slurm}},
    };
    for (const auto &row : rows) {
        const auto plan = plan_with(row.lines);
        for (const auto target : {T::kubernetes, T::podman, T::quadlet, T::systemd, T::slurm}) {
            CAPTURE(row.lines);
            CAPTURE(std::string(to_string(target)));
            const std::string text = refusal(target, plan);
            if (row.met_by.contains(target))
                CHECK(text.empty());
            else
                CHECK(contains(text, row.key + to_string(target) + " cannot honour it: "));
        }
    }
}

TEST_CASE("what a user has of their own, and what is outside of the root, is an error for all but our own runner")
{
    CHECK(contains(refusal(RenderTarget::podman, plan_with("", ", ssh: {key: .ssh/id}")), "users.alice.ssh.key: podman cannot honour it"));
    CHECK(contains(refusal(RenderTarget::podman, plan_with("", ", signing: {key: .ssh/id}")),
                   "users.alice.signing.key: podman cannot honour it"));
    CHECK(contains(refusal(RenderTarget::podman, plan_with("", ", env: {DB_PASSWORD: x}")), "users.alice.env.DB_PASSWORD: podman"));
    auto facts = facts_of(person_of(""));
    facts.host_variables = {"/home/alice/.pi/agent/env:1"};
    facts.beside = {"/home/alice/other/.git"};
    const auto plan = planned(parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n"), facts);
    const std::string text = refusal(RenderTarget::systemd, plan);
    CHECK(contains(text, "host_env_files: systemd cannot honour it: /home/alice/.pi/agent/env:1 sets variables"));
    CHECK(contains(text, "git directory elsewhere, at /home/alice/other/.git"));
    CHECK(refusal(RenderTarget::slurm, plan).empty());
    const auto policy = parse("version: 1\nusers: {alice: {roots: [~/projects], readable: [~/data]}}\n");
    const auto of_alice = policy_for(policy, std::get<AccessRules>(find_access_rules(policy, facts.user, "p.yaml")));
    const std::string said = refusal(RenderTarget::podman, planned(of_alice, facts_of(person_of(""))));
    CHECK(contains(said, "users.alice.readable: podman cannot honour it: '~/data' belongs to the user"));
}

TEST_CASE("the value of a file of variables is in no rendering, and its name is")
{
    auto facts = facts_of(person_of(""));
    facts.managed_files = {{"TOKEN", "s3cret", "/etc/pi-agent/env:1"}, {"PLAIN", "s3cret", "/etc/pi-agent/env:2"}};
    const auto policy = parse("version: 1\nusers: {alice: {roots: [~/projects]}}\nenv_files: [/etc/pi-agent/env]\nenv: {PLAIN: weaker}\n");
    const auto plan = planned(policy, facts);
    for (const auto target : all_targets) {
        const std::string text = render(target, plan);
        CHECK_FALSE(contains(text, "cannot honour"));
        CHECK_FALSE(contains(text, "s3cret"));
        CHECK_FALSE(contains(text, "weaker"));
        if (target != RenderTarget::slurm) CHECK(contains(text, "/etc/pi-agent/env"));
    }
}

TEST_CASE("a file of variables that an engine would read otherwise is refused")
{
    auto facts = facts_of(person_of(""));
    facts.managed_files = {{"A", "x", "/etc/pi-agent/env:1"}};
    facts.quoted_files = {"/etc/pi-agent/env"};
    const auto policy = parse("version: 1\nusers: {alice: {roots: [~/projects]}}\nenv_files: [/etc/pi-agent/env]\n");
    CHECK(contains(refusal(RenderTarget::podman, planned(policy, facts)), "has quotes or continued lines"));
    CHECK(refusal(RenderTarget::systemd, planned(policy, facts)).empty());
    facts.quoted_files.clear();
    facts.managed_files = {{"A", "x", "/etc/pi-agent/env:1"}};
    const auto twice = parse("version: 1\nusers: {alice: {roots: [~/projects], env: {A: y}}}\nenv_files: [/etc/pi-agent/env]\n");
    CHECK(contains(refusal(RenderTarget::systemd, planned(twice, facts)), "sets A, and so does a stronger layer"));
    CHECK(contains(render(RenderTarget::podman, planned(twice, facts)), "--env=A=y"));
}

TEST_CASE("a name that a unit or a volume would divide is refused")
{
    for (const std::string odd : {"a b", "a:b", "a%b", "a,b", "a\nExecStartPre=+x"}) {
        auto facts = facts_of(person_of(""));
        facts.tree += "/" + odd;
        const auto plan = planned(parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n"), facts);
        for (const auto target : {RenderTarget::podman, RenderTarget::quadlet, RenderTarget::systemd, RenderTarget::kubernetes})
            CHECK(contains(refusal(target, plan), "cannot be written down for an engine"));
        if (odd.find('\n') != std::string::npos) { // a shell's quotes do not keep it from root's terminal
            CHECK(contains(refusal(RenderTarget::slurm, plan), "a\\x0aExecStartPre=+x/demo cannot be written down for an engine"));
            continue;
        }
        CHECK(refusal(RenderTarget::slurm, plan).empty());
        const std::string quote = odd.find(' ') == std::string::npos ? "" : "'"; // the others mean nothing to a shell
        CHECK(contains(render_slurm(plan, {}), "--chdir=" + quote + "/home/alice/projects/" + odd + "/demo" + quote));
    }
}

TEST_CASE("certificates that a file of variables or a user's entry names are told by these, and the name of a variable is no secret of a "
          "document")
{
    auto facts = facts_of(person_of(""));
    facts.managed_files = {{"PIP_CERT", "/srv/ca.pem", "/etc/pi-agent/env:1"}, {"LLM_KEY", "s3cret", "/etc/pi-agent/env:2"}};
    const std::string text = refusal(RenderTarget::systemd,
                                     planned(parse("version: 1\nusers: {alice: {roots: [~/projects], env: {CURL_CA_BUNDLE: /srv/ca.pem}}}\n"
                                                   "env_files: [/etc/pi-agent/env]\n"),
                                             facts));
    CHECK(contains(text, "p.yaml:3:13: env_files: systemd cannot honour it: PIP_CERT names certificates"));
    CHECK(contains(text, "users.alice.env.CURL_CA_BUNDLE: systemd cannot honour it: CURL_CA_BUNDLE names certificates"));
    facts.managed_files.erase(facts.managed_files.begin());
    CHECK(refusal(RenderTarget::kubernetes, planned(parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n"
                                                          "env_files: [/etc/pi-agent/env]\nmodels: {providers: {x: {apiKey: LLM_KEY}}}\n"),
                                                    facts))
              .empty());
}

TEST_CASE("the agent finds its own name under systemd")
{
    CHECK(contains(render_systemd(plan_with("agent: {binary_name: coder}\n"), {"-p"}),
                   "\nExecStart=@/usr/lib/pi-agent/agent/bin/pi coder -p\n"));
}

TEST_CASE("a file of variables whose name a unit would read otherwise is refused")
{
    const auto plan = plan_with("env_files: ['/etc/pi-agent/%h env']\n");
    for (const auto target : {RenderTarget::podman, RenderTarget::quadlet, RenderTarget::systemd, RenderTarget::kubernetes})
        CHECK(contains(refusal(target, plan), "the name /etc/pi-agent/%h env cannot be written down for an engine"));
    CHECK(refusal(RenderTarget::slurm, plan).empty());
}

TEST_CASE("what a quadlet says ends in ExecStart=, where a dollar sign is doubled, and what the generator would lose is refused")
{
    const auto plan = plan_with("env: {PROMPT: '$HOME 100%'}\n");
    CHECK(contains(render_quadlet(plan, {"$PATH"}), "\nEnvironment=\"PROMPT=$$HOME 100%%\"\n"));
    CHECK(contains(render_quadlet(plan, {"$PATH"}), "\nExec=\"$$PATH\"\n"));
    const auto refused = [&](const std::vector<std::string> &arguments) {
        return failure_of([&] { return render_quadlet(plan, arguments); }).text;
    };
    CHECK(contains(refused({"-p", ""}), "argument 2 of the agent, '': podman's generator drops"));
    CHECK(contains(refused({";"}), "argument 1 of the agent, ';': podman's generator writes it without quotes"));
    CHECK(refused({"-p", "a; b", " "}).empty());
}

TEST_CASE("no variable of root's comes into a container")
{
    CHECK(contains(render_podman(plan_with(""), {}), "  --http-proxy=false \\\n"));
    CHECK(contains(render_quadlet(plan_with(""), {}), "PodmanArgs=--http-proxy=false\n"));
}

TEST_CASE("what root's engine would follow, and what the runner alone keeps from being made or seen, is an error that names it")
{
    auto facts = facts_of(person_of(""));
    facts.links = {"demo/.git/hooks"};
    facts.mounts = {"demo/data"};
    const auto plan = planned(parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n"), facts);
    for (const auto target : all_targets) {
        const std::string text = refusal(target, plan);
        const std::string cannot = std::string(to_string(target)) + " cannot honour it: ";
        const bool is_ours = target == RenderTarget::slurm;
        CHECK(contains(text, "p.yaml: projects.protect: " + cannot + "'demo/.git/hooks' is a symlink") == !is_ours);
        CHECK(contains(text, "users.alice.roots: " + cannot + "a file system is mounted at 'demo/data'") ==
              (!is_ours && target != RenderTarget::kubernetes)); // which has a copy of its own
    }
    facts.links.clear();
    facts.mounts.clear();
    const auto policy = parse("version: 1\nusers: {alice: {roots: [~/projects]}}\nprojects: {protect: [.envrc, Makefile]}\n");
    facts.missing = {{"demo/Makefile", policy.projects.protect->back().where}};
    CHECK(contains(refusal(RenderTarget::systemd, planned(policy, facts)),
                   "p.yaml:3:30: projects.protect: systemd cannot honour it: 'demo/Makefile' does not exist"));
    CHECK(refusal(RenderTarget::slurm, planned(policy, facts)).empty());
}

TEST_CASE("what a start would tell of protected paths is in the head, and does nothing to root's terminal")
{
    auto facts = facts_of(person_of(""));
    facts.notices = {"not protected from the agent, because you cannot look at it: /home/alice/projects/a\nrm x"};
    const auto plan = planned(parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n"), facts);
    CHECK(contains(render(RenderTarget::systemd, plan), "\n# Of the project: not protected from the agent, because you cannot look at it: "
                                                        "/home/alice/projects/a\\x0arm x\n"));
}

TEST_CASE("a Job says that it lacks limits, and that something else must enforce its network")
{
    const auto said = [](const std::string &lines) { return render(RenderTarget::kubernetes, plan_with(lines)); };
    CHECK(contains(said(""), "#   limits.memory: without an amount in the policy the Job has no limit\n"));
    CHECK_FALSE(contains(said("limits: {memory: 8G}\n"), "#   limits.memory: "));
    CHECK(contains(said("network: none\n"), "# A network plugin that enforces NetworkPolicy is needed"));
    CHECK_FALSE(contains(said(""), "NetworkPolicy"));
}

TEST_CASE("links among the points are found without being followed, and those that lie behind one")
{
    const TemporaryDirectory place;
    place.make("real/inner");
    place.write("real/file", "x");
    place.link("link", "real");
    place.link("dangling", "/nonexistent");
    const UniqueFd top = UniqueFd::adopt(::open(place.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); // NOLINT(*-vararg)
    std::map<std::string, PointKind> points = {{"real", PointKind::prefix}, {"real/file", PointKind::read_only}};
    CHECK(links_among(points, top).empty());
    for (const char *path : {"link", "link/file", "dangling", "real/inner"})
        points.emplace(path, PointKind::read_only);
    CHECK(links_among(points, top) == std::vector<std::string>{"dangling", "link", "link/file"});
    points.emplace("gone", PointKind::read_only);
    CHECK(errno_of([&] { return links_among(points, top); }) == ENOENT);
}

TEST_CASE("slurm starts pi where the project lies on the host, whatever it is called inside")
{
    const auto plan = plan_with("projects: {paths: alias}\n");
    CHECK(plan.directory != "/home/alice/projects/demo");
    CHECK(contains(render_slurm(plan, {}), " --chdir=/home/alice/projects/demo pi\n"));
}

TEST_CASE("under systemd the way to the shown project is closed before the project is shown")
{
    const std::string text = render_systemd(plan_with(""), {});
    const auto closed = text.find("ExecStart=/usr/bin/install -d -m 0700 /run/pi-agent-rendered /run/pi-agent-rendered/pi-agent-alice-");
    REQUIRE(closed != std::string::npos);
    CHECK(closed < text.find("ExecStart=/usr/bin/mount "));
}

TEST_CASE("names of renderings are DNS labels, and each user and project has its own")
{
    auto facts = facts_of(person_of(""));
    const auto policy = parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n");
    facts.tree = "/home/alice/projects/" + std::string(200, 'X') + "_y";
    const std::string one = planned(policy, facts).name;
    facts.tree += "z";
    const std::string other = planned(policy, facts).name;
    CHECK(one.size() <= 63);
    CHECK(one != other);
    CHECK(one.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos);
}

} // namespace render_test
