// What is believed of docker's daemon: runner/root/method/sandbox.hpp
#include "runner/root/method/sandbox.hpp"

#include "common/base/error.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace pi_agent;

namespace docker_preflight_test {

namespace {

const std::string head = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n";

SandboxPolicy policy_of_docker()
{
    return {SandboxMethod::docker, "debian:12", {"p.yaml", 4, 10}, {"p.yaml", 3, 1}};
}

std::string failure_of(const std::string &config, const std::string &id = "sha256:" + std::string(64, 'a'))
{
    try {
        require_plain_image(nlohmann::json::parse(R"({"Id": ")" + id + R"(", "Config": )" + config + "}"), policy_of_docker());
    } catch (const Failure &failure) {
        return failure.what();
    }
    return "";
}

bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("an answer of docker's daemon is read whole, or not at all")
{
    CHECK(parse_docker_answer(head + R"({"a": 1})").body["a"] == 1);
    CHECK(parse_docker_answer("HTTP/1.1 404 Not Found\r\n\r\n{}").status == 404);
    for (const std::string &text :
         {std::string(), std::string("SSH-2.0-x\r\n\r\n{}"), std::string("HTTP/1.0 200 OK\r\n"), head, head + "[1]",
          head + "{\"a\":", std::string("HTTP/1.0  OK\r\n\r\n{}"), std::string("HTTP/1.0 500 Error\r\n\r\n{\"message\": \"no space\"}")})
        CHECK_THROWS_AS_MESSAGE(parse_docker_answer(text), Failure, text);
}

TEST_CASE("of docker's list only containers that do not run count, and a list that is not described is none")
{
    CHECK(parse_ended_containers(head + "[]").empty());
    CHECK(parse_ended_containers(head + R"([{"Names": ["/a"], "State": "created"}, {"Names": ["/b"], "State": "running"},
                                            {"Names": ["/c", "/d"], "State": "dead"}, {"Names": [], "State": "exited"}])") ==
          std::vector<std::string>{"/a", "/c", "/d"});
    for (const char *list : {"", "{}", "null", "[", "[1]", "[[]]", "[{}]", R"([{"Names": ["/a"]}])", R"([{"State": "created"}])",
                             R"([{"Names": "/a", "State": "created"}])", R"([{"Names": [1], "State": "created"}])",
                             R"([{"Names": ["/a"], "State": 1}])", R"([{"Names": ["/a"], "State": "created"}, 7])"})
        CHECK_THROWS_AS_MESSAGE(parse_ended_containers(head + list), Failure, list);
    CHECK_THROWS_AS(parse_ended_containers("HTTP/1.1 404 Not Found\r\n\r\n{}"), Failure);
    CHECK_THROWS_AS(parse_ended_containers("HTTP/1.1 500 Error\r\n\r\n[]"), Failure);
}

TEST_CASE("an image brings files and nothing else")
{
    CHECK(failure_of("null").empty());
    CHECK(failure_of(R"({"Env": null, "Volumes": null})").empty());
    CHECK(failure_of(R"({"Env": ["PATH=/usr/bin"], "Volumes": {}})").empty());
    CHECK(contains(failure_of(R"({"Env": ["PATH=/usr/bin", "LD_PRELOAD=/x.so"]})"),
                   "the image debian:12 of sandbox.image (p.yaml:4:10) sets the variable LD_PRELOAD"));
    CHECK(contains(failure_of(R"({"Env": [1]})"), "sets the variable"));
    CHECK(contains(failure_of(R"({"Volumes": {"/data": {}}})"), "declares volumes"));
    for (const auto *id : {"", "debian", "sha256:abc", "sha256:--privileged"})
        CHECK_MESSAGE(contains(failure_of("null", id), "no id"), id);
}

} // namespace docker_preflight_test
