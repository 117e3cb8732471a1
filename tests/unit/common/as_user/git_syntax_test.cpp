// Git's configuration syntax, compared with git itself, and which settings run code: common/as_user/git_syntax.hpp,
// common/as_user/git_syntax.hpp
#include "common/as_user/git_syntax.hpp"

#include "support/skipped.hpp"
#include "support/temporary_directory.hpp"

#include <array>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace git_settings_test {

namespace {

// "name=value" of each, white space in values made one, as releases of git differ in it.
std::string without_extra_space(const std::string &text)
{
    std::string result;
    for (const char byte : text)
        if (byte != ' ' && byte != '\t' && byte != '\r') result += byte;
    return result;
}

std::vector<std::string> ours(const std::string &text)
{
    std::vector<std::string> list;
    for (const auto &setting : parse_git_settings(text).list)
        list.push_back(without_extra_space(setting.name + (setting.value ? "\n" + *setting.value : "")));
    return list;
}

struct Answer {
    bool is_valid;
    std::vector<std::string> list;
};

// What git makes of a file: the list is empty where it finds a mistake.
Answer gits(const TemporaryDirectory &directory, const std::string &text)
{
    directory.write("config", text);
    const std::string input = directory / "config";
    const std::string output = directory / "listed";
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const int null = open("/dev/null", O_RDWR);
        dup2(out, 1);
        dup2(null, 2);
        execlp("git", "git", "config", "--file", input.c_str(), "--no-includes", "--null", "--list", static_cast<char *>(nullptr));
        _exit(99);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    REQUIRE(WEXITSTATUS(status) != 99);
    Answer answer{status == 0, {}};
    std::ifstream file(output, std::ios::binary);
    for (std::string entry; std::getline(file, entry, '\0');)
        answer.list.push_back(without_extra_space(entry));
    return answer;
}

bool has_git()
{
    return access("/usr/bin/git", X_OK) == 0;
}

void require_as_git(const TemporaryDirectory &directory, const std::string &text)
{
    const Answer expected = gits(directory, text);
    CAPTURE(text);
    REQUIRE(parse_git_settings(text).is_valid == expected.is_valid);
    if (expected.is_valid) REQUIRE(ours(text) == expected.list);
}

bool runs(const std::string &text)
{
    const GitSettings settings = parse_git_settings(text);
    REQUIRE(settings.is_valid);
    REQUIRE(settings.list.size() == 1);
    return runs_code(settings.list[0]);
}

const std::vector<std::string> samples = {
    "",
    "[core]\n\tpager = less\n",
    "[core] pager=less",
    "[CORE]PAGER = x\r\n[filter \"A.b \\\"c\\\\\"]\r\n clean=cat\r\n",
    "\xef\xbb\xbf[a]b=c\n",
    "[a.B.c]\nd\n",
    "[a]\nb = one \\\n two ; three\n c=\"x # y\" z # w\n",
    "[a]\nb = \"tab\\tnew\\nback\\b\\\\ \\\"\"\n",
    "[a]\nb = \\q\n",
    "[a]\nb = \"open\n",
    "[a \"b\nc\"]\nd=1\n",
    "[a \"b\"x]\nd=1\n",
    "[a\n]\nb=1\n",
    "# c\n; d\n[a]b=1;x\n",
    "[a]\n1b = 2\n",
    "[a]\nb c\n",
    "[a]\nb # c\n",
    "[a]\nb =\n c = \n",
    "[]\nb=1\n",
    "[a",
    "[a \"",
    "[a]\nb",
    "[a]\nb=",
    "[a]\nb=x\\",
    "[a]\n\x0b b=1\n",
    "[url \"ext::sh -c 'x y' \"]\n insteadOf = https://\n",
    "[include]path=../x[core]\n",
};

} // namespace

TEST_CASE("git's settings are read as git reads them")
{
    if (!has_git()) return skipped("git is not installed");
    const TemporaryDirectory directory;
    for (const auto &sample : samples)
        require_as_git(directory, sample);
}

TEST_CASE("git's settings are read as git reads them, whatever is in the file")
{
    if (!has_git()) return skipped("git is not installed");
    const TemporaryDirectory directory;
    std::mt19937 random(20261122); // NOLINT(cert-msc32-c,cert-msc51-cpp): the same texts each time
    const std::string bytes = "[]\"\"\\\n\n \t\r=#;.aAb-1:!/\x01\xc3";
    for (int round = 0; round < 400; ++round) {
        std::string text = samples[random() % samples.size()];
        for (unsigned change = 0; change <= random() % 4; ++change) {
            const std::size_t place = random() % (text.size() + 1);
            if (random() % 3 == 0 && place < text.size())
                text.erase(place, 1);
            else
                text.insert(place, 1, bytes[random() % bytes.size()]);
        }
        require_as_git(directory, text);
    }
}

