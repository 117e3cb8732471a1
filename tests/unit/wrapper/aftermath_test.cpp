// Two looks at a tree and what is said of the difference: wrapper/aftermath.hpp
#include "wrapper/aftermath.hpp"

#include "common/base/text.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <functional>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace aftermath_test {

namespace {

constexpr std::size_t many = 100'000;

// A tree with a repository `app`, and what a session changes in it.
class Project {
public:
    Project()
    {
        for (const char *path : {"root/app/.git/hooks", "root/app/.git/info", "root/app/.git/objects", "root/app/.git/refs", "root/other"})
            directory_.make(path);
        write(".git/HEAD", "ref: refs/heads/main\n");
        write(".git/config", "[core]\n\tbare = false\n");
        write(".git/hooks/pre-commit.sample", "#!/bin/sh\n");
        plan_ = plan_look(directory_ / "root", directory_ / "root/app", "/home/nobody", "/usr/bin:" + directory_ / "root/tools",
                          ProjectScope::root);
    }

    [[nodiscard]] std::string path(const std::string &below) const { return directory_ / ("root/app/" + below); }
    void write(const std::string &name, const std::string &text) const
    {
        std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
        directory_.write("root/app/" + name, text);
    }
    void program(const std::string &name, const std::string &text) const
    {
        write(name, text);
        REQUIRE(chmod(path(name).c_str(), 0755) == 0);
    }
    void link(const std::string &name, const std::string &target) const { std::filesystem::create_symlink(target, path(name)); }

    void begin(std::size_t entries = many)
    {
        clock_gettime(CLOCK_REALTIME, &plan_.start);
        before_ = look(true, entries);
    }
    Snapshot look(bool is_first, std::size_t entries = many)
    {
        Budget budget(entries, in_seconds(60), [] { return false; });
        return look_at_doors(plan_, budget, is_first);
    }
    // "path: what +" for what appeared, "path: what *" for what changed, from the repository.
    std::vector<std::string> findings()
    {
        std::vector<std::string> list;
        for (const auto &finding : compare(before_, look(false), plan_.start))
            list.push_back(std::filesystem::path(finding.path).lexically_relative(path(".").substr(0, path(".").size() - 2)).string() +
                           ": " + finding.what + (finding.appeared ? " +" : " *"));
        return list;
    }
    LookPlan &plan() { return plan_; }

private:
    TemporaryDirectory directory_;
    LookPlan plan_;
    Snapshot before_;
};

using Found = std::vector<std::string>;

std::string shown(const Found &list)
{
    std::string text;
    for (const auto &line : list)
        text += line + "\n";
    return text;
}

void wait_for_the_clock() // of the file system, which ticks more slowly
{
    timespec pause{0, 20'000'000};
    nanosleep(&pause, nullptr);
}

} // namespace

TEST_CASE("a tree that nobody changed leaves nothing to say")
{
    Project project;
    project.program(".git/hooks/post-merge", "x");
    project.write(".envrc", "x");
    project.write(".git/config", "[core]\n\tpager = x\n");
    wait_for_the_clock();
    project.begin();
    CHECK(project.findings().empty());
    project.write(".envrc", "x"); // written again
    project.write(".git/config", "[core]\n\tpager = x\n[remote \"o\"]\n\turl = https://x/\n");
    CHECK(project.findings().empty());
}

TEST_CASE("hooks, settings and files that appear or change are found")
{
    Project project;
    project.program(".git/hooks/post-merge", "x");
    project.write(".envrc", "x");
    project.write(".git/config", "[core]\n\tpager = x\n");
    wait_for_the_clock();
    project.begin();
    project.program(".git/hooks/post-merge", "y");
    project.program(".git/hooks/pre-commit", "x");
    project.write(".envrc", "y");
    project.write(".git/config", "[core]\n\tpager = y\n\tfsmonitor = ./x\n");
    CHECK(shown(project.findings()) ==
          shown({".git/config: git setting core.fsmonitor +", ".git/config: git setting core.pager *", ".git/hooks/post-merge: git hook *",
                 ".git/hooks/pre-commit: git hook +", ".envrc: commands for a shell that enters *"}));
}

