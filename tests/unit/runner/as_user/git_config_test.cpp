// Git's syntax, and that git itself reads back what was written: runner/as_user/git_identity.hpp
#include "runner/as_user/git_identity.hpp"

#include "runner/root/errand/errand.hpp"
#include "support/as_user.hpp"
#include "support/skipped.hpp"

#include <random>

using namespace pi_agent;
using namespace pi_agent::test;

namespace git_config_test {

namespace {

const std::string always = "[core]\n\tcheckStat = minimal\n[gc]\n\tworktreePruneExpire = never\n";

std::string git_config_text(const GitIdentity &identity, RepositoryConfig config)
{
    return git_defaults(config) + git_identity_text(identity) + git_signing_text(identity);
}

std::string settings_file(const std::string &name)
{
    return git_config_text(GitIdentity{name, std::nullopt}, RepositoryConfig::writable);
}

using Settings = std::vector<GitSetting>;

// What git makes of it.
Settings as_git_reads(const std::string &text)
{
    const TemporaryDirectory place;
    set_mode(place.path(), 0755);
    const std::string file = place.write("config", text);
    const std::string output = as_user([&](const AsUser &user) {
        const ProgramOutput answer = run_host_program(user, {"git", "config", "--file", file, "-z", "--list"}, {"HOME=/nonexistent"},
                                                      std::size_t{1} << 20U, in_seconds(4));
        return answer.end == ProgramOutput::End::not_installed ? "no git" : answer.output;
    });
    if (output == "no git") return {{output, std::nullopt}};
    return read_git_settings(output);
}

} // namespace

TEST_CASE("the settings that git lists are told apart by their NUL, in their order")
{
    using namespace std::string_literals;
    CHECK(read_git_settings("").empty());
    const auto settings = read_git_settings("user.name\na\nb\0user.email\n\0user.name\nlast \0user.flag\0user.cut\noff"s);
    CHECK(settings == Settings{{"user.name", "a\nb"}, {"user.email", ""}, {"user.name", "last "}, {"user.flag", std::nullopt}});
}

TEST_CASE("a value is one quoted line, whatever it holds")
{
    CHECK(settings_file("plain") == always + "[include]\n\tpath = \"/etc/gitconfig\"\n[user]\n\tname = \"plain\"\n");
    CHECK(settings_file("a\"b\\c") == always + "[include]\n\tpath = \"/etc/gitconfig\"\n[user]\n\tname = \"a\\\"b\\\\c\"\n");
    CHECK(settings_file("x\n[core]\n\tfsmonitor = run") ==
          always + "[include]\n\tpath = \"/etc/gitconfig\"\n[user]\n\tname = \"x\\n[core]\\n\tfsmonitor = run\"\n");
}

TEST_CASE("what is not set is not written, and neither is what git cannot have")
{
    CHECK(git_config_text({}, RepositoryConfig::writable) == always + "[include]\n\tpath = \"/etc/gitconfig\"\n[user]\n");
    CHECK(git_config_text({std::nullopt, ""}, RepositoryConfig::writable) ==
          always + "[include]\n\tpath = \"/etc/gitconfig\"\n[user]\n\temail = \"\"\n");
    CHECK(git_config_text({std::string("a\0b", 3), std::nullopt}, RepositoryConfig::writable) ==
          always + "[include]\n\tpath = \"/etc/gitconfig\"\n[user]\n");
    CHECK(git_config_text({std::nullopt, std::nullopt, {"/a", "", "*"}}, RepositoryConfig::writable) ==
          always +
              "[include]\n\tpath = \"/etc/gitconfig\"\n[user]\n[safe]\n\tdirectory = \"/a\"\n\tdirectory = \"\"\n\tdirectory = \"*\"\n");
}

TEST_CASE("git reads back exactly what went in" * doctest::skip(not_root()))
{
    std::vector<std::string> names = {"",
                                      " leading and trailing ",
                                      "# no comment",
                                      "a ; b # c",
                                      "\"quoted\"",
                                      "back\\slash\\",
                                      "tab\there",
                                      "line\nline",
                                      "carriage\r\nreturn\r",
                                      "\r",
                                      "\n",
                                      "\\n",
                                      "\x7f\x1b[31m",
                                      "\xef\xbb\xbf bom",
                                      "ü 名",
                                      "\xff\xfe",
                                      "x\n[core]\n\tfsmonitor = touch x\n",
                                      "[core]",
                                      "include.path=/x",
                                      "a\\\nb",
                                      "\"",
                                      "\\"};
    std::mt19937 random(20260101); // NOLINT(cert-msc32-c,cert-msc51-cpp): the same bytes in every run
    std::uniform_int_distribution<int> byte(1, 255);
    std::uniform_int_distribution<std::size_t> length(0, 300);
    for (int count = 0; count < 100; ++count) {
        std::string name(length(random), ' ');
        for (char &one : name)
            one = static_cast<char>(byte(random));
        names.push_back(name);
    }
    for (const auto &name : names) {
        const auto settings = as_git_reads(git_config_text({name, name + "@", {name, "*"}}, RepositoryConfig::protected_));
        if (settings.front().name == "no git") return skipped("no git here");
        CAPTURE(name);
        CHECK(settings == Settings{{"core.checkstat", "minimal"},
                                   {"gc.worktreepruneexpire", "never"},
                                   {"branch.autosetupmerge", "false"},
                                   {"include.path", "/etc/gitconfig"},
                                   {"user.name", name},
                                   {"user.email", name + "@"},
                                   {"safe.directory", name},
                                   {"safe.directory", "*"}});
    }
}

TEST_CASE("what else passes follows, each setting with a section of its own")
{
    GitIdentity identity;
    identity.settings = {{"core.autocrlf", "input"}, {"core.pager", "less; x"},        {"url.git@x:.insteadof", "https://x/"},
                         {"color.diff.meta", "red"}, {"rerere.enabled", std::nullopt}, {"alias.st", "status \"-s\""}};
    identity.files = {{"core.excludesfile", "*.o\n"}, {"core.hookspath", "x"}, {"gpg.ssh.allowedsignersfile", ""}};
    identity.lfs = GitLfs::skip_smudge;
    const std::string text = git_config_text(identity, RepositoryConfig::writable);
    CHECK(text == always + "[include]\n\tpath = \"/etc/gitconfig\"\n[user]\n"
                           "[core]\n\tautocrlf = \"input\"\n[url \"git@x:\"]\n\tinsteadof = \"https://x/\"\n"
                           "[color \"diff\"]\n\tmeta = \"red\"\n[rerere]\n\tenabled\n[alias]\n\tst = \"status \\\"-s\\\"\"\n"
                           "[core]\n\texcludesfile = \"/run/pi-agent/git/ignore\"\n"
                           "[gpg \"ssh\"]\n\tallowedsignersfile = \"/run/pi-agent/git/allowed_signers\"\n"
                           "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge --skip -- %f\n"
                           "\tprocess = git-lfs filter-process --skip\n\trequired = true\n");
}

TEST_CASE("who signs signs inside, too, with settings of the environment that win over each file")
{
    GitIdentity identity;
    identity.signs_commits = identity.signs_tags = true;
    CHECK(git_config_text(identity, RepositoryConfig::writable) ==
          always + "[include]\n\tpath = \"/etc/gitconfig\"\n[user]\n[commit]\n\tgpgSign = \"true\"\n[tag]\n\tgpgSign = \"true\"\n");
    EnvironmentInput environment{{}, {}, {}, {}, {}, "/home", "agent", "/usr/bin/pi", "ID"};
    add_git_settings(environment, {{"gpg.format", "ssh"}, {"user.signingKey", "/key"}}, "why");
    const auto variables = layer_environment(environment);
    CHECK(variables.at("GIT_CONFIG_COUNT").value == "2");
    CHECK(variables.at("GIT_CONFIG_KEY_1").value == "user.signingKey");
    CHECK(variables.at("GIT_CONFIG_VALUE_1").value == "/key");
    CHECK(variables.at("GIT_CONFIG_VALUE_0").from == "why");
}

TEST_CASE("settings that a higher layer numbers from 0 follow the product's, and replace none of them")
{
    EnvironmentInput environment{{}, {}, {}, {}, {}, "/home", "agent", "/usr/bin/pi", "ID"};
    add_git_settings(environment, {{"commit.gpgSign", "false"}, {"tag.gpgSign", "false"}}, "why");
    environment.managed = {{"GIT_CONFIG_COUNT", "1"}, {"GIT_CONFIG_KEY_0", "credential.helper"}, {"GIT_CONFIG_VALUE_0", "!token"}};
    auto variables = layer_environment(environment);
    CHECK(variables.at("GIT_CONFIG_COUNT").value == "3");
    CHECK(variables.at("GIT_CONFIG_COUNT").from == "why, and env");
    CHECK(variables.at("GIT_CONFIG_KEY_0").value == "commit.gpgSign");
    CHECK(variables.at("GIT_CONFIG_KEY_1").value == "tag.gpgSign");
    CHECK(variables.at("GIT_CONFIG_KEY_2").value == "credential.helper");
    CHECK(variables.at("GIT_CONFIG_VALUE_2").value == "!token");

    for (const char *count : {"0", "many"}) { // switches the product's off; git refuses it, as it does outside
        environment.managed["GIT_CONFIG_COUNT"] = count;
        CHECK(layer_environment(environment).at("GIT_CONFIG_COUNT").value == count);
        CHECK(layer_environment(environment).at("GIT_CONFIG_KEY_0").value == "credential.helper");
    }
}

TEST_CASE("root takes bounded texts, and files that lie beside the configuration")
{
    GitOfUser found{"[user]\n", "[commit]\n", {{"allowed_signers", "x"}, {"ignore", ""}}, "", {{"a"}, {"b"}, GitSigning::of_user}, "c"};
    CHECK(encode(decode_fields<GitOfUser>(encode(found))) == encode(found));
    for (const char *name : {"", ".", "..", "../gitconfig", "a/b", "A", "a.b"})
        CHECK_THROWS_AS(decode_fields<GitOfUser>(encode(GitOfUser{"", "", {{name, "x"}}})), ProtocolError);
    CHECK_THROWS_AS(decode_fields<GitOfUser>(encode(GitOfUser{"", "", {{"a", std::string(git_file_copy_limit + 1, 'x')}}})), ProtocolError);
    CHECK_THROWS_AS(decode_fields<GitOfUser>(encode(GitOfUser{std::string(git_config_limit + 1, 'x')})), ProtocolError);
    found.notices.once.resize(git_notice_limit + 1);
    CHECK_THROWS_AS(decode_fields<GitOfUser>(encode(found)), ProtocolError);
}

TEST_CASE("git reads back the settings of any section" * doctest::skip(not_root()))
{
    GitIdentity identity;
    for (const char *between : {"ssh://git@h/", "a\"b\\c", "x] y # ; z", "dots.and.more", "\xff"})
        identity.settings.push_back({"url." + std::string(between) + ".insteadof", "v\n\"" + std::string(between)});
    Settings settings = as_git_reads(git_config_text(identity, RepositoryConfig::writable));
    if (settings.front().name == "no git") return skipped("no git here");
    settings.erase(settings.begin(), settings.begin() + 3);
    CHECK(settings == identity.settings);
}

} // namespace git_config_test
