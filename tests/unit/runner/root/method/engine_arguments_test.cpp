// From the runner to the first program of a container's unit: runner/root/method/engine_arguments.hpp
#include "runner/root/method/engine_arguments.hpp"

#include "runner/plan/sandbox_plan.hpp"
#include "runner/root/method/sandbox.hpp"
#include "support/failure.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace engine_arguments_test {

namespace {

UniqueFd file_with(const std::string &text)
{
    UniqueFd file = UniqueFd::adopt(memfd_create("engine", MFD_CLOEXEC));
    REQUIRE(pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    return file;
}

int status_for(const std::string &text)
{
    return failure_of([&] { return read_engine_arguments(file_with(text)); }).status;
}

} // namespace

TEST_CASE("an engine's arguments arrive as they were given")
{
    const std::vector<std::string> arguments = {"podman", "", "a,b \n", "--x=1"};
    CHECK(read_engine_arguments(write_arguments("the engine", arguments)) == arguments);
}

TEST_CASE("a file that ends in the middle of an argument, or has none, is refused")
{
    for (const std::string &text : {std::string(), std::string("docker"), std::string("docker\0run", 10)})
        CHECK_MESSAGE(status_for(text) == 77, text);
}

TEST_CASE("a host whose name no engine takes is told so")
{
    CHECK(host_name_argument("podman", "host-1.example") == "--hostname=host-1.example");
    for (const auto *name : {"", "a,b", "a b", "a\"b"}) {
        const Caught caught = failure_of([&] { return host_name_argument("docker", name); });
        CHECK_MESSAGE(caught.status == 69, name);
        CHECK(has(caught.text, "hostnamectl"));
    }
}

} // namespace engine_arguments_test
