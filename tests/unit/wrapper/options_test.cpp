// The wrapper's own options, and everything that is the agent's: wrapper/session_client.hpp
#include "wrapper/session_client.hpp"

#include "support/failure.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace options_test {

namespace {

WrapperOptions parse(const std::vector<std::string> &arguments)
{
    std::vector<const char *> pointers = {"pi"};
    for (const auto &argument : arguments)
        pointers.push_back(argument.c_str());
    const int count = static_cast<int>(pointers.size());
    pointers.push_back(nullptr);
    return parse_options(count, pointers.data());
}

} // namespace

TEST_CASE("own options come first, and everything after them is the agent's, untouched")
{
    struct Row {
        std::vector<std::string> arguments;
        bool help, explain, debug;
        std::vector<std::string> rest;
    };
    const std::vector<Row> rows = {
        {{}, false, false, false, {}},
        {{"-p", "do it"}, false, false, false, {"-p", "do it"}},
        {{"--help"}, false, false, false, {"--help"}},
        {{"--pi-agent-help"}, true, false, false, {}},
        {{"--pi-agent-explain", "-p", "x"}, false, true, false, {"-p", "x"}},
        {{"--pi-agent-debug", "--pi-agent-explain", "x"}, false, true, true, {"x"}},
        {{"--pi-agent-debug", "--pi-agent-debug"}, false, false, true, {}},
        {{"x", "--pi-agent-debug"}, false, false, false, {"x", "--pi-agent-debug"}},
        {{"--", "--pi-agent-help"}, false, false, false, {"--", "--pi-agent-help"}},
        {{"", "--pi-agent-nonsense"}, false, false, false, {"", "--pi-agent-nonsense"}},
        {{"-p", "--pi-agent-nonsense"}, false, false, false, {"-p", "--pi-agent-nonsense"}},
        {{"--pi-agent"}, false, false, false, {"--pi-agent"}},
        {{"-pi-agent-help"}, false, false, false, {"-pi-agent-help"}},
        {{"--PI-AGENT-help"}, false, false, false, {"--PI-AGENT-help"}},
        {{"--pi-agent-debug", "\xff\n$HOME", "*"}, false, false, true, {"\xff\n$HOME", "*"}},
    };
    for (const auto &row : rows) {
        const WrapperOptions options = parse(row.arguments);
        CHECK(options.help == row.help);
        CHECK(options.explain == row.explain);
        CHECK(options.request.debug == row.debug);
        CHECK(options.request.arguments == row.rest);
    }
}

TEST_CASE("a shell in the agent's place gets the arguments that follow")
{
    const WrapperOptions options = parse({"--pi-agent-shell", "-c", "id"});
    CHECK(options.request.program == Program::shell);
    CHECK(options.request.arguments == std::vector<std::string>{"-c", "id"});
    CHECK(parse({"-c", "--pi-agent-shell"}).request.program == Program::agent);
    CHECK(parse({"--pi-agent-canary"}).request.program == Program::canary);
}

TEST_CASE("a start may take something away, and asks for nothing more")
{
    const auto of = [](const std::vector<std::string> &arguments) { return parse(arguments).request.narrowing; };
    CHECK((of({"x", "--pi-agent-read-only"}).read_only == false));
    CHECK(of({"--pi-agent-read-only"}).read_only);
    CHECK(of({"--pi-agent-scope=project", "x"}).project_only);
    CHECK(of({"--pi-agent-network=loopback"}).network == LeftNetwork::loopback);
    for (const auto &both : {std::vector<std::string>{"--pi-agent-network=none", "--pi-agent-network=loopback"},
                             std::vector<std::string>{"--pi-agent-network=loopback", "--pi-agent-network=none"}})
        CHECK(of(both).network == LeftNetwork::none); // whichever comes last
    for (const std::string option : {"--pi-agent-network=full", "--pi-agent-network=hosts", "--pi-agent-scope=root"}) {
        CAPTURE(option);
        const Caught caught = failure_of([&] { return parse({option}); });
        CHECK(caught.status == 77);
        CHECK(has(caught.text, "asks for more than the policy gives"));
        CHECK(has(caught.text, "--pi-agent-scope=project") == has(option, "scope")); // no value of another option
    }
    for (const std::string option : {"--pi-agent-network", "--pi-agent-network=", "--pi-agent-network=NONE",
                                     "--pi-agent-network=10.0.0.0/8", "--pi-agent-scope", "--pi-agent-scope=\n"}) {
        CAPTURE(option);
        const Caught caught = failure_of([&] { return parse({option}); });
        CHECK(caught.status == 64);
        CHECK(has(caught.text, has(option, "scope") ? "; say --pi-agent-scope=project; see: " : "; say --pi-agent-network=loopback or "));
        CHECK_FALSE(has(caught.text, "\n"));
    }
    CHECK(failure_of([] { return parse({"--pi-agent-read-only=false"}); }).status == 64);
}

TEST_CASE("hosts to add are taken as they are written, all of them, and not together with a closed network")
{
    CHECK(parse({"--pi-agent-allow", "github.com:22", "--pi-agent-allow=*.debian.org:80", "-p"}).request.allow ==
          std::vector<std::string>{"github.com:22", "*.debian.org:80"});
    CHECK(parse({"-p", "--pi-agent-allow=github.com"}).request.allow.empty());
    for (const auto &arguments : {std::vector<std::string>{"--pi-agent-allow"}, std::vector<std::string>{"--pi-agent-allow="},
                                  std::vector<std::string>{"--pi-agent-allow", ""}}) {
        const Caught caught = failure_of([&] { return parse(arguments); });
        CHECK(caught.status == 64);
        CHECK(has(caught.text, "--pi-agent-allow needs a host"));
    }
    CHECK(failure_of([] { return parse({"--pi-agent-allow=a.example", "--pi-agent-network=none"}); }).status == 64);
    CHECK(failure_of([] { return parse({"--pi-agent-network=loopback", "--pi-agent-allow=a.example"}); }).status == 64);
    CHECK(failure_of([] { return parse({"--pi-agent-allowed"}); }).status == 64);
}

