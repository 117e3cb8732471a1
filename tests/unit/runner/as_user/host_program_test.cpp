// Programs of the host, run as a user with bounds: runner/as_user/git_identity.hpp
#include "runner/as_user/git_identity.hpp"

#include "support/as_user.hpp"

#include <filesystem>
#include <fstream>

using namespace pi_agent;
using namespace pi_agent::test;

namespace host_program_test {

namespace {

bool runs(const std::string &argument)
{
    for (const auto &entry : std::filesystem::directory_iterator("/proc")) {
        std::ifstream stream(entry.path() / "cmdline", std::ios::binary);
        const std::string line{std::istreambuf_iterator<char>(stream), {}};
        if (line.find("sleep") == 0 && line.find(argument) != std::string::npos) return true;
    }
    return false;
}

// "END STATUS|output|complaint"
std::string ran(const std::string &script, std::size_t limit = 100, int milliseconds = 4000, const std::string &program = "sh")
{
    return as_user([&](const AsUser &user) {
        const Deadline deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
        const ProgramOutput result = run_host_program(user, {program, "-c", script}, {"GIVEN=x y"}, limit, deadline);
        return std::to_string(static_cast<int>(result.end)) + " " + std::to_string(result.status) + "|" + result.output + "|" +
               result.complaint;
    });
}

} // namespace

TEST_CASE("output, complaint and status come back" * doctest::skip(not_root()))
{
    CHECK(ran("echo out; echo err >&2; exit 3") == "0 3|out\n|err\n");
    CHECK(ran("kill -9 $$") == "1 0||");
    CHECK(ran("true", 100, 4000, "no-such-program-here") == "2 127||");
}

TEST_CASE("it runs as the user, with nothing to read, a small environment and no other descriptors" * doctest::skip(not_root()))
{
    CHECK(ran("id -u; cat") == "0 0|" + std::to_string(user_account().uid.value()) + "\n|");
    CHECK(ran("/usr/bin/env | grep -v ^_= | grep -v ^PWD= | cut -d: -f1 | sort") == "0 0|GIVEN=x y\nPATH=/usr/local/bin\n|");
    CHECK(ran("ls /proc/$$/fd") == "0 0|0\n1\n2\n|");
}

TEST_CASE("one that does not end is given up at the deadline, and killed" * doctest::skip(not_root()))
{
    const Clock::time_point start = Clock::now();
    CHECK(ran("echo begun; exec sleep 59.7531", 100, 1500) == "3 0|begun\n|"); // time for a busy host to start a shell
    CHECK(Clock::now() < start + std::chrono::seconds(5));
    bool gone = false;
    while (!gone && Clock::now() < start + std::chrono::seconds(10))
        gone = !runs("59.7531");
    CHECK(gone);
}

TEST_CASE("one that writes too much is killed, and a long complaint is cut" * doctest::skip(not_root()))
{
    CHECK(ran("yes").substr(0, 7) == "4 0|y\ny");
    CHECK(ran("yes").size() == 4 + 100 + 1);
    CHECK(ran("head -c 100000 /dev/zero | tr '\\0' e >&2").size() == 4 + 1 + 500);
}

} // namespace host_program_test
