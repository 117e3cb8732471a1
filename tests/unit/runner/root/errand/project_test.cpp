// Opening the working directory and the roots again as the caller: runner/root/errand/errand.hpp
#include "runner/root/errand/errand.hpp"

#include "common/base/channel.hpp"
#include "runner/as_user/project.hpp"
#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"
#include "support/skipped.hpp"

#include <sched.h>
#include <sys/mount.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace project_test {

namespace {

namespace fs = std::filesystem;

// A caller with a home, a root in it, and a directory beside the root.
struct Caller {
    Caller() : account(user_account())
    {
        set_mode(place.path(), 0711);
        account.home = own("home");
        root = own("home/projects");
        own("home/projects/demo");
        own("home/projects-evil");
    }
    std::string own(const std::string &name, mode_t mode = 0700) const
    {
        const std::string path = place.make(name);
        give(path, account);
        set_mode(path, mode);
        return path;
    }
    [[nodiscard]] AccessRules rules(const std::vector<std::string> &roots) const
    {
        AccessRules rules{"users.nobody", Position{"p.yaml", 5, 3}, {}, account.home + "/.pi/agent", "pi-agent", {}};
        for (const auto &path : roots)
            rules.roots.push_back(GrantedRoot{RootSpec{path, Position{"p.yaml", 6, 12}}, std::nullopt});
        return rules;
    }
    [[nodiscard]] std::variant<OpenedProject, Refused> open(FdRef cwd) const { return open(cwd, {root}); }
    [[nodiscard]] std::variant<OpenedProject, Refused> open(FdRef cwd, const std::vector<std::string> &roots) const
    {
        return open_granted(cwd, rules(roots));
    }
    [[nodiscard]] std::variant<OpenedProject, Refused> open_granted(FdRef cwd, const AccessRules &granted) const
    {
        const AsRoot self = AsRoot::claim();
        Child child(self, "opener", account, {cwd.get()},
                    [&](const AsUser & /*user*/, FdRef channel) { open_as_caller(account, granted, cwd, channel); });
        Policy policy;
        policy.projects = projects;
        return open_project(child, account, granted, HostView{}, std::move(policy), {});
    }

    TemporaryDirectory place{place_for_projects()};
    Account account;
    std::string root;
    ProjectsPolicy projects;
};

UniqueFd path_fd(const std::string &path)
{
    return open_path(path, O_PATH | O_DIRECTORY);
}

// "root|below" or the refusal.
std::string text_of(const std::variant<OpenedProject, Refused> &opened)
{
    if (const auto *refused = std::get_if<Refused>(&opened)) return refused->text;
    return std::get<OpenedProject>(opened).shown.path() + "|" + std::get<OpenedProject>(opened).below;
}

} // namespace

TEST_CASE("a directory in a root is opened with its root and the way down" * doctest::skip(not_root()))
{
    const Caller caller;
    const std::string odd = "demo/x\nExecStopPost=+y \xff%n$HOME:\\";
    caller.own("home/projects/" + odd);
    for (const std::string &below : {std::string(), std::string("demo"), odd}) {
        CAPTURE(below);
        const std::string path = below.empty() ? caller.root : caller.root + "/" + below;
        const auto opened = caller.open(path_fd(path));
        REQUIRE(std::holds_alternative<OpenedProject>(opened));
        const auto &project = std::get<OpenedProject>(opened);
        CHECK(project.shown.root_path == caller.root);
        CHECK(project.shown.inside.empty());
        CHECK(project.below == below);
        CHECK(project.cwd_inode == inode_of(path_fd(path)));
        CHECK(inode_of(project.shown.directory) == inode_of(path_fd(caller.root)));
        CHECK_FALSE(project.shown.by_group);
    }
}

TEST_CASE("the group that granted the root is told" * doctest::skip(not_root()))
{
    const Caller caller;
    AccessRules rules = caller.rules({caller.root});
    rules.roots[0].by_group = Gid(1234);
    const auto opened = caller.open_granted(path_fd(caller.root), rules);
    REQUIRE(std::holds_alternative<OpenedProject>(opened));
    CHECK(std::get<OpenedProject>(opened).shown.by_group == Gid(1234));
}

TEST_CASE("a directory outside is refused by the path that the kernel tells, not by a name that looks alike" * doctest::skip(not_root()))
{
    const Caller caller;
    give(caller.place.link("home/projects-link", caller.root), caller.account);
    CHECK(has(text_of(caller.open(path_fd(caller.root + "-evil"))), "projects-evil is outside the project roots"));
    CHECK(has(text_of(caller.open(path_fd(caller.account.home))), "is outside the project roots"));
    CHECK(has(text_of(caller.open(path_fd("/"))), "denied: / is outside the project roots"));
    // A link into the root is another way to the same directory, and that one is allowed.
    CHECK(text_of(caller.open(path_fd(caller.place / "home/projects-link/demo"))) == caller.root + "|demo");
}