TEST_CASE("a hook that becomes executable has changed")
{
    Project project;
    project.write(".git/hooks/pre-commit", "x");
    wait_for_the_clock();
    project.begin();
    REQUIRE(chmod(project.path(".git/hooks/pre-commit").c_str(), 0755) == 0);
    CHECK(shown(project.findings()) == shown({".git/hooks/pre-commit: git hook *"}));
}

TEST_CASE("hooks below core.hooksPath, what a hook runs, and included settings count too")
{
    Project project;
    project.write(".git/config", "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../shared.ini\n");
    project.write("shared.ini", "");
    project.program("tools/hooks/pre-commit", "exec pre-commit run\n");
    project.write(".pre-commit-config.yaml", "x");
    wait_for_the_clock();
    project.begin();
    project.program("tools/hooks/pre-push", "x");
    project.write(".pre-commit-config.yaml", "y");
    project.write("shared.ini", "[alias]\n\tst = !x\n");
    CHECK(shown(project.findings()) == shown({".pre-commit-config.yaml: file that a git hook runs *", "shared.ini: git setting alias.st +",
                                              "tools/hooks/pre-push: git hook +"}));
}

TEST_CASE("submodules, worktrees and files that lead elsewhere are looked at")
{
    Project project;
    wait_for_the_clock();
    project.begin();
    // As git makes them: nothing to say.
    project.write(".git/modules/a/b/HEAD", "x");
    project.write(".git/modules/a/b/config", "[core]\n\tworktree = ../../../../sub\n");
    project.write("sub/.git", "gitdir: ../.git/modules/a/b\n");
    project.write(".git/worktrees/w/commondir", "../..\n");
    project.write("w/.git", "gitdir: " + project.path(".git/worktrees/w") + "\n");
    // As root's side makes them while a session runs.
    project.write(".git/commondir", std::string(placeholder_commondir));
    project.write(".git/info/attributes", std::string(placeholder_comment));
    CHECK(project.findings().empty());
    project.program(".git/modules/a/b/hooks/post-checkout", "x");
    project.write(".git/worktrees/w/config.worktree", "[core]\n\tfsmonitor = x\n");
    project.write(".git/worktrees/w/commondir", "../../../evil\n");
    project.write(".git/commondir", "../evil\n");
    project.write(".git/info/attributes", "* filter=x\n");
    project.write("other/.git", "gitdir: /somewhere/else\n");
    project.write(".git/modules/a/b/config", "[core]\n\tworktree = /home\n");
    CHECK(project.findings() ==
          Found{".git/commondir: commondir that points elsewhere +", ".git/info/attributes: git attributes +",
                ".git/modules/a/b/config: git setting core.worktree +", ".git/modules/a/b/hooks/post-checkout: git hook +",
                ".git/worktrees/w/commondir: commondir that points elsewhere +",
                ".git/worktrees/w/config.worktree: git setting core.fsmonitor +", "other/.git: .git file that points elsewhere +"});
}

TEST_CASE("an embedded bare repository is found, however it is made")
{
    Project project;
    wait_for_the_clock();
    project.begin();
    for (const char *name : {"deep/er/HEAD", "deep/er/objects/x", "deep/er/refs/x", "by/HEAD", "by/commondir"})
        project.write(name, "x");
    project.write("deep/er/config", "[core]\n\tfsmonitor = x\n");
    CHECK(shown(project.findings()) == shown({"by: embedded bare repository +", "by/commondir: commondir that points elsewhere +",
                                              "deep/er: embedded bare repository +", "deep/er/config: git setting core.fsmonitor +"}));
}

TEST_CASE("programs count in a directory of PATH, and in a project's own where it was there before")
{
    Project project;
    project.program("node_modules/.bin/old", "x");
    wait_for_the_clock();
    project.begin();
    project.program("../tools/ls", "x");
    project.write("../tools/README", "x");
    project.program("node_modules/.bin/git", "x");
    project.link("node_modules/.bin/eslint", "../eslint/bin/eslint.js");
    project.link("node_modules/.bin/sh", "../../evil");
    project.program("venv/bin/python", "x"); // came as a whole
    CHECK(shown(project.findings()) ==
          shown({"node_modules/.bin/git: program +", "node_modules/.bin/sh: program +", "../tools/ls: program +"}));
}

