// The layers of the agent's environment: runner/environment.hpp
#include "runner/environment.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace pi_agent;

namespace {

EnvironmentInput plain()
{
    return {{}, {}, {}, "/var/lib/pi-agent/users/alice/home", "pi-agent-alice", "/usr/lib/pi-agent/agent/bin/pi", "0123456789abcdef"};
}

// The value of `name`; "(unset)" without one, "(twice)" when there are two.
std::string value_of(const std::vector<std::string> &list, const std::string &name)
{
    std::string value = "(unset)";
    for (const auto &assignment : list) {
        if (assignment.compare(0, name.size() + 1, name + "=") != 0) continue;
        value = value == "(unset)" ? assignment.substr(name.size() + 1) : "(twice)";
    }
    return value;
}

} // namespace

TEST_CASE("the agent gets the product's own variables and no others")
{
    const auto list = compose_environment(plain());
    std::vector<std::string> names;
    names.reserve(list.size());
    for (const auto &assignment : list)
        names.push_back(assignment.substr(0, assignment.find('=')));
    CHECK(names == std::vector<std::string>{"HOME", "LOGNAME", "PATH", "PI_AGENT_SESSION", "PI_AGENT_VERSION", "PI_CODING_AGENT_DIR",
                                            "SANDBOX_RUNTIME", "SHELL", "TMPDIR", "USER"});
    CHECK(value_of(list, "HOME") == "/var/lib/pi-agent/users/alice/home");
    CHECK(value_of(list, "USER") == "pi-agent-alice");
    CHECK(value_of(list, "LOGNAME") == "pi-agent-alice");
    CHECK(value_of(list, "PI_CODING_AGENT_DIR") == "/var/lib/pi-agent/users/alice/home/.pi/agent");
    CHECK(value_of(list, "PI_AGENT_SESSION") == "0123456789abcdef");
    CHECK(value_of(list, "TMPDIR") == "/tmp");
}

TEST_CASE("the host's tools are found before the agent's own directory, and nothing relative is searched")
{
    const std::string path = value_of(compose_environment(plain()), "PATH");
    CHECK(path == "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/lib/pi-agent/agent/bin");
}

TEST_CASE("each layer wins over those below it, and the product over all")
{
    struct Row {
        const char *name;
        std::vector<std::string> presentation;
        Environment managed;
        Environment per_user;
        const char *value;
    };
    const std::vector<Row> rows = {
        {"TERM", {"TERM=xterm"}, {}, {}, "xterm"},
        {"TERM", {"TERM=xterm"}, {{"TERM", "dumb"}}, {}, "dumb"},
        {"TERM", {"TERM=xterm"}, {}, {{"TERM", "vt100"}}, "vt100"},
        {"X", {}, {{"X", "managed"}}, {}, "managed"},
        {"X", {}, {{"X", "managed"}}, {{"X", "user"}}, "user"},
        {"X", {}, {{"X", "managed"}}, {{"X", ""}}, ""},
        {"TERM", {"TERM=first", "TERM=last"}, {}, {}, "last"},
        {"TZ", {"TZ=a=b=c"}, {}, {}, "a=b=c"},
        {"LC_ALL", {"LC_ALL="}, {}, {}, ""},
        {"LANG", {"LANG=x\n\xff"}, {}, {}, "x\n\xff"},
        {"HOME", {"HOME=/tmp"}, {{"HOME", "/tmp"}}, {{"HOME", "/tmp"}}, "/var/lib/pi-agent/users/alice/home"},
        {"USER", {}, {{"USER", "root"}}, {{"USER", "root"}}, "pi-agent-alice"},
        {"PI_AGENT_SESSION", {}, {{"PI_AGENT_SESSION", "forged"}}, {}, "0123456789abcdef"},
        {"PI_CODING_AGENT_DIR", {}, {}, {{"PI_CODING_AGENT_DIR", "/tmp"}}, "/var/lib/pi-agent/users/alice/home/.pi/agent"},
        {"NODE_OPTIONS", {}, {}, {}, "(unset)"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.name);
        EnvironmentInput input = plain();
        input.presentation = row.presentation;
        input.managed = row.managed;
        input.per_user = row.per_user;
        CHECK(value_of(compose_environment(input), row.name) == row.value);
    }
}

TEST_CASE("the list is sorted by name and names nothing twice")
{
    EnvironmentInput input = plain();
    input.presentation = {"TERM=x", "LANG=y"};
    input.managed = {{"B", "1"}, {"A", "2"}};
    input.per_user = {{"A", "3"}, {"Z", "4"}};
    const auto list = compose_environment(input);
    std::vector<std::string> names;
    names.reserve(list.size());
    for (const auto &assignment : list)
        names.push_back(assignment.substr(0, assignment.find('=')));
    CHECK(std::is_sorted(names.begin(), names.end()));
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}