TEST_CASE("a directory that was renamed is judged by where it is now" * doctest::skip(not_root()))
{
    const Caller caller;
    const UniqueFd cwd = path_fd(caller.root + "/demo");
    fs::rename(caller.root + "/demo", caller.root + "-evil/demo");
    CHECK(has(text_of(caller.open(cwd)), "projects-evil/demo is outside"));
}

TEST_CASE("a directory that is gone, or whose place another took, is refused" * doctest::skip(not_root()))
{
    const Caller caller;
    const UniqueFd cwd = path_fd(caller.root + "/demo");
    fs::remove(caller.root + "/demo");
    const Caught gone = failure_of([&] { return caller.open(cwd); });
    CHECK(gone.status == 77);
    CHECK(has(gone.text, "was it deleted or renamed?"));
    // The kernel appends " (deleted)": a directory of that very name is still not the same one.
    caller.own("home/projects/demo (deleted)");
    const Caught another = failure_of([&] { return caller.open(cwd); });
    CHECK(another.status == 77);
    CHECK(has(another.text, "is not the one that"));
}

TEST_CASE("a descriptor that is no directory is refused" * doctest::skip(not_root()))
{
    const Caller caller;
    caller.place.write("home/projects/file", "x");
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    const UniqueFd reading = UniqueFd::adopt(ends[0]);
    const UniqueFd writing = UniqueFd::adopt(ends[1]);
    const UniqueFd file = open_path(caller.root + "/file", O_PATH);
    for (const FdRef fd : {FdRef(file), FdRef(reading)})
        CHECK(failure_of([&] { return caller.open(fd); }).status == 77);
}

TEST_CASE("a directory that the caller may not enter is refused, however it got the descriptor" * doctest::skip(not_root()))
{
    const Caller caller;
    const std::string closed = caller.place.make("home/projects/closed"); // root's
    set_mode(closed, 0700);
    caller.place.make("home/projects/closed/inner");
    const Caught itself = failure_of([&] { return caller.open(path_fd(closed)); });
    CHECK(itself.status == 77);
    CHECK(has(itself.text, "denied: you may not enter"));
    const Caught inner = failure_of([&] { return caller.open(path_fd(closed + "/inner")); });
    CHECK(inner.status == 77);
    CHECK(has(inner.text, "cannot be opened by its path"));
}

TEST_CASE("a directory of another mount namespace is refused, although its name is an allowed one" * doctest::skip(not_root()))
{
    const Caller caller;
    const std::string demo = caller.root + "/demo";
    auto ends = make_channel();
    const std::string answer = in_child([&]() -> std::string {
        if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("elsewhere", demo.c_str(), "tmpfs", 0, nullptr) != 0)
            return "not possible here";
        send_packet(ends.first, "cwd", {path_fd(demo).get()}, in_seconds(5));
        return "sent";
    });
    if (answer == "not possible here") {
        skipped("this place makes no mount namespaces");
        return;
    }
    REQUIRE(answer == "sent");
    const auto packet = receive_packet(ends.second, in_seconds(5));
    REQUIRE(packet->fds.size() == 1);
    const Caught caught = failure_of([&] { return caller.open(packet->fds[0]); });
    CHECK(caught.status == 77);
    CHECK_MESSAGE((has(caught.text, "is not the one that") || has(caught.text, "cannot be opened by its path")), caught.text);
}

TEST_CASE("a file system mounted inside the root is refused with the way out" * doctest::skip(not_root()))
{
    const Caller caller;
    const std::string answer = in_child([&]() -> std::string {
        const std::string demo = caller.root + "/demo";
        if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("inner", demo.c_str(), "tmpfs", 0, "mode=0777") != 0)
            return "not possible here";
        return text_of(caller.open(path_fd(demo))) + "\n" + text_of(caller.open(path_fd(caller.root)));
    });
    if (answer == "not possible here") {
        skipped("this place makes no mount namespaces");
        return;
    }
    CHECK(has(answer, "demo lies on another file system, mounted inside the root"));
    CHECK(has(answer, "\n" + caller.root + "|"));
}

TEST_CASE("a root that the caller cannot reach is the policy's error, with its place" * doctest::skip(not_root()))
{
    const Caller caller;
    const std::string closed = caller.place.make("closed/root");
    set_mode(caller.place / "closed", 0700);
    caller.place.write("file", "");
    for (const std::string &root : {caller.place / "file", closed}) {
        CAPTURE(root);
        const Caught caught = failure_of([&] { return caller.open(path_fd(caller.root), {caller.root, root}); });
        CHECK(caught.status == 78);
        CHECK_MESSAGE(has(caught.text, "p.yaml:6:12: users.nobody.roots: "), caught.text);
    }
}

