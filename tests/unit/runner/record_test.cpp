// What reaches the journal, seen by a journal of the test's own: runner/record.hpp
#include "runner/record.hpp"

#include "support/accounts.hpp"
#include "support/private_run.hpp"
#include "support/skipped.hpp"

#include <array>
#include <filesystem>
#include <sys/socket.h>
#include <sys/un.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace {

// The one entry that `act` makes, as it is sent (systemd.io/JOURNAL_NATIVE_PROTOCOL): NAME=VALUE lines.
std::string entry_of(const std::function<void()> &act)
{
    const std::string entry = in_private_run([&]() -> std::string {
        std::filesystem::create_directories("/run/systemd/journal");
        const int server = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string path = "/run/systemd/journal/socket";
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        if (::bind(server, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) return "set-up failed";
        act();
        std::array<char, 65'536> buffer{};
        const ssize_t length = ::recv(server, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (length <= 0) return "nothing was sent";
        std::string text(buffer.data(), static_cast<std::size_t>(length));
        if (::recv(server, buffer.data(), buffer.size(), MSG_DONTWAIT) >= 0) text += "and a second entry\n";
        return text;
    });
    return entry;
}

void check_entry(const std::function<void()> &act, const std::string &message, const std::string &priority)
{
    const std::string entry = entry_of(act);
    if (entry == no_private_run) return skipped("this place makes no mount namespaces");
    const std::string lines = "\n" + entry;
    CAPTURE(entry);
    CHECK(lines.find("\nMESSAGE=" + message + "\n") != std::string::npos);
    CHECK(lines.find("\nSYSLOG_IDENTIFIER=pi-agent-runner\n") != std::string::npos);
    CHECK(lines.find("\nPRIORITY=" + priority + "\n") != std::string::npos);
    CHECK(lines.find("and a second entry") == std::string::npos);
}

} // namespace

TEST_CASE("a session's start and end are recorded with who and where, and nothing of what was said" * doctest::skip(not_root()))
{
    const Account user{"alice", Uid(1000), Gid(1000), "/home/alice", {}};
    const Account agent{"pi-agent", Uid(990), Gid(990), "/", {}};
    check_entry([&] { record_started("ID", user, agent, "/srv/a", Program::agent); },
                "session ID started: user alice, agent account pi-agent, project /srv/a", "6");
    check_entry([&] { record_started("ID", user, agent, "/srv/a", Program::shell); },
                "session ID started: user alice, agent account pi-agent, project /srv/a, a shell in the agent's place", "6");
    check_entry([] { record_ended("ID", AgentEnded{false, 3}); }, "session ID ended: exit code 3", "6");
    check_entry([] { record_ended("ID", AgentEnded{true, 9}); }, "session ID ended: signal 9", "6");
}

TEST_CASE("no byte that a caller chose ends a line or begins another field" * doctest::skip(not_root()))
{
    const Account user{"alice", Uid(1000), Gid(1000), "/home/alice", {}};
    const std::string evil = "x\nPRIORITY=0\n\x1b[2J\xff";
    const std::string harmless = "x\\x0aPRIORITY=0\\x0a\\x1b[2J\\xff";
    check_entry([&] { record_started("ID", user, user, evil, Program::agent); },
                "session ID started: user alice, agent account alice, project " + harmless, "6");
    check_entry([&] { record_refused(evil, evil); }, "refused " + harmless + ": " + harmless, "4");
    check_entry([&] { record_problem("ID", evil); }, "session ID: " + harmless, "3");
}
