// What sudo's configuration comes to for the runner: admin/diagnose/faults.hpp
#include "admin/diagnose/faults.hpp"

#include "common/base/error.hpp"
#include "support/failure.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace sudo_faults_test {

namespace {

const std::string runner = "/usr/libexec/pi-agent/pi-agent-runner";

std::string rule(const std::string &command, const std::string &options = R"({"authenticate": false})")
{
    return R"({"Cmnd_Specs": [{"Options": [)" + options + R"(], "Commands": [{"command": ")" + command + R"("}]}]})";
}

const std::string ours = rule(runner + R"( \"\")");

std::string with(const std::string &rules, const std::string &defaults = "")
{
    return R"({"Defaults": [)" + defaults + R"(], "User_Specs": [)" + rules + "]}";
}

std::string about(const std::string &json, SudoKind kind = SudoKind::original)
{
    std::string names;
    for (const auto &fault : judge_sudoers(json, "alice", runner, kind))
        names += (names.empty() ? "" : ",") + fault.about;
    return names;
}

} // namespace

TEST_CASE("the policy's rule alone, or last, is fine")
{
    CHECK(about(with(ours)) == "");
    CHECK(about(with(rule("ALL", "") + "," + ours)) == "");
    CHECK(about(with(rule("ALL") + "," + ours)) == "");
}

TEST_CASE("no rule, a wider one, and one that takes its place")
{
    CHECK(about("{}") == "sudo-rule");
    CHECK(about(with(rule("ALL"))) == "sudo-rule");
    CHECK(about(with(rule(runner) + "," + ours)) == "sudo-rule-wider");
    CHECK(about(with(ours + "," + rule("ALL", ""))) == "sudo-rule-shadowed");
    CHECK(about(with(ours + "," + rule("/usr/libexec/pi-agent/", R"({"authenticate": false}, {"setenv": true})"))) == "sudo-environment");
    CHECK(about(with(ours + "," + rule("ALL", R"({"authenticate": false}, {"setenv": true})"))) == ""); // is root by sudo anyway
    CHECK(about(with(ours +
                     R"(,{"Cmnd_Specs": [{"Options": [{"authenticate": false}], "Commands": [{"command": "ALL", "negated": true}]}]})")) ==
          "sudo-rule-shadowed");
}

TEST_CASE("Defaults count in sudo's order: of all, of the user, of the command")
{
    const std::string bad = R"({"Options": [{"requiretty": true}]}, {"Options": [{"env_reset": false}]})";
    CHECK(about(with(ours, bad)) == "sudo-environment,sudo-terminal");
    const std::string emptied =
        R"({"Binding": [{"command": ")" + runner + R"("}], "Options": [{"env_keep": false}, {"env_check": false}]},)";
    CHECK(about(with(ours, emptied + R"({"Options": [{"operation": "list_add", "env_keep": ["LD_PRELOAD"]}]})")) == "");
    const std::string good = R"({"Binding": [{"command": ")" + runner + R"("}], "Options": [{"requiretty": false}, {"env_reset": true}]},)";
    CHECK(about(with(ours, good + bad)) == "");
    CHECK(about(with(ours, R"({"Options": [{"operation": "list_add", "env_keep": ["LANG", "SUDO_UID"]}]})")) ==
          "sudo-environment,sudo-environment");
    CHECK(about(with(ours, R"({"Options": [{"operation": "list_add", "env_keep": ["LANG"]}]})")) == "sudo-environment");
    CHECK(about(with(ours, R"({"Binding": [{"username": "alice"}], "Options": [{"log_output": true}]})")) == "sudo-terminal");
}

TEST_CASE("settings that make pi hang, end sessions or keep the runner from starting are found, as Defaults and before a command")
{
    for (const char *setting :
         {R"({"log_subcmds": true})", R"({"intercept": true})", R"({"command_timeout": "30"})", R"({"noexec": true})",
          R"({"runcwd": "/tmp"})", R"({"runchroot": "/srv"})", R"({"stay_setuid": true})", R"({"rlimit_as": "10"})"}) {
        CHECK_MESSAGE(about(with(ours, std::string(R"({"Options": [)") + setting + "]}")) == "sudo-start", setting);
        const std::string tagged = rule("ALL", std::string(R"({"authenticate": false}, {"setenv": true}, )") + setting);
        CHECK_MESSAGE(about(with(ours + "," + tagged)) == "sudo-start", setting);
        CHECK_MESSAGE(about(with(tagged + "," + ours)) == "", setting);
    }
    CHECK(about(with(ours + "," + rule("ALL", R"({"authenticate": false}, {"command_timeout": 10})"))) == "sudo-start");
    const std::string harmless =
        R"({"runcwd": "*"}, {"runchroot": false}, {"command_timeout": "0"}, {"rlimit_nproc": false}, {"rlimit_core": "0,0"})";
    CHECK(about(with(ours, R"({"Options": [)" + harmless + "]}")) == "");
    CHECK(about(with(ours, R"({"Options": [{"log_subcmds": true}, {"runcwd": "/tmp"}]})"), SudoKind::rs) == "sudo-start");
}

TEST_CASE("what sudo-rs does not obey is no fault there")
{
    const std::string unknown = R"({"Options": [{"requiretty": true}, {"log_output": true}, {"setenv": true}, {"env_reset": false}]})";
    CHECK(about(with(ours, unknown), SudoKind::rs) == "");
    CHECK(about(with(ours, unknown)) != "");
    CHECK(about(with(ours, R"({"Options": [{"operation": "list_add", "env_keep": ["LANG"]}, {"use_pty": true}]})"), SudoKind::rs) ==
          "sudo-environment,sudo-terminal");
    CHECK(about(with(rule(runner) + "," + ours), SudoKind::rs) == "sudo-rule-wider");
}

TEST_CASE("rules for other accounts and other commands do not count, and those that forbid do")
{
    const std::string of_postgres = R"({"Cmnd_Specs": [{"runasusers": [{"username": "postgres"}], "Commands": [{"command": "ALL"}]}]})";
    CHECK(about(with(ours + "," + of_postgres)) == "");
    CHECK(about(with(ours + "," + rule("/usr/bin/reboot", ""))) == "");
    CHECK(about(with(ours + "," + rule("/usr/libexec/*/pi-agent-runner", ""))) == "sudo-rule-shadowed");
    const std::string two =
        R"({"Cmnd_Specs": [{"Commands": [{"command": "ALL"}]}, {"Options": [{"authenticate": false}], "Commands": [{"command": "/usr/bin/reboot"}]}]})";
    CHECK(about(with(ours + "," + two)) == "sudo-rule-shadowed");
    const std::string never =
        R"({"Cmnd_Specs": [{"runasusers": [{"username": "ALL"}, {"negated": true, "username": "root"}], "Commands": [{"command": "ALL"}]}]})";
    CHECK(about(with(ours + "," + never)) == "");
}

TEST_CASE("what is no such text is told")
{
    CHECK_THROWS_AS(judge_sudoers("sudo: no", "alice", runner, SudoKind::original), Failure);
    CHECK_THROWS_AS(judge_sudoers(R"({"User_Specs": [{}]})", "alice", runner, SudoKind::original), Failure);
    // It says where, in words that show the text: that may be anybody's.
    const auto caught = failure_of([] { return judge_sudoers("{\"\xe2\x80\xae\x1b[2J", "alice", runner, SudoKind::original); });
    CHECK(caught.text.find("\\u{202e}") != std::string::npos);
    CHECK(caught.text.find("\xe2\x80\xae") == std::string::npos);
}

} // namespace sudo_faults_test