TEST_CASE("a root that does not exist keeps the caller out of it alone, unless it has rules of its own" * doctest::skip(not_root()))
{
    const Caller caller;
    const std::string none = caller.place / "none";
    for (const std::size_t at : {std::size_t{0}, std::size_t{1}}) {
        CAPTURE(at);
        AccessRules rules = caller.rules(at == 0 ? std::vector{none, caller.root} : std::vector{caller.root, none});
        rules.roots[1 - at].by_group = Gid(1234); // which of them holds the directory
        const auto opened = caller.open_granted(path_fd(caller.root + "/demo"), rules);
        REQUIRE(std::holds_alternative<OpenedProject>(opened));
        const auto &project = std::get<OpenedProject>(opened);
        CHECK(project.shown.root_path == caller.root);
        CHECK(project.shown.by_group == Gid(1234));
        CHECK(project.roots.size() == 1);
        CHECK(has(text_of(caller.open_granted(path_fd(caller.account.home), rules)), "; this root does not exist: '" + none + "'"));
        rules.roots[at].spec.rules = std::make_shared<const Rules>();
        const Caught ruled = failure_of([&] { return caller.open_granted(path_fd(caller.root), rules); });
        CHECK(ruled.status == 78);
        CHECK_MESSAGE(has(ruled.text, "it has rules of its own"), ruled.text);
    }
    CHECK(failure_of([&] { return caller.open(path_fd(caller.root), {none}); }).status == 78);
}

TEST_CASE("a root whose name systemd would misread is refused with its place" * doctest::skip(not_root()))
{
    const Caller caller;
    for (const std::string name : {"home/my project", "home/x\nExecStopPost=+y", "home/100%"}) {
        CAPTURE(name);
        const std::string root = caller.own(name);
        const Caught caught = failure_of([&] { return caller.open(path_fd(root), {root}); });
        CHECK(caught.status == 78);
        CHECK(has(caught.text, "p.yaml:6:12: users.nobody.roots: "));
        CHECK_FALSE(has(caught.text, "\nExec"));
    }
}

TEST_CASE("the innermost of nested roots counts" * doctest::skip(not_root()))
{
    const Caller caller;
    const std::string demo = caller.root + "/demo";
    CHECK(text_of(caller.open(path_fd(demo), {caller.root, demo})) == demo + "|");
    CHECK(text_of(caller.open(path_fd(demo), {demo, caller.root})) == demo + "|");
    CHECK(text_of(caller.open(path_fd(caller.root), {demo, caller.root})) == caller.root + "|");
}

TEST_CASE("with the scope of a project, the nearest repository is shown, and without one the directory itself" * doctest::skip(not_root()))
{
    Caller caller;
    caller.projects.scope = ProjectScope::project;
    CHECK(text_of(caller.open(path_fd(caller.root + "/demo"))) == caller.root + "/demo|");
    const std::string odd = caller.own("home/projects/demo/x\nExecStopPost=+y");
    CHECK(text_of(caller.open(path_fd(odd))) == odd + "|");
    caller.own("home/projects/demo/.git");
    CHECK(text_of(caller.open(path_fd(odd))) == caller.root + "/demo|" + odd.substr(odd.rfind('/') + 1));
    caller.own("home/.git"); // above the root: not the root's business
    CHECK(text_of(caller.open(path_fd(caller.root))) == caller.root + "|");
    const auto whole = caller.open(path_fd(odd), {caller.root});
    CHECK(std::get<OpenedProject>(whole).repository == "");
    caller.projects.scope = ProjectScope::root;
    const auto all = caller.open(path_fd(odd), {caller.root});
    CHECK(text_of(all) == caller.root + "|demo/" + odd.substr(odd.rfind('/') + 1));
    CHECK(std::get<OpenedProject>(all).repository == "demo");
}

TEST_CASE("with aliases, a root may have any name that the policy can spell" * doctest::skip(not_root()))
{
    Caller caller;
    caller.projects.paths = ProjectPaths::alias;
    const std::string root = caller.own("home/my project: 100%");
    AccessRules rules = caller.rules({root});
    rules.roots[0].spec.at_own_path = false;
    CHECK(text_of(caller.open_granted(path_fd(root), rules)) == root + "|");
}