TEST_CASE("only the scripts of a package count, and of a new one only what an install runs")
{
    CHECK(read_package_scripts("{\"scripts\": {\"test\": \"x\"}}").text == "scripts={\"test\":\"x\"}\n");
    CHECK_FALSE(read_package_scripts("{\"scripts\": {\"test\": \"x\"}}").run_at_install);
    CHECK(read_package_scripts("{\"scripts\": {\"prepare\": \"x\"}}").run_at_install);
    for (const char *odd : {"", "[]", "{", "{\"scripts\": 1}", "{\"scripts\": {\"a\": \"\\ud800\"}}", "\xff"})
        CHECK_FALSE(read_package_scripts(odd).run_at_install);

    Project project;
    project.write("package.json", "{\"name\": \"x\", \"scripts\": {\"test\": \"x\"}}");
    wait_for_the_clock();
    project.begin();
    project.write("package.json", "{\"name\": \"y\", \"scripts\": {\"test\": \"x\"}, \"dependencies\": {}}");
    project.write("new/package.json", "{\"scripts\": {\"test\": \"x\"}}");
    project.write("node_modules/x/package.json", "{\"scripts\": {\"install\": \"x\"}}");
    CHECK(project.findings().empty());
    project.write("package.json", "{\"scripts\": {\"test\": \"y\"}}");
    project.write("new/package.json", "{\"scripts\": {\"install\": \"x\"}}");
    CHECK(shown(project.findings()) == shown({"new/package.json: package scripts +", "package.json: package scripts *"}));
}

TEST_CASE("a file with a harmless part is no door, and one that could spell anything is")
{
    Project project;
    wait_for_the_clock();
    project.begin();
    project.write(".npmrc", "save-exact=true\n");
    project.write(".tool-versions", "nodejs 20.1.0\n");
    project.write("mise.toml", "[tools]\nnode = \"20\"\n");
    project.write(".cargo/config.toml", "[build]\njobs = 2\n");
    CHECK(project.findings().empty());
    project.write(".npmrc", "script-shell=./x\n");
    project.write(".tool-versions", "nodejs path:./x\n");
    project.write("mise.toml", "[hooks]\nenter = \"x\"\n");
    project.write(".cargo/config.toml", "[build]\n\"rust\\u0063\" = \"x\"\n");
    CHECK(project.findings().size() == 4);
}

TEST_CASE("directories that were renamed into place are found")
{
    Project project;
    project.program("harmless/pre-commit", "x");
    wait_for_the_clock();
    project.begin();
    std::filesystem::remove_all(project.path(".git/hooks"));
    std::filesystem::rename(project.path("harmless"), project.path(".git/hooks"));
    CHECK(shown(project.findings()) == shown({".git/hooks/pre-commit: git hook +"}));
}

TEST_CASE("the git directory of a worktree of another tree is looked at")
{
    const TemporaryDirectory directory;
    directory.make("root/work");
    directory.make("main/.git/hooks");
    directory.make("main/.git/worktrees/work");
    directory.write("main/.git/worktrees/work/commondir", "../..\n");
    directory.write("root/work/.git", "gitdir: " + directory / "main/.git/worktrees/work" + "\n");
    LookPlan plan = plan_look(directory / "root", directory / "root/work", "/home/nobody", "", ProjectScope::project);
    CHECK(plan.root == directory / "root/work");
    clock_gettime(CLOCK_REALTIME, &plan.start);
    const auto look = [&](bool is_first) {
        Budget budget(many, in_seconds(60), [] { return false; });
        return look_at_doors(plan, budget, is_first);
    };
    const Snapshot before = look(true);
    directory.write("main/.git/hooks/pre-commit", "x");
    directory.write("main/.git/worktrees/work/config.worktree", "[core]\n\tpager = x\n");
    const auto findings = compare(before, look(false), plan.start);
    REQUIRE(findings.size() == 2);
    CHECK(findings[0].path == directory / "main/.git/hooks/pre-commit");
    CHECK(findings[1].path == directory / "main/.git/worktrees/work/config.worktree");
}

