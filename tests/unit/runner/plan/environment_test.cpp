// The layers of the agent's environment: runner/plan/host_view.hpp
#include "runner/plan/host_view.hpp"

#include "common/base/build_settings.hpp"
#include "common/policy/policy_sections.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace pi_agent;

namespace environment_test {

namespace {

EnvironmentInput plain()
{
    return {
        {}, {}, {}, {}, {}, "/var/lib/pi-agent/users/alice/home", "pi-agent-alice", "/usr/lib/pi-agent/agent/bin/pi", "0123456789abcdef",
        {}};
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
    CHECK(names == std::vector<std::string>{"CARGO_HOME", "GOPATH", "HOME", "LOGNAME", "NPM_CONFIG_GLOBALCONFIG", "PATH",
                                            "PIP_BREAK_SYSTEM_PACKAGES", "PI_AGENT_SESSION", "PI_AGENT_VERSION", "PI_CODING_AGENT_DIR",
                                            "RUSTUP_HOME", "SANDBOX_RUNTIME", "SCREENDIR", "SHELL", "TMPDIR", "USER"});
    CHECK(value_of(list, "HOME") == "/var/lib/pi-agent/users/alice/home");
    CHECK(value_of(list, "USER") == "pi-agent-alice");
    CHECK(value_of(list, "LOGNAME") == "pi-agent-alice");
    CHECK(value_of(list, "PI_CODING_AGENT_DIR") == "/var/lib/pi-agent/users/alice/home/.pi/agent");
    CHECK(value_of(list, "PI_AGENT_SESSION") == "0123456789abcdef");
    CHECK(value_of(list, "TMPDIR") == "/tmp");
}

TEST_CASE("what is the product's own can be set by no policy and no file")
{
    for (const auto &layered : layer_environment(plain()))
        CHECK_MESSAGE(problem_of_env_name(layered.first) == "is set by pi-agent itself", layered.first);
}

TEST_CASE("what was installed inside is found first, then the shims, the host's tools and the agent's own directory; nothing relative")
{
    const std::string home = "/var/lib/pi-agent/users/alice/home";
    CHECK(value_of(compose_environment(plain()), "PATH") ==
          home + "/.local/share/mise/shims:" + home + "/.local/bin:" + home + "/.local/share/npm-global/bin:" + home +
              "/.local/share/cargo/bin:" + home + "/.local/share/go/bin:" + build::shim_directory +
              ":/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/lib/pi-agent/agent/bin");
}

TEST_CASE("the user's PATH and the policy's come behind the shims and before the host's own, each directory once")
{
    EnvironmentInput input = plain();
    input.user_path = {"/home/alice/projects/x/bin", "/usr/bin", "/opt/tool/bin"};
    input.path = {{"/usr/local/go/bin", {}}, {"/opt/tool/bin", {}}};
    const std::string path = value_of(compose_environment(input), "PATH");
    CHECK(path.substr(path.find(build::shim_directory)) ==
          std::string(build::shim_directory) + ":/home/alice/projects/x/bin:/usr/local/go/bin:/opt/tool/bin:/usr/bin:/usr/local/bin:/bin:"
                                               "/usr/local/sbin:/usr/sbin:/sbin:/usr/lib/pi-agent/agent/bin");
    CHECK(path.substr(0, path.find(build::shim_directory)) ==
          value_of(compose_environment(plain()), "PATH").substr(0, path.find(build::shim_directory)));
}

TEST_CASE("five layers, from the shell to the user's entry of the policy, and each variable says where it is from")
{
    EnvironmentInput input = plain();
    input.presentation = {"A=shell", "B=shell", "C=shell", "D=shell", "E=shell", "HOME=shell"};
    input.host_files = {{"B", "host", "f:1"}, {"C", "host", "f:2"}, {"D", "host", "f:3"}, {"E", "host", "f:4"}, {"HOME", "host", "f:5"}};
    input.managed = {{"C", "env"}, {"D", "env"}, {"E", "env"}, {"HOME", "env"}};
    input.managed_files = {{"D", "file", "g:1"}, {"E", "file", "g:2"}, {"HOME", "file", "g:3"}};
    input.per_user = {{"E", "user"}, {"HOME", "user"}};
    const auto layered = layer_environment(input);
    const auto seen = [&](const char *name) { return layered.at(name).value + " " + layered.at(name).from; };
    CHECK(seen("A") == "shell shell");
    CHECK(seen("B") == "host f:1");
    CHECK(seen("C") == "env env");
    CHECK(seen("D") == "file g:1");
    CHECK(seen("E") == "user users.*.env");
    CHECK(seen("HOME") == "/var/lib/pi-agent/users/alice/home pi-agent");
    CHECK(managed_environment(input) == Environment{{"C", "env"}, {"D", "file"}, {"E", "user"}, {"HOME", "user"}});
}

TEST_CASE("each layer wins over those below it, and the product over all")
{
    struct Row {
        std::string name;
        std::vector<std::string> presentation;
        Environment managed;
        Environment per_user;
        std::string value;
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

TEST_CASE("a default of the product's gives way to every layer, and a copy of certificates takes the place of what names them")
{
    EnvironmentInput input = plain();
    input.defaults = {{"A", {"default", "why"}}, {"TERM", {"default", "why"}}, {"HOME", {"default", "why"}}};
    input.presentation = {"TERM=xterm"};
    input.managed = {{"SSL_CERT_FILE", "/srv/corp.pem"}};
    input.certificates_inside = {{"SSL_CERT_FILE", "/run/pi-agent/ca/1.pem"}};
    auto layered = layer_environment(input);
    CHECK(layered["A"].value == "default");
    CHECK(layered["A"].from == "why");
    CHECK(layered["TERM"].value == "xterm");
    CHECK(layered["HOME"].value == input.home);
    CHECK(layered["SSL_CERT_FILE"].value == "/run/pi-agent/ca/1.pem");
    CHECK(layered["SSL_CERT_FILE"].from == "env, a copy of /srv/corp.pem");
    CHECK(managed_environment(input).at("SSL_CERT_FILE") == "/srv/corp.pem");
}

TEST_CASE("TMPDIR is the session's own, or the user's choice of an option, and no variable's")
{
    EnvironmentInput input = plain();
    input.presentation = {"TMPDIR=/a"};
    input.host_files = {{"TMPDIR", "/b", "f:1"}};
    input.managed = {{"TMPDIR", "/c"}};
    input.per_user = {{"TMPDIR", "/d"}};
    CHECK(value_of(compose_environment(input), "TMPDIR") == "/tmp");
    input.tmpdir = "/home/alice/projects/tmp";
    CHECK(value_of(compose_environment(input), "TMPDIR") == "/home/alice/projects/tmp");
}

} // namespace environment_test
