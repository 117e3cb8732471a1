// Each start leaves one denied, or one started and one ended, whoever is left to write it: runner/root/session/session_directory.hpp
#include "runner/root/session/session_directory.hpp"

#include "support/failure.hpp"
#include "support/fake_journal.hpp"
#include "support/skipped.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <filesystem>
#include <sys/mount.h>
#include <sys/wait.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace session_record_test {

namespace {

const Account alice{"alice", Uid(1000), Gid(1000), "/home/alice", {}};
const Account agent{"pi-agent", Uid(990), Gid(990), "/", {}};

// What an entry says that tells these apart: event, session or not, exit, reason.
std::string told(const std::vector<std::string> &entries)
{
    std::string text;
    for (const auto &entry : entries) {
        const auto value = [&](const std::string &name) {
            const auto start = ("\n" + entry).find("\n" + name + "=");
            return start == std::string::npos ? ""
                                              : entry.substr(start + name.size() + 1, entry.find('\n', start) - start - name.size() - 1);
        };
        text += (text.empty() ? "" : "; ") + value("PI_AGENT_EVENT");
        for (const char *name :
             {"PI_AGENT_EXIT_CODE", "PI_AGENT_EXIT_SIGNAL", "PI_AGENT_MEMORY_PEAK", "PI_AGENT_STATUS", "PI_AGENT_REASON"})
            if (!value(name).empty()) text += " " + value(name);
        if (value("PI_AGENT_USER") != "alice" || value("SANDBOX_SELECT") != "systemd") text += " (of whom?)";
        if (value("PI_AGENT_EVENT") == "ended" && value("PI_AGENT_DURATION_USEC").empty()) text += " (how long?)";
    }
    return text;
}

struct Scene {
    FakeJournal &journal;
    const AsRoot &root;
    const std::string id;
    SessionRecord &record;
    std::optional<SessionDirectory> &session;
    void start() const { record.started(*session, agent, "/srv/a", Program::agent); }
};

void check_record(const std::string &wanted, const std::function<void(const Scene &)> &play)
{
    const std::string said = in_private_logs([&]() -> std::string {
        FakeJournal journal;
        const AsRoot root = AsRoot::claim();
        const std::string id = make_session_id();
        std::optional<SessionDirectory> session = SessionDirectory::create(root, id, alice.uid);
        SessionRecord record;
        record.concerns(alice);
        record.names(id);
        record.runs_in(SandboxMethod::systemd);
        play(Scene{journal, root, id, record, session});
        return told(journal.entries());
    });
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    CHECK(said == wanted);
}

void record_killed(const Scene &scene)
{
    if (!record_end_of_killed(scene.root, scene.id, in_seconds(10))) throw Failure(ExitStatus::internal, "somebody holds the note");
}

// A runner that begins a session and is killed.
void run_and_kill(const Scene &scene)
{
    const pid_t runner = ::fork();
    if (runner == 0) {
        SessionRecord record;
        record.concerns(alice);
        record.names(scene.id);
        record.runs_in(SandboxMethod::systemd);
        record.started(*scene.session, agent, "/srv/a", Program::agent);
        ::raise(SIGKILL);
    }
    ::waitpid(runner, nullptr, 0);
}

} // namespace

TEST_CASE("a session has one started and one ended" * doctest::skip(not_root()))
{
    check_record("started; ended 3 4096", [](const Scene &scene) {
        scene.start();
        scene.record.take_usage({4096, 1});
        scene.record.ended({false, 3});
        record_killed(scene);
    });
    check_record("started; ended 9 asked for", [](const Scene &scene) {
        scene.start();
        scene.record.because("asked for");
        scene.record.ended({true, 9});
    });
}

TEST_CASE("whose session runs can be read between its started and its ended" * doctest::skip(not_root()))
{
    check_record("started; ended 0", [](const Scene &scene) {
        const auto say = [&](const char *when) {
            const auto open = read_open_record(scene.session->fd());
            return std::string(when) +
                   (open ? ": " + open->subject.user + " " + open->subject.account + " " + open->subject.project : ": none");
        };
        if (say("before") != "before: none") throw Failure(ExitStatus::internal, say("before"));
        scene.start();
        if (say("during") != "during: alice pi-agent /srv/a") throw Failure(ExitStatus::internal, say("during"));
        if (read_open_record(scene.session->fd())->running_usec > 60'000'000) throw Failure(ExitStatus::internal, "the time is wrong");
        scene.record.ended({false, 0});
        if (say("after") != "after: none") throw Failure(ExitStatus::internal, say("after"));
    });
}