TEST_CASE("a first look that was cut short believes the clock, and one that was overtaken too")
{
    Project project;
    project.write("a/.envrc", "old");
    wait_for_the_clock();
    project.begin(20); // not as far as there
    wait_for_the_clock();
    project.write("b/.envrc", "new");
    CHECK(shown(project.findings()) == shown({"b/.envrc: commands for a shell that enters +"}));

    Project overtaken;
    timespec start{};
    clock_gettime(CLOCK_REALTIME, &start);
    wait_for_the_clock();
    overtaken.write(".envrc", "by the agent");
    overtaken.begin();
    overtaken.plan().start = start;
    CHECK(shown(overtaken.findings()) == shown({".envrc: commands for a shell that enters +"}));
}

TEST_CASE("a look that is cut short says what it left out, and has looked at the nearest repository")
{
    Project project;
    for (int index = 0; index < 300; ++index)
        project.write("../many/" + std::to_string(index), "");
    wait_for_the_clock();
    project.begin();
    project.program(".git/hooks/pre-commit", "x");
    const Snapshot after = project.look(false, 100);
    CHECK_FALSE(after.is_complete);
    CHECK(after.has_first_places);
    CHECK_FALSE(after.not_looked_at.empty());
    CHECK(after.marks.count({project.path(".git/hooks/pre-commit"), "git hook"}) == 1);
    const std::string notice = aftermath_notice({}, after, "/", "id");
    CHECK(notice.find("pi: the search for files that run code outside the sandbox was not complete") == 0);
    CHECK(notice.find("(at most 2 seconds and 300000 entries); not searched: ") != std::string::npos);
    CHECK(notice.find(after.not_looked_at[0].substr(1)) != std::string::npos);
}

TEST_CASE("a tree that cannot be opened is named, and no bound is blamed for it")
{
    Budget budget(100, in_seconds(1), [] { return false; });
    LookPlan plan{};
    plan.root = "/no/such/tree";
    CHECK(
        aftermath_notice({}, look_at_doors(plan, budget, false), "/", "id") ==
        "pi: the search for files that run code outside the sandbox was not complete (it cannot be opened); not searched: /no/such/tree\n");
}

TEST_CASE("pipes, links out of the tree and unreadable directories neither hang nor hide")
{
    Project project;
    wait_for_the_clock();
    project.begin();
    REQUIRE(mkfifo(project.path(".envrc").c_str(), 0600) == 0);
    REQUIRE(mkfifo(project.path(".git/config.worktree").c_str(), 0600) == 0);
    project.link(".exrc", "/etc/passwd");
    std::filesystem::remove_all(project.path(".git/hooks"));
    project.link(".git/hooks", "/etc");
    project.link("other", "/etc");
    CHECK(shown(project.findings()) ==
          shown({".git/config.worktree: git configuration that cannot be read +", ".git/hooks: link to a directory of git hooks +",
                 ".envrc: commands for a shell that enters +", ".exrc: editor's settings +"}));
}

TEST_CASE("the notice is short, and names are harmless")
{
    std::vector<Finding> findings;
    for (int index = 0; index < 14; ++index)
        findings.push_back({"/root/app/\x1b[31m" + std::to_string(index), "git hook", index % 2 == 0});
    Snapshot after;
    after.is_complete = true;
    CHECK(aftermath_notice({}, after, "/root", "id").empty());
    const std::string notice = aftermath_notice(findings, after, "/root", "id");
    CHECK(std::count(notice.begin(), notice.end(), '\n') == 13);
    CHECK(notice.find('\x1b') == std::string::npos);
    CHECK(notice.find("pi:   app/\\x1b[31m0: git hook appeared\npi:   app/\\x1b[31m1: git hook changed\n") != std::string::npos);
    CHECK(notice.find("and 4 more") != std::string::npos);
    findings.assign(10, {"/root/" + std::string(4000, 'x'), std::string(4000, 'y'), true});
    CHECK(aftermath_notice(findings, after, "/", "id").size() < 5000);
    CHECK(aftermath_notice(findings, after, "/", "").find("pi: the journal did not record them\n") != std::string::npos);
    CHECK(aftermath_json({{"/a\n\xff", "git hook", true}}) == R"([{"change":"appeared","kind":"git hook","path":"/a\\x0a\\xff"}])");
}

} // namespace aftermath_test