TEST_CASE("a setting that runs code is known, in any case and with any subsection")
{
    for (const char *text : {"[core]\nfsmonitor=./x",
                             "[CORE]\nHooksPath=x",
                             "[core]sshCommand=x",
                             "[core]pager=x",
                             "[core]editor=x",
                             "[core]gitProxy=x",
                             "[core]alternateRefsCommand=x",
                             "[core]askPass=x",
                             "[sequence]editor=x",
                             "[filter \"a.b\"]clean=x",
                             "[filter.lfs]smudge=x",
                             "[filter \"x\"]process=x",
                             "[diff \"x\"]command=x",
                             "[diff \"x\"]textconv=x",
                             "[diff]external=x",
                             "[merge \"x\"]driver=x",
                             "[alias]st=!x",
                             "[alias]st=-c core.pager=x log",
                             "[credential]helper=!x",
                             "[credential \"https://x\"]helper=x",
                             "[gpg]program=x",
                             "[gpg \"ssh\"]program=x",
                             "[gpg \"ssh\"]defaultKeyCommand=x",
                             "[include]path=x",
                             "[includeIf \"gitdir:/\"]path=x",
                             "[url \"ext::sh -c x\"]insteadOf=https://",
                             "[remote \"o\"]uploadpack=x",
                             "[remote \"o\"]receivepack=x",
                             "[remote \"o\"]vcs=x",
                             "[remote \"o\"]url=ext::sh",
                             "[submodule \"s\"]update=!x",
                             "[pager]log=x",
                             "[browser \"x\"]cmd=x",
                             "[difftool \"x\"]cmd=x",
                             "[mergetool \"x\"]cmd=x",
                             "[mergetool \"x\"]path=x",
                             "[core]worktree=/home",
                             "[init]templateDir=x",
                             "[trailer \"x\"]command=x",
                             "[trailer \"x\"]cmd=x",
                             "[uploadpack]packObjectsHook=x",
                             "[protocol \"ext\"]allow=always",
                             "[interactive]diffFilter=x",
                             "[sendemail]smtpServer=/x",
                             "[sendemail \"id\"]toCmd=x",
                             "[tar \"x\"]command=x",
                             "[gc]recentObjectsHook=x",
                             "[man \"x\"]cmd=x",
                             "[hook \"x\"]command=x",
                             "[branch \"x\"]remote=ext::x"}) {
        CAPTURE(text);
        CHECK(runs(text));
    }
}

TEST_CASE("settings of ordinary work run nothing")
{
    for (const char *text :
         {"[core]bare=false", "[core]fsmonitor=true", "[core]fsmonitor", "[core]fsmonitor=0", "[pager]log=false",
          "[remote \"o\"]url=https://x/y", "[remote \"o\"]url=git@x:y", "[remote \"o\"]fetch=+refs/heads/*:refs/remotes/o/*",
          "[branch \"m\"]remote=o", "[branch \"m\"]merge=refs/heads/m", "[submodule \"s\"]url=../s", "[submodule \"s\"]update=rebase",
          "[submodule \"s\"]active=true", "[user]name=x", "[url \"git@x:\"]insteadOf=https://x/", "[gpg]format=ssh", "[diff]tool=meld",
          "[extensions]worktreeConfig=true", "[commit]template=x"}) {
        CAPTURE(text);
        CHECK_FALSE(runs(text));
    }
}

TEST_CASE("core.worktree is read as git reads it, and from no other section")
{
    CHECK(worktree_of_config("[core]\n\trepositoryformatversion = 0\n\tworktree = ../../../a b\n") == "../../../a b");
    CHECK(worktree_of_config("[CORE]\n  WorkTree=/a b # here\n") == "/a b");
    CHECK(worktree_of_config("[core] worktree = \"../../../sub;x\"") == "../../../sub;x");
    CHECK(worktree_of_config("[core]\nworktree = one\n[x]\ny = z\n[core]\nworktree = two\n") == "two");
    CHECK(!worktree_of_config("[remote \"origin\"]\n\tworktree = /x\n[core]\n\tbare = false\n\tworktrees = x\n"));
    CHECK(!worktree_of_config(""));
    CHECK(!worktree_of_config("[core]\nworktree =\n"));
    CHECK(!worktree_of_config("[core]\nworktree\n"));
}

TEST_CASE("the rule of a setting is its section and key, and a truth is git's")
{
    CHECK(git_rule("url.git@x.y:.insteadof") == "url.insteadof");
    CHECK(git_rule("core.eol") == "core.eol");
    CHECK(git_rule("core").empty());
    CHECK(git_subsection("url.git@x.y:.insteadof") == "git@x.y:");
    for (const char *name : {"core.eol", "core", "filter..clean"})
        CHECK_MESSAGE(git_subsection(name).empty(), name);
    for (const char *text : {"true", "YES", "on", "1", "42"})
        CHECK_MESSAGE(git_truth(text) == true, text);
    for (const char *text : {"false", "No", "off", "0", "00", ""})
        CHECK_MESSAGE(git_truth(text) == false, text);
    CHECK(git_truth(std::nullopt) == true);
    CHECK(git_truth("sometimes") == std::nullopt);
}

} // namespace git_settings_test
