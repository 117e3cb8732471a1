// Whose name the agent's commits carry, as git on the host has it for a directory: runner/as_user/git_identity.hpp
#include "runner/as_user/git_identity.hpp"

#include "runner/root/errand/errand.hpp"
#include "support/as_user.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/private_run.hpp"
#include "support/skipped.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace git_identity_test {

namespace {

bool has_git()
{
    if (::access("/usr/bin/git", X_OK) == 0) return true;
    skipped("no git here");
    return false;
}

bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

// A user with a home and a directory beside it.
struct Host {
    Host() : home(make_private(place, "home", user_account())), project(make_private(place, "project", user_account())) {}

    void write(const std::string &name, const std::string &text) const
    {
        const std::string path = place / name;
        std::filesystem::create_directories(std::filesystem::path(path).parent_path());
        give(place.write(name, text), user_account());
        for (const char *directory : {"home/.config", "home/.config/git", "project/.git", "project/.git/objects", "project/.git/refs"})
            if (std::filesystem::exists(place / directory)) give(place / directory, user_account());
    }
    void make_repository(const std::string &config = "[core]\n\trepositoryformatversion = 0\n") const
    {
        place.make("project/.git/objects");
        place.make("project/.git/refs");
        write("project/.git/HEAD", "ref: refs/heads/main\n");
        write("project/.git/config", config);
    }
    // "name|email|problem", '-' for what is not set.
    [[nodiscard]] std::string found(int milliseconds = 4000) const
    {
        return as_user([&](const AsUser &user) {
            if (::chdir(project.c_str()) != 0) return std::string("no directory");
            const FoundIdentity all =
                find_git_identity(user, UserPaths({}), home, project, Clock::now() + std::chrono::milliseconds(milliseconds));
            return all.identity.name.value_or("-") + "|" + all.identity.email.value_or("-") + "|" + all.problem;
        });
    }

    // What passes, and what is said.
    [[nodiscard]] std::string passing(const RepositorySettings &repository = {}) const
    {
        return as_user([&](const AsUser &user) {
            if (::chdir(project.c_str()) != 0) return std::string("no directory");
            const FoundIdentity all = find_git_identity(user, UserPaths({}), home, project, in_seconds(4), repository);
            std::string text;
            for (const auto &[name, value] : all.identity.settings)
                text += name + (value ? "=" + *value : "") + " ";
            for (const auto &[name, content] : all.identity.files)
                text += name + ":" + content + " ";
            for (const auto &notice : all.notices)
                text += notice + " ";
            if (all.signing != GitSigning::none) text += all.signing == GitSigning::of_user ? "users " : "repositorys ";
            for (const auto &notice : all.once)
                text += "once: " + notice + " ";
            return all.problem + text.substr(0, text.find_last_not_of(' ') + 1);
        });
    }

    TemporaryDirectory place;
    std::string home;
    std::string project;
};

} // namespace

TEST_CASE("what the user has set is found, and nothing is invented" * doctest::skip(not_root()))
{
    if (!has_git()) return;
    const Host host;
    CHECK(host.found() == "-|-|");
    host.write("home/.gitconfig", "[user]\n\temail = a@b\n\tsigningkey = k\n[core]\n\teditor = x\n");
    CHECK(host.found() == "-|a@b|");
    host.write("home/.gitconfig", "[user]\n\tname = \" A \\\"B\\\"\\nC # ; \\\\\"\n\temail =\n");
    CHECK(host.found() == " A \"B\"\nC # ; \\||");
}

TEST_CASE("both of the user's files count, ~/.gitconfig more" * doctest::skip(not_root()))
{
    if (!has_git()) return;
    const Host host;
    host.write("home/.config/git/config", "[user]\n\tname = low\n\temail = low@x\n");
    CHECK(host.found() == "low|low@x|");
    host.write("home/.gitconfig", "[user]\n\tname = high\n");
    CHECK(host.found() == "high|low@x|");
}

TEST_CASE("what starts no program passes, and files are copied" * doctest::skip(not_root()))
{
    if (!has_git()) return;
    const Host host;
    host.write("home/.gitconfig", "[core]\n\tautocrlf = input\n\tpager = x\n\texcludesFile = ~/ignored\n[alias]\n\tst = status\n\tx = !x\n"
                                  "[rerere]\n\tenabled\n[url \"https://t@h/\"]\n\tinsteadOf = https://h/\n[mailmap]\n\tfile = /none\n");
    host.write("home/ignored", "*.o\n");
    host.write("home/.config/git/attributes", "*.x binary\n");
    CHECK(host.passing() == "core.autocrlf=input alias.st=status rerere.enabled core.attributesfile:*.x binary\n core.excludesfile:*.o\n "
                            "once: settings of yours with a password or token in an address are ignored in a session; give the "
                            "agent's git a token of its own (docs/concepts/git-in-a-session.md)");
    host.write("home/ignored", std::string(git_file_copy_limit + 1, 'x'));
    CHECK(contains(host.passing(), "core.excludesfile: " + host.home + "/ignored is left out: "));
    std::filesystem::remove(host.home + "/ignored");
    host.place.link("home/ignored", "/dev/zero");
    CHECK(contains(host.passing(), "ignored is left out: it is not a regular file"));
}

