// Removing temporary directories on disk, by whom and in what order: runner/root/confined/session_end.hpp
#include "runner/root/confined/session_end.hpp"

#include "runner/root/session/session_directory.hpp"
#include "support/accounts.hpp"
#include "support/failure.hpp"
#include "support/private_run.hpp"
#include "support/skipped.hpp"

#include <fcntl.h>
#include <fstream>
#include <sys/file.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace scratch_removal_test {

namespace {

namespace fs = std::filesystem;

const std::string parent = "/run/state/sessions";

// A session's directories on disk, with something of the agent's in them when `filled`.
std::string make_orphan(bool filled)
{
    const Account agent = agent_account();
    const std::string id = make_session_id();
    const std::string top = parent + "/" + id;
    const std::string tmp = top + "/tmp";
    fs::create_directories(top + "/var-tmp");
    fs::create_directories(filled ? tmp + "/a/b" : tmp);
    if (filled) std::ofstream(tmp + "/a/b/file") << "x";
    for (const auto &entry : fs::recursive_directory_iterator(top))
        give(entry.path(), agent);
    set_mode(top, 0711);
    return id;
}

// `task` in a /run of its own, which has an empty state directory.
void in_place(const std::function<std::string(const AsRoot &root)> &task, const std::string &expected)
{
    const std::string said = in_private_run([&] {
        fs::create_directories(parent);
        const AsRoot root = AsRoot::claim();
        return task(root);
    });
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    CHECK(said == expected);
}

std::string number_left()
{
    return std::to_string(std::distance(fs::directory_iterator(parent), fs::directory_iterator()));
}

} // namespace

TEST_CASE("empty, filled, half made or gone: afterwards there is none, and a second time is fine" * doctest::skip(not_root()))
{
    in_place(
        [](const AsRoot &root) {
            const std::string half = make_session_id();
            fs::create_directories(parent + "/" + half + "/tmp");
            for (const auto &id : {make_orphan(false), make_orphan(true), half, make_session_id()})
                for (int time = 0; time < 2; ++time)
                    remove_scratch(root, parent + "/" + id, in_seconds(5));
            return number_left();
        },
        "0");
}

TEST_CASE("what a link leads to is kept, also what the agent could write" * doctest::skip(not_root()))
{
    in_place(
        [](const AsRoot &root) {
            const std::string id = make_orphan(true);
            fs::create_directory("/run/trap");
            std::ofstream("/run/trap/canary") << "x";
            give("/run/trap", agent_account());
            give("/run/trap/canary", agent_account());
            fs::create_symlink("/run/trap", parent + "/" + id + "/tmp/link");
            remove_scratch(root, parent + "/" + id, in_seconds(5));
            return number_left() + (fs::exists("/run/trap/canary") ? " kept" : " lost");
        },
        "0 kept");
}

TEST_CASE("root itself removes nothing that is not empty" * doctest::skip(not_root()))
{
    in_place(
        [](const AsRoot &root) {
            const std::string id = make_session_id();
            fs::create_directories(parent + "/" + id + "/tmp/of-root");
            const Caught caught = failure_of([&] { remove_scratch(root, parent + "/" + id, in_seconds(5)); });
            return number_left() + " " + caught.text;
        },
        "1 a session's temporary directory holds something of root's");
}

TEST_CASE("nobody waits beyond the deadline, and what is left is found again" * doctest::skip(not_root()))
{
    in_place(
        [](const AsRoot &root) {
            const std::string id = make_orphan(true);
            for (int number = 0; number < 5000; ++number) // more than is removed before the deadline is looked at
                fs::create_directory(parent + "/" + id + "/tmp/a/" + std::to_string(number));
            const Caught caught = failure_of([&] { remove_scratch(root, parent + "/" + id, Clock::now()); });
            remove_scratch(root, parent + "/" + id, in_seconds(60)); // with sanitizers, on a busy host
            return number_left() + (has(caught.text, "the next sweep goes on") ? " told" : caught.text);
        },
        "0 told");
}

TEST_CASE("a path that is no session's is refused" * doctest::skip(not_root()))
{
    in_place(
        [](const AsRoot &root) {
            std::string statuses;
            for (const std::string path : {"", "/run/state", "/run/state/sessions/..", "/run/state/sessions/x"})
                statuses += std::to_string(failure_of([&] { remove_scratch(root, path, in_seconds(1)); }).status) + " ";
            return statuses;
        },
        "70 70 70 70 ");
}

TEST_CASE("a sweep takes what has no session, and neither what has one nor what somebody else removes" * doctest::skip(not_root()))
{
    in_place(
        [](const AsRoot &root) {
            const std::string living = make_orphan(true);
            const SessionDirectory session = SessionDirectory::create(root, living, Uid(1000));
            const std::string busy = make_orphan(true);
            const UniqueFd lock = UniqueFd::adopt(::open((parent + "/" + busy).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            if (::flock(lock.get(), LOCK_EX) != 0) return std::string("locking failed");
            make_orphan(true);
            make_orphan(false);
            fs::create_directory(parent + "/something-else");
            ScratchSweep sweep(root, "/run/state");
            sweep.finish();
            const bool kept = fs::exists(parent + "/" + living + "/tmp/a/b/file") && fs::exists(parent + "/" + busy + "/tmp/a/b/file") &&
                              fs::exists(parent + "/something-else");
            return number_left() + (kept ? " kept" : " lost");
        },
        "3 kept");
}

TEST_CASE("a sweep without a state directory harms no launch" * doctest::skip(not_root()))
{
    in_place(
        [](const AsRoot &root) {
            ScratchSweep sweep(root, "/run/none");
            sweep.finish();
            return std::string("fine");
        },
        "fine");
}

} // namespace scratch_removal_test
