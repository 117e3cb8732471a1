// What a session says of its hosts and paths: runner/inside/canary.hpp
#include "runner/inside/canary.hpp"

#include "common/base/error.hpp"
#include "runner/wire/gate_messages.hpp"
#include "support/failure.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace why_test {

namespace {

const std::string rules = "network p.yaml:2:1\n"
                          "host github.com:443 p.yaml:3:10\n"
                          "host *.example.org:22 p.yaml:4:10\n"
                          "host 10.20.0.0/16:443 p.yaml:5:10\n"
                          "host [fd00::/8]:443 p.yaml:8:10\n"
                          "provider openai api.openai.com p.yaml:9:3\n";

class Session {
public:
    explicit Session(const std::string &list = rules)
    {
        root_.make("run/pi-agent");
        root_.write(network_file, list);
    }

    std::string ask(const std::string &asked)
    {
        const WhyAnswer answer = why(asked, root_ / "");
        return (answer.is_free ? "free: " : "kept: ") + answer.text;
    }

    bool says(const std::string &asked, const std::string &part) { return ask(asked).find(part) != std::string::npos; }

    TemporaryDirectory root_;
};

} // namespace

TEST_CASE("a rule decides about a host, and is told with its place")
{
    Session session;
    CHECK(session.says("github.com:443", "free: github.com port 443: allowed: a rule names it (github.com) (p.yaml:3:10)\n"));
    CHECK(session.says("https://GitHub.COM./x", "free: github.com port 443: allowed: a rule names it (github.com)"));
    CHECK(session.says("a.example.org:22", "free: a.example.org port 22: allowed: a rule names it (*.example.org:22)"));
    CHECK(session.says("10.20.3.4", "allowed: a rule names it (10.20.0.0/16)"));
    CHECK(session.says("[fd00::5]:443", "free: fd00::5 port 443: allowed"));
    CHECK(session.says("[fe00::5]:443", "kept: fe00::5 port 443: denied"));
    CHECK(session.says("a.example.org", "denied: a rule names this host, but not this port (*.example.org:22) (p.yaml:4:10)\n"));
    CHECK(session.ask("other.example:443") == "kept: other.example port 443: denied: no rule names it (p.yaml:2:1)\n"
                                              "  the administrator can add it to network.hosts in the policy of pi-agent\n");
}

TEST_CASE("a host to add is offered only where the policy lets its user add it")
{
    Session session(rules + "grant *.debian.org:80 p.yaml:10:3\n");
    CHECK(session.says("deb.debian.org:80", "its user may add it: pi --pi-agent-allow deb.debian.org:80 (p.yaml:10:3)\n"));
    for (const char *asked : {"deb.debian.org", "-deb.debian.org:80", "debian.org:80", "other.example"})
        CHECK_MESSAGE(session.ask(asked).find("--pi-agent-allow") == std::string::npos, std::string(asked));
}

TEST_CASE("what goes by the proxy above the gate is told with the proxy, and what goes direct without")
{
    Session session(rules + "via proxy.example:3128 p.yaml:12:3\ndirect direct.example:443 p.yaml:13:3\nhost by.example:443 p.yaml:14:3\n"
                            "host direct.example:443 p.yaml:15:3\n");
    CHECK(session.says("by.example", "a rule names it (by.example), by the proxy proxy.example:3128 (p.yaml:14:3)"));
    CHECK(session.says("direct.example", "a rule names it (direct.example) (p.yaml:15:3)"));
}

TEST_CASE("a provider's host is reached with its key alone, and a rule comes before that")
{
    Session session;
    CHECK(session.says("https://api.openai.com/v1",
                       "free: api.openai.com port 443: allowed: the agent's requests to openai go there with a "
                       "key from outside, and nothing else does (p.yaml:9:3)\n"));
    CHECK(session.says("api.openai.com:80", "kept: "));
    CHECK(session.says("openai", "kept: openai port 443: denied"));
    Session both(rules + "host api.openai.com:443 p.yaml:11:3\n");
    CHECK(both.says("api.openai.com", "allowed: a rule names it (api.openai.com)"));
}

TEST_CASE("what was denied in this session is told, the last of it")
{
    Session session;
    session.root_.write(denials_file, "a.example:443: first\nb.example:443: other\na.example:443: last \x1b[31m\n[fd99::1]:80: six\n");
    CHECK(session.says("a.example:443", "  seen in this session: a.example:443: last \\x1b[31m\n"));
    CHECK(session.says("[fd99::1]:80", "  seen in this session: [fd99::1]:80: six\n"));
    CHECK_FALSE(session.ask("ba.example:443").find("seen in") != std::string::npos);
}

TEST_CASE("what is no file may be a host, or become a file")
{
    Session session;
    CHECK(session.says("OTHER.md", "kept: other.md port 443: denied"));
    CHECK(session.says("OTHER.md", "for one, ask with ./OTHER.md\n"));
    for (const char *asked : {"10.21.0.1", "other.example:443", "https://other.example/x"})
        CHECK_MESSAGE(session.ask(asked).find("a file:") == std::string::npos, std::string(asked));
}

TEST_CASE("without a list it says so, and another list than root's is a failure")
{
    Session session;
    std::filesystem::remove(session.root_ / network_file);
    CHECK(session.says("github.com", "free: github.com: this session has no list of hosts"));
    Session other("github.com:443\n");
    CHECK(failure_of([&] { return other.ask("github.com"); }).status == static_cast<int>(ExitStatus::internal));
}

TEST_CASE("a path is looked at, and who knows its rule is said")
{
    Session session;
    const std::string file = session.root_.write("README.md", "");
    CHECK(session.ask(file) == "free: " + file + ": can be read and changed\n");
    session.root_.link("nowhere-yet", "/nowhere/at-all");
    CHECK(session.says(session.root_ / "nowhere-yet", ": leads to /nowhere/at-all, not here. Either it does not exist"));
    CHECK(session.says("/nowhere/file", "/nowhere/file: not here. "));
    CHECK(session.says("/nowhere/file", "the user sees outside with: pi-agentctl why /nowhere/file\n"));
    CHECK(session.says("./a file; rm", "the user sees outside with: pi-agentctl why PATH\n"));
    CHECK(session.says("/proc/sys/kernel/ostype", "kept: "));
    CHECK(session.says(".", ": can be read and changed\n"));
}

TEST_CASE("no byte that somebody else chose reaches the terminal")
{
    Session session;
    for (const std::string asked :
         {"./\x1b[31m", "\x1b]0;title\x07.example", "https://\x1b[2J/", "a\x1b.example:443", "x\ny", "\xe2\x80\xae.md"}) {
        const std::string said = session.ask(asked);
        CHECK(said.find_first_of("\x1b\x07") == std::string::npos);
        CHECK(said.find("\xe2\x80\xae") == std::string::npos);
        CHECK(said.find("x\ny") == std::string::npos);
    }
}

} // namespace why_test