TEST_CASE("more settings than a session takes are left out, and said so" * doctest::skip(not_root()))
{
    if (!has_git()) return;
    const Host host;
    std::string text = "[alias]\n";
    for (std::size_t number = 0; number < git_settings_limit + 7; ++number)
        text += "\ta" + std::to_string(number) + " = log\n";
    host.write("home/.gitconfig", text);
    CHECK(contains(host.passing(), "alias.a499=log 7 of your settings are ignored in the session"));
    host.write("home/.gitconfig", "[alias]\n\tx = " + std::string(git_settings_size, 'x') + "\n");
    CHECK(contains(host.passing(), "1 of your settings are ignored in the session"));
}

TEST_CASE("a filter of the user's and a signature are said where the repository asks for them" * doctest::skip(not_root()))
{
    if (!has_git()) return;
    const Host host;
    host.write("home/.gitconfig", "[filter \"a.b\"]\n\tclean = x\n[commit]\n\tgpgsign = true\n");
    CHECK(host.passing() == "users");
    CHECK(contains(host.passing({std::nullopt, {"a.b", "c"}}),
                   "users once: the filter 'a.b' of this repository's .gitattributes does not run"));
    CHECK(host.passing({true, {"c"}}) == "repositorys");
    CHECK(host.passing({false, {}}).empty());
}

TEST_CASE("of the directories that the user calls safe, those of the session are found, in git's order" * doctest::skip(not_root()))
{
    if (!has_git()) return;
    const Host host;
    host.write("home/.config/git/config", "[safe]\n\tdirectory = /elsewhere\n\tdirectory = " + host.project + "/a\n");
    host.write("home/.gitconfig", "[safe]\n\tdirectory = \n\tdirectory = " + host.project + "\n\tdirectory = ~/b\n");
    const auto safe = as_user([&](const AsUser &user) {
        std::string all;
        for (const auto &directory :
             find_git_identity(user, UserPaths({}), host.home, host.project, in_seconds(4)).identity.safe_directories)
            all += "<" + directory + ">";
        return all;
    });
    CHECK(safe == "<" + host.project + "/a><><" + host.project + ">");
}

TEST_CASE("a safe directory counts where it lies in what the session shows, or holds it")
{
    const auto of = [](const std::string &value) { return safe_directory(value, "/home/a", "/home/a/p"); };
    CHECK(of("") == "");
    CHECK(of("*") == "*");
    CHECK(of("~/p") == "/home/a/p");
    CHECK(of("~/p/") == "/home/a/p/");
    CHECK(of("/home/a/p/b") == "/home/a/p/b");
    CHECK(of("~/*") == "/home/a/*");
    CHECK(of("/home/a/p/*") == "/home/a/p/*");
    for (const char *other : {"/home/a", "~", "~/q", "/home/a/pq", "/home/a/q/*", "p", "%(prefix)/p"})
        CHECK_MESSAGE(of(other) == std::nullopt, other);
}

TEST_CASE("includes count, and those for a directory only there; the repository's own name does not" * doctest::skip(not_root()))
{
    if (!has_git()) return;
    const Host host;
    host.write("home/.gitconfig", "[include]\n\tpath = more\n[includeIf \"gitdir:" + host.project + "/\"]\n\tpath = work\n");
    host.write("home/more", "[user]\n\tname = everywhere\n\temail = e@x\n");
    host.write("home/work", "[user]\n\temail = work@x\n");
    CHECK(host.found() == "everywhere|e@x|");
    host.make_repository("[core]\n\trepositoryformatversion = 0\n[user]\n\tname = repository\n");
    CHECK(host.found() == "everywhere|work@x|");
}

TEST_CASE("nothing that a repository's settings name is run" * doctest::skip(not_root()))
{
    if (!has_git()) return;
    const Host host;
    const std::string ran = host.project + "/ran";
    const std::string run = "touch " + ran;
    host.write("home/.gitconfig", "[user]\n\tname = n\n");
    host.make_repository("[core]\n\tfsmonitor = " + run + "\n\tpager = " + run + "\n\teditor = " + run + "\n\tsshCommand = " + run +
                         "\n\thooksPath = " + host.project + "\n[pager]\n\tconfig = " + run + "\n[alias]\n\tconfig = !" + run +
                         "\n[credential]\n\thelper = !" + run + "\n[filter \"x\"]\n\tprocess = " + run + "\n[trace2]\n\teventTarget = " +
                         ran + "\n\tnormalTarget = " + ran + "\n[include]\n\tpath = " + host.project + "/more\n");
    host.write("project/more", "[user]\n\tname = planted\n[core]\n\tfsmonitor = " + run + "\n");
    CHECK(host.found() == "n|-|");
    CHECK_FALSE(std::filesystem::exists(ran));
}

