// What a session reads of its own network: runner/wire/gate_messages.hpp
#include "runner/inside/canary.hpp"

#include "support/failure.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace session_hosts_test {

TEST_CASE("what a session's network reaches is written a line each, and read as it was written")
{
    SessionHosts hosts{{NetworkMode::hosts, {}, {"p.yaml", 1, 1}}, {{"openai", {}, "api.openai.com", {"p.yaml", 7, 3}}}};
    hosts.network.hosts = {{"::1", 9, {"p.yaml", 2, 1}}, {"*.example.org", 443, {"p.yaml", 3, 1}}, {"fd00::/8", 80, {"--pi-agent-allow"}}};
    hosts.network.may_grant = {{"10.20.0.0/16", 443, {"a place\nhost evil.example:443 \x1b", 4, 1}}};
    hosts.network.via = HostRule{"2001:db8::1", 3128, {"p.yaml", 5, 1}};
    hosts.network.direct = {{"*.corp.example", 443, {"p.yaml", 6, 1}}};
    const std::string text = encode(hosts);
    CHECK(text == "network p.yaml:1:1\n"
                  "host [::1]:9 p.yaml:2:1\n"
                  "host *.example.org:443 p.yaml:3:1\n"
                  "host [fd00::/8]:80 --pi-agent-allow\n"
                  "grant 10.20.0.0/16:443 a place\\x0ahost evil.example:443 \\x1b:4:1\n"
                  "via [2001:db8::1]:3128 p.yaml:5:1\n"
                  "direct *.corp.example:443 p.yaml:6:1\n"
                  "provider openai api.openai.com p.yaml:7:3\n");
    const SessionHosts read = decode_session_hosts(text);
    CHECK(read.network.mode == NetworkMode::hosts);
    CHECK(read.network.hosts.size() == 3);
    CHECK(
        (read.network.hosts[0].host == "::1" && read.network.hosts[0].port == 9 && to_string(read.network.hosts[0].where) == "p.yaml:2:1"));
    CHECK(read.network.may_grant[0].host == "10.20.0.0/16");
    CHECK((read.network.via && read.network.via->host == "2001:db8::1" && read.network.via->port == 3128));
    CHECK((read.network.direct.size() == 1 && read.network.direct[0].host == "*.corp.example"));
    CHECK((read.providers[0].name == "openai" && read.providers[0].host == "api.openai.com"));
    CHECK(encode(decode_session_hosts("network \n")) == "network \n");
}

TEST_CASE("a list of a session in another form is refused")
{
    for (const char *line :
         {"github.com:443 p.yaml:3:1", "host github.com p.yaml:3:1", "host GitHub.com:443 p.yaml:3:1", "host github.com:443", "host :443 p",
          "grant https://a/ p", "provider openai api.openai.com", "hosts a:1 p", "network"})
        CHECK_MESSAGE(failure_of([&] { return decode_session_hosts(line).providers.size(); }).status ==
                          static_cast<int>(ExitStatus::internal),
                      std::string(line));
}

} // namespace session_hosts_test