TEST_CASE("what fails before the agent starts is a refusal, and no session" * doctest::skip(not_root()))
{
    check_record("denied 77 no", [](const Scene &scene) {
        scene.record.failed(ExitStatus::denied, "no");
        record_killed(scene);
    });
}

TEST_CASE("what fails after it is that session's end, and later failures are no second one" * doctest::skip(not_root()))
{
    check_record("started; ended broken", [](const Scene &scene) {
        scene.start();
        scene.record.failed(ExitStatus::system_failure, "broken");
        record_killed(scene);
    });
    check_record("started; ended 0; problem late", [](const Scene &scene) {
        scene.start();
        scene.record.ended({false, 0});
        scene.record.failed(ExitStatus::system_failure, "late");
    });
}

TEST_CASE("the end of a session whose runner was killed is recorded by who comes next, once" * doctest::skip(not_root()))
{
    check_record("started; ended its runner did not record how: it was killed, or nothing took the entry", [](const Scene &scene) {
        run_and_kill(scene);
        record_killed(scene);
        record_killed(scene);
    });
}

TEST_CASE("an end whose note cannot be removed is recorded once" * doctest::skip(not_root()))
{
    check_record("started; ended 5", [](const Scene &scene) {
        scene.start();
        const std::string note = std::string(sessions_directory) + "/" + scene.id + "/record";
        REQUIRE(::mount(note.c_str(), note.c_str(), nullptr, MS_BIND, nullptr) == 0); // EBUSY for who removes it
        scene.record.ended({false, 5});
        REQUIRE(std::filesystem::exists(note));
        REQUIRE(!has_open_end(scene.session->fd()));
        REQUIRE(!read_open_record(scene.session->fd()));
        record_killed(scene);
        ::umount2(note.c_str(), MNT_DETACH);
    });
}

TEST_CASE("who cleans up waits for a runner that lives" * doctest::skip(not_root()))
{
    check_record("started; ended 5", [](const Scene &scene) {
        scene.start();
        const pid_t cleanup = ::fork();
        if (cleanup == 0) {
            record_killed(scene);
            ::_exit(0);
        }
        ::usleep(50'000);
        scene.record.ended({false, 5});
        ::waitpid(cleanup, nullptr, 0);
    });
}

TEST_CASE("a runner that lives and does not record is waited for no longer than asked" * doctest::skip(not_root()))
{
    check_record("started; ended 5", [](const Scene &scene) {
        scene.start();
        if (record_end_of_killed(scene.root, scene.id, Clock::now())) throw Failure(ExitStatus::internal, "recorded beside its runner");
        scene.record.ended({false, 5});
        record_killed(scene);
    });
}

TEST_CASE("a session without a directory has nothing to record" * doctest::skip(not_root()))
{
    check_record("", [](const Scene &scene) {
        scene.session.reset();
        remove_session(scene.root, scene.id);
        record_killed(scene);
    });
}

TEST_CASE("a start that can be recorded nowhere fails, and leaves no end to record" * doctest::skip(not_root()))
{
    check_record("", [](const Scene &scene) {
        std::filesystem::create_directory_symlink("/run", "/var/log/pi-agent");
        std::filesystem::rename("/run/systemd/journal/socket", "/run/systemd/journal/away");
        const Caught caught = failure_of([&] {
            scene.start();
            return 0;
        });
        std::filesystem::rename("/run/systemd/journal/away", "/run/systemd/journal/socket");
        if (caught.status != 71) scene.record.failed(ExitStatus::internal, caught.text);
        record_killed(scene);
    });
}

TEST_CASE("an end that can be recorded nowhere fails, and whoever cleans up tries once more" * doctest::skip(not_root()))
{
    check_record("started; ended its runner did not record how: it was killed, or nothing took the entry", [](const Scene &scene) {
        scene.start();
        std::filesystem::create_directory_symlink("/run", "/var/log/pi-agent");
        std::filesystem::rename("/run/systemd/journal/socket", "/run/systemd/journal/away");
        const Caught caught = failure_of([&] {
            scene.record.ended({false, 0});
            return 0;
        });
        std::filesystem::rename("/run/systemd/journal/away", "/run/systemd/journal/socket");
        if (caught.status != 71) scene.record.failed(ExitStatus::internal, caught.text);
        record_killed(scene);
    });
}

} // namespace session_record_test
