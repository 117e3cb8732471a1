// common/host/beneath.hpp: no command that harms
#include "common/host/beneath.hpp"

#include "support/private_run.hpp"
#include "support/skipped.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace remedy_test {

namespace {

const std::string own = "/etc/pi-agent";

// What is said of each path, one a line, where /etc is a new directory of root's with what an administrator could have put there.
std::string said_of(const std::vector<std::string> &paths)
{
    return in_private_run([&]() -> std::string {
        if (::mount("none", "/etc", "tmpfs", 0, "mode=0755") != 0) return no_private_run;
        std::filesystem::create_directories(own + "/users.d");
        std::filesystem::create_directories(own + "/open");
        for (const std::string path :
             {"/etc/passwd", "/etc/pi-agents", "/etc/pi-agent/pi.env", "/etc/pi-agent/users.d/alice.yaml", "/etc/pi-agent/open/a",
              "/etc/pi-agent/a b", "/etc/pi-agent/$(reboot)", "/etc/pi-agent/a;b", "/etc/pi-agent/theirs"})
            std::ofstream(path) << "x\n";
        std::filesystem::create_symlink("/etc/passwd", own + "/link");
        std::filesystem::create_symlink("/etc", own + "/up");
        std::filesystem::create_symlink("pi.env", own + "/near");
        std::filesystem::create_hard_link("/etc/passwd", own + "/second");
        ::mkfifo((own + "/fifo").c_str(), 0600);
        ::chmod((own + "/open").c_str(), 0777);
        ::chown((own + "/theirs").c_str(), 12345, 12345);
        std::string said;
        for (const auto &path : paths)
            said += command_on("chmod 600", path, "words") + "\n";
        return said;
    });
}

void check_said(const std::vector<std::string> &paths, const std::function<std::string(const std::string &)> &wanted)
{
    const std::string said = said_of(paths);
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    std::string expected;
    for (const auto &path : paths)
        expected += wanted(path) + "\n";
    CHECK(said == expected);
}

} // namespace

TEST_CASE("a command names what is pi-agent's own" * doctest::skip(not_root()))
{
    check_said({own, own + "/pi.env", own + "/users.d", own + "/users.d/alice.yaml", own + "/theirs", own + "/open"},
               [](const std::string &path) { return "run: chmod 600 " + path; });
}

TEST_CASE(
    "a command names nothing else: neither elsewhere, nor what leads elsewhere or could be made to, nor what a shell reads otherwise" *
    doctest::skip(not_root()))
{
    check_said({"",
                "/",
                "/etc",
                "/etc/passwd",
                "/etc/pi-agents",
                "/home/eve",
                "pi.env",
                own + "/../passwd",
                own + "/",
                own + "//pi.env",
                own + "/./pi.env",
                own + "/link",
                own + "/up/passwd",
                own + "/near",
                own + "/second",
                own + "/fifo",
                own + "/open/a",
                own + "/gone",
                own + "/a b",
                own + "/$(reboot)",
                own + "/a;b",
                own + "/pi.env\n",
                own + "/\x1b[2J"},
               [](const std::string &) { return "words"; });
}

TEST_CASE("a command is about an account that pi-agent makes, and about no other")
{
    const auto about = [](const std::string &account, const std::string &group = "disk") {
        return command_about(account, {"gpasswd", "-d", account, group}, "words");
    };
    CHECK(about("pi-agent") == "run: gpasswd -d pi-agent disk");
    CHECK(about("pi-agent-alice") == "run: gpasswd -d pi-agent-alice disk");
    for (const std::string account :
         {"", "root", "alice", "www-data", "pi-agents", "my-pi-agent", "pi-agent-a b", "pi-agent-$(reboot)", "pi-agent-a\nb"})
        CHECK(about(account) == "words");
    for (const std::string group : {"", "domain users", "a;reboot", "a\nb"})
        CHECK(about("pi-agent", group) == "words");
}

TEST_CASE("a user's name is one word of a shell, whatever a directory service calls them")
{
    for (const auto *name : {"alice", "Jane.Doe", "dana@example.org", "4dmin"})
        CHECK(name_as_word(name) == name);
    CHECK(name_as_word("CORP\\dana") == "'CORP\\dana'");
    CHECK(name_as_word("Alice Smith") == "'Alice Smith'");
    CHECK(name_as_word("o'brien") == R"('o'\''brien')");
    CHECK(name_as_word("m\xc3\xbcller") == "'m\xc3\xbcller'");
    CHECK(name_as_word("a\x1b[31m") == "a\\x1b[31m");
}

} // namespace remedy_test