namespace {

// A main repository and a worktree of it in two roots.
struct Worktree {
    Worktree()
    {
        caller.own("home/main");
        for (const char *name :
             {"home/main/.git", "home/main/.git/objects", "home/main/.git/refs", "home/main/.git/worktrees", "home/main/.git/worktrees/w"})
            caller.own(name);
        caller.place.write("home/main/.git/HEAD", "ref: refs/heads/main\n");
        caller.place.write("home/main/.git/worktrees/w/commondir", "../..\n");
        caller.place.write("home/main/.git/worktrees/w/gitdir", caller.root + "/demo/.git\n");
        caller.place.write("home/projects/demo/.git", "gitdir: " + main + "/.git/worktrees/w\n");
    }
    [[nodiscard]] OpenedProject opened(const std::vector<std::string> &roots) const
    {
        auto answer = caller.open(path_fd(caller.root + "/demo"), roots);
        REQUIRE(std::holds_alternative<OpenedProject>(answer));
        return std::get<OpenedProject>(std::move(answer));
    }
    [[nodiscard]] OpenedProject opened() const { return opened({caller.root, main}); }
    Caller caller;
    std::string main = caller.account.home + "/main";
};

} // namespace

TEST_CASE("the main repository of a worktree is shown where it lies in another root" * doctest::skip(not_root()))
{
    const Worktree worktree;
    const OpenedProject project = worktree.opened();
    CHECK(project.notices.empty());
    REQUIRE(project.git_directories.size() == 1);
    CHECK(project.git_directories[0].path() == worktree.main + "/.git");
    CHECK(project.git_directories[0].root_path == worktree.main);
    const OpenedProject alone = worktree.opened({worktree.caller.root});
    CHECK(alone.git_directories.empty());
    REQUIRE(alone.notices.size() == 1);
    CHECK(has(alone.notices[0], worktree.main + "/.git/worktrees/w, is not shown to the agent: it is in none of your project roots"));
}

TEST_CASE("a root that a group grants which opens the host is refused, the project's and that of its git directory" *
          doctest::skip(not_root()))
{
    const Worktree worktree;
    const Caller &caller = worktree.caller;
    for (const std::size_t at : {std::size_t{0}, std::size_t{1}}) {
        AccessRules rules = caller.rules({caller.root, worktree.main});
        rules.roots[at].by_group = Gid(0);
        const Caught caught = failure_of([&] { return caller.open_granted(path_fd(caller.root + "/demo"), rules); });
        CHECK(caught.status == 78);
        CHECK_MESSAGE(has(caught.text, "is granted by a group whose members control the host"), caught.text);
    }
}

TEST_CASE("a git directory that does not name the worktree in turn is not shown" * doctest::skip(not_root()))
{
    const Worktree worktree;
    worktree.caller.place.write("home/main/.git/worktrees/w/gitdir", worktree.caller.root + "/other/.git\n");
    const OpenedProject project = worktree.opened();
    CHECK(project.git_directories.empty());
    REQUIRE(project.notices.size() == 1);
    CHECK(has(project.notices[0], "does not name this directory in turn"));
}

// Forged by earlier sessions: a worktree that lies in a directory of that name, in another repository, and a file that names it.
TEST_CASE("a directory that is none of git's is not shown as what worktrees share" * doctest::skip(not_root()))
{
    const Worktree worktree;
    std::filesystem::remove(worktree.main + "/.git/HEAD");
    const OpenedProject project = worktree.opened();
    REQUIRE(project.notices.size() == 1);
    CHECK(has(project.notices[0], "it is not a git directory"));
    CHECK(project.git_directories.empty());
    std::filesystem::remove(worktree.main + "/.git/worktrees/w/commondir");
    CHECK(worktree.opened().git_directories.empty());
}

TEST_CASE("a common directory elsewhere, one behind a link and one that is missing are not shown" * doctest::skip(not_root()))
{
    const Worktree worktree;
    const auto &place = worktree.caller.place;
    for (const auto &[file, text, problem] :
         {std::tuple{"home/main/.git/worktrees/w/commondir", std::string("../../.."), "does not hold the worktree's own"},
          std::tuple{"home/projects/demo/.git", "gitdir: " + worktree.main + "/.git/worktrees/none", "cannot be opened"},
          std::tuple{"home/projects/demo/.git", "gitdir: " + worktree.caller.account.home + "/link/worktrees/w",
                     "a symlink leads to it"}}) {
        const std::string reason = problem; // clang 14 captures no structured binding
        CAPTURE(reason);
        place.link("home/link", worktree.main + "/.git");
        place.write(file, text);
        const OpenedProject project = worktree.opened();
        REQUIRE(project.notices.size() == 1);
        CHECK(has(project.notices[0], reason));
        for (const auto &tree : project.git_directories)
            CHECK(tree.path() == worktree.main + "/.git/worktrees/w"); // itself, at most
        std::filesystem::remove(worktree.caller.account.home + "/link");
    }
}

} // namespace project_test