TEST_CASE("ports are taken as numbers, each with another one here or without")
{
    const WrapperOptions options = parse({"--pi-agent-port", "3000", "--pi-agent-port=8080:5173", "-p"});
    CHECK(options.request.ports == std::vector<std::uint64_t>{3000, 5173});
    REQUIRE(options.ports.size() == 2);
    CHECK((options.ports[0].here == 3000 && options.ports[0].inside == 3000));
    CHECK((options.ports[1].here == 8080 && options.ports[1].inside == 5173));
    for (const std::string port : {"", "0", "65536", "-1", "+1", "a", "80:", ":80", "1:2:3", "0:80", "80:0", " 80", "80 ", "0x50", "\n"}) {
        const Caught caught = failure_of([&] { return parse({"--pi-agent-port=" + port}); });
        CHECK_MESSAGE(caught.status == 64, port);
        CHECK_FALSE(has(caught.text, "\n"));
    }
    CHECK(failure_of([] { return parse(std::vector<std::string>(17, "--pi-agent-port=80")); }).status == 64);
}

TEST_CASE("an own option that does not exist is refused by name, escaped")
{
    for (const std::string option : {"--pi-agent-", "--pi-agent-x", "--pi-agent-helpme", "--pi-agent-help=1", "--pi-agent-debug ",
                                     "--pi-agent-Help", "--pi-agent-explain\n"}) {
        CAPTURE(option);
        const Caught caught = failure_of([&] { return parse({option}); });
        CHECK(caught.status == 64);
        CHECK(has(caught.text, "unknown option --pi-agent-"));
        CHECK(has(caught.text, "pi --pi-agent-help"));
        CHECK_FALSE(has(caught.text, "\n"));
    }
    CHECK(failure_of([] { return parse({"--pi-agent-debug", "--pi-agent-x"}); }).status == 64);
}

TEST_CASE("a temporary directory is taken as it is written, the last one counts, and none is a mistake")
{
    CHECK(parse({"--pi-agent-tmpdir=a b/=c", "-p"}).request.tmpdir == "a b/=c");
    CHECK(parse({"--pi-agent-tmpdir=x", "--pi-agent-tmpdir=y"}).request.tmpdir == "y");
    CHECK(parse({"-p", "--pi-agent-tmpdir=x"}).request.tmpdir.empty());
    CHECK(parse({"-p", "--pi-agent-tmpdir=x"}).request.arguments.size() == 2);
    const WrapperOptions apart = parse({"--pi-agent-tmpdir", "a b", "--pi-agent-debug", "-p", "x"});
    CHECK((apart.request.tmpdir == "a b" && apart.request.debug && apart.request.arguments == std::vector<std::string>{"-p", "x"}));
    for (const std::vector<std::string> &none :
         {std::vector<std::string>{"--pi-agent-tmpdir"}, {"--pi-agent-tmpdir", "", "x"}, {"--pi-agent-tmpdir="}})
        CHECK(has(failure_of([&] { return parse(none); }).text, "--pi-agent-tmpdir needs a directory"));
    CHECK(has(failure_of([&] { return parse({"--pi-agent-tmpdirectory"}); }).text, "unknown option"));
}

TEST_CASE("an option of pi's own is no value of another one, so none that takes something away gets lost")
{
    for (const std::string option : {"--pi-agent-tmpdir", "--pi-agent-allow", "--pi-agent-port"})
        for (const std::string value : {"--pi-agent-read-only", "--pi-agent-", "--pi-agent-network=none"})
            for (const auto &arguments :
                 {std::vector<std::string>{option, value, "-p"}, std::vector<std::string>{option + "=" + value, "-p"}}) {
                const Caught caught = failure_of([&] { return parse(arguments); });
                CHECK(caught.status == 64);
                CHECK_MESSAGE(has(caught.text, value + " is an option of pi's own"), caught.text);
            }
    CHECK(parse({"--pi-agent-tmpdir", "-x", "--pi-agent-read-only"}).request.narrowing.read_only);
}

TEST_CASE("no arguments at all, not even a name, are no arguments (CVE-2021-4034)")
{
    const char *const nothing[] = {nullptr};
    const WrapperOptions options = parse_options(0, nothing);
    CHECK_FALSE(options.help);
    CHECK(options.request.arguments.empty());
}

TEST_CASE("the help names every option that exists")
{
    for (const std::string option : {"--pi-agent-help", "--pi-agent-explain", "--pi-agent-debug", "--pi-agent-tmpdir=x"}) {
        CHECK(has(wrapper_help, option.substr(0, option.find('='))));
        CHECK_NOTHROW(parse({option}));
    }
}

TEST_CASE("an update of pi itself is told from one of packages and models")
{
    using List = std::vector<std::string>;
    for (const List &arguments :
         {List{"update"}, {"update", "self"}, {"update", "pi"}, {"update", "--self"}, {"update", "--all"}, {"update", "--force"}})
        CHECK(asks_for_self_update(arguments));
    for (const List &arguments : {List{},
                                  {"-p", "update"},
                                  {"update", "--extensions"},
                                  {"update", "npm:some-package"},
                                  {"update", "--models"},
                                  {"update", "--help"},
                                  {"updates"},
                                  {"--continue", "update"}})
        CHECK_FALSE(asks_for_self_update(arguments));
}

} // namespace options_test
