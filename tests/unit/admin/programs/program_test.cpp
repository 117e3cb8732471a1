// Running tools of the system, and handing programs to systemd: admin/programs/program.hpp
#include "admin/programs/program.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <map>

using namespace pi_agent;

namespace program_test {

TEST_CASE("input goes in and output comes back, larger than any pipe")
{
    const std::string input(300000, 'x');
    const auto result = run_program({"cat"}, input);
    CHECK(result.status == 0);
    CHECK(result.output == input);
}

TEST_CASE("a program that reads nothing of its input is not waited for")
{
    CHECK(run_program({"true"}, std::string(300000, 'x')).status == 0);
    CHECK(run_program({"false"}).status == 1);
}

TEST_CASE("stderr is part of the output, and a signal of the status")
{
    const auto result = run_program({"sh", "-c", "echo out; echo err >&2; kill -9 $$"});
    CHECK(result.output == "out\nerr\n");
    CHECK(result.status == 137);
}

TEST_CASE("the administrator's environment stays outside")
{
    ::setenv("SUDO_EDITOR", "x", 1); // NOLINT(concurrency-mt-unsafe)
    const auto result = run_program({"env"});
    CHECK(result.output == "PATH=/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin\nLC_ALL=C\n");
}

TEST_CASE("a program that is not installed is named")
{
    CHECK_THROWS_WITH_AS(static_cast<void>(run_program({"no-such-program"})),
                         doctest::Contains("the program no-such-program is not installed"), Failure);
    CHECK_THROWS_AS(require_program("no-such-program"), Failure);
}

TEST_CASE("output becomes one harmless line")
{
    CHECK(one_line("a:1: syntax error\n  x\x1b[2J\n") == "a:1: syntax error   x\\x1b[2J");
}

TEST_CASE("a program that becomes a user leads a session without a terminal, and is waited for as long as was said")
{
    const auto ids = run_program_apart({"sh", "-c", "echo $$; cut -d' ' -f6,7 /proc/$$/stat"}, 10).output;
    const auto pid = ids.substr(0, ids.find('\n'));
    CHECK(ids == pid + "\n" + pid + " 0\n"); // the leader of its session, and no terminal
    for (const auto *script : {"sleep 30", "sleep 30 & exit 0", "exec >&- 2>&-; sleep 30"}) {
        const auto begun = std::chrono::steady_clock::now();
        CHECK_THROWS_WITH_AS(static_cast<void>(run_program_apart({"sh", "-c", script}, 1)), "a program did not end in time", Failure);
        CHECK_MESSAGE(std::chrono::steady_clock::now() - begun < std::chrono::seconds(10), script);
    }
}

TEST_CASE("a program is handed to a shell word by word, with its own variables and an empty input")
{
    const std::vector<std::string> words = {"a b", "it's", "$HOME `id` \\ \"", "two\nlines", "", "-n", "%n"};
    std::vector<std::string> command = {"sh", "-c", "printf '<%s>' \"$@\"; env; cat", "sh"};
    command.insert(command.end(), words.begin(), words.end());
    std::string expected;
    for (const auto &word : words)
        expected += "<" + word + ">";
    const auto result = run_program({"sh"}, shell_script(command, {"LC_ALL=C", "PATH=/usr/bin:/bin"}));
    CHECK(result.status == 0);
    CHECK(result.output.compare(0, expected.size(), expected) == 0);
    CHECK(result.output.find("LC_ALL=C\n") != std::string::npos);
    CHECK(result.output.find("exec env") == std::string::npos); // of the input nothing is left to the program
    CHECK(run_program({"sh"}, shell_script({"sh", "-c", "exit 3"}, {"PATH=/usr/bin:/bin"})).status == 3);
}

TEST_CASE("the unit of a user's program ends with all that it holds")
{
    std::map<std::string, PropertyValue> properties;
    for (auto &property : program_unit_properties(Uid(1000), 10))
        properties.emplace(property.name, property.value);
    CHECK(std::get<std::string>(properties.at("Slice")) == "user-1000.slice");
    CHECK(std::get<std::string>(properties.at("KillMode")) == "control-group");
    CHECK(std::get<SignedNumber>(properties.at("KillSignal")).value == SIGKILL);
    CHECK(std::get<std::uint64_t>(properties.at("RuntimeMaxUSec")) == 15'000'000);
    CHECK(std::get<std::string>(properties.at("KeyringMode")) == "private");
}

} // namespace program_test