TEST_CASE("a file that git cannot read is told, with git's words" * doctest::skip(not_root()))
{
    if (!has_git()) return;
    const Host host;
    host.write("home/.gitconfig", "[user\nname = x\n");
    CHECK(contains(host.found(), "-|-|git could not read " + host.home + "/.gitconfig: fatal: bad config line 1"));
    std::filesystem::remove(host.home + "/.gitconfig");
    host.place.link("home/.gitconfig", "/etc/shadow");
    CHECK(contains(host.found(), "Permission denied"));
    CHECK_FALSE(contains(host.found(), "root:"));
    std::filesystem::remove(host.home + "/.gitconfig");
    host.write("home/.gitconfig", "[user]\n\tname = " + std::string(17000, 'x') + "\n");
    CHECK(contains(host.found(), "user.name in " + host.home + "/.gitconfig is longer than 16384 bytes"));
    host.write("home/.gitconfig", "[x]\n\ty = " + std::string(300000, 'x') + "\n");
    CHECK(contains(host.found(), "gitconfig are longer than 262144 bytes"));
}

TEST_CASE("a pipe keeps nobody, be it the file, what it includes or the repository's" * doctest::skip(not_root()))
{
    if (!has_git()) return;
    const Host host;
    const std::string pipe = host.home + "/pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0666) == 0);
    give(pipe, user_account());
    const std::string late = "-|-|git did not read " + host.home + "/.gitconfig within";
    host.place.link("home/.gitconfig", pipe);
    CHECK(contains(host.found(300), late));
    std::filesystem::remove(host.home + "/.gitconfig");
    host.write("home/.gitconfig", "[include]\n\tpath = pipe\n");
    CHECK(contains(host.found(300), late));
    host.write("home/.gitconfig", "[user]\n\tname = n\n");
    host.make_repository();
    std::filesystem::remove(host.project + "/.git/config");
    std::filesystem::create_symlink(pipe, host.project + "/.git/config");
    CHECK(host.found(4000) == "n|-|"); // nobody asks which repository it is
    host.write("home/.gitconfig", "[user]\n\tname = n\n[includeIf \"gitdir:x/\"]\n\tpath = y\n");
    CHECK(host.found(4000) == "n|-|");
}

TEST_CASE("what was found is shown even when something else took longer than git may, and named once" * doctest::skip(not_root()))
{
    if (!has_git()) return;
    const Host host;
    host.write("home/.gitconfig", "[user]\n\tname = n\n");
    const std::string answer = in_private_run([&] {
        const AsRoot root = AsRoot::claim();
        Account user = user_account();
        user.home = host.home;
        const auto session = SessionDirectory::create(root, make_session_id(), user.uid);
        const auto [wrapper, peer] = make_channel();
        const auto [termination, silent] = make_channel();
        OpenedProject project;
        project.shown.directory = open_path(host.project, O_PATH | O_DIRECTORY);
        GitIdentityReader reader(root, user, project, HostView{}, {}, true);
        std::this_thread::sleep_for(std::chrono::milliseconds(3100));
        std::string text;
        for (const auto &notice : reader.show(session, SessionWatch{wrapper, termination}, RepositoryConfig::protected_, false).always)
            text += notice;
        EnvironmentInput environment{{}, {}, {}, {}, {}, "/home", "agent", "/usr/bin/pi", "ID"};
        name_git_config(environment);
        const std::string named = layer_environment(environment)["GIT_CONFIG_SYSTEM"].value;
        environment.managed["GIT_CONFIG_SYSTEM"] = "/other";
        const std::string taken = layer_environment(environment)["GIT_CONFIG_SYSTEM"].value;
        std::ifstream file(session.path() + "/run/pi-agent/gitconfig");
        text += named + "," + taken + "," + std::string(std::istreambuf_iterator<char>(file), {});
        remove_session(root, session.path().substr(session.path().rfind('/') + 1));
        return text;
    });
    if (answer == no_private_run) return skipped(answer);
    CHECK(has(answer, "/run/pi-agent/gitconfig,/other,[core]\n"));
    CHECK(has(answer, "[branch]\n\tautoSetupMerge = false\n[include]\n\tpath = \"/etc/gitconfig\"\n[user]\n\tname = \"n\"\n"));
}

} // namespace git_identity_test
