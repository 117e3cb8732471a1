// The form of a session's id, the names made of it, and its directory from making to removal: runner/root/session/session_directory.hpp
#include "runner/root/session/session_directory.hpp"

#include "common/base/text.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/private_run.hpp"
#include "support/skipped.hpp"

#include <filesystem>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace session_directory_test {

TEST_CASE("an id is 32 lower-case hexadecimal digits, and no two are alike")
{
    std::set<std::string> seen;
    for (int count = 0; count < 1000; ++count) {
        const std::string id = make_session_id();
        CHECK(is_session_id(id));
        seen.insert(id);
    }
    CHECK(seen.size() == 1000);
    std::set<char> digits;
    for (const auto &id : seen)
        digits.insert(id.begin(), id.end());
    CHECK(digits.size() == 16);
}

TEST_CASE("nothing else is taken for an id")
{
    const std::string good = "0123456789abcdef0123456789abcdef";
    CHECK(is_session_id(good));
    for (const std::string &text :
         {std::string(), good.substr(1), good + "0", std::string("0123456789ABCDEF0123456789abcdef"),
          std::string("0123456789abcdeg0123456789abcdef"), std::string("../../../../../../../../../../..").append(1, 'a'),
          std::string("/123456789abcdef0123456789abcdef"), std::string("0123456789abcdef0123456789abcde\n"),
          std::string("0123456789abcdef0123456789abcde\0", 32), std::string(" 123456789abcdef0123456789abcdef"),
          std::string("%123456789abcdef0123456789abcdef")}) {
        CAPTURE(text);
        CHECK_FALSE(is_session_id(text));
    }
}

TEST_CASE("scope and service are named after the session, in the alphabet of properties")
{
    const std::string id = make_session_id();
    CHECK(scope_name(id) == "pi-agent-run-" + id + ".scope");
    CHECK(service_name(id) == "pi-agent-" + id + ".service");
    CHECK(is_property_safe(scope_name(id)));
    CHECK(is_property_safe(service_name(id)));
}

TEST_CASE("removing what is no session id is refused before anything is opened" * doctest::skip(not_root()))
{
    const AsRoot root = AsRoot::claim();
    for (const std::string text : {"", "..", ".", "../../../etc", "0123456789abcdef0123456789abcde"})
        CHECK(failure_of([&] { remove_session(root, text); }).status == 64);
}

namespace {

std::string mode_of(const std::string &path)
{
    struct stat facts {};
    if (::lstat(path.c_str(), &facts) != 0) return "none";
    return std::to_string(facts.st_uid) + " " + std::to_string(facts.st_mode & 07777U);
}

// Runs it in an empty /run and compares.
void check_in_private_run(const std::function<std::string(const AsRoot &)> &task, const std::string &expected)
{
    const std::string said = in_private_run([&] { return task(AsRoot::claim()); });
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    CHECK(said == expected);
}

} // namespace

TEST_CASE("a session's directories are root's own, on a file system of their own" * doctest::skip(not_root()))
{
    check_in_private_run(
        [](const AsRoot &root) {
            const std::string id = make_session_id();
            const auto session = SessionDirectory::create(root, id, Uid(1000));
            session.make_directory("root/a/b");
            session.make_link("root/link", "a/b");
            const std::string at = std::string(sessions_directory) + "/" + id;
            std::string text = session.path() == at ? "" : "another path: " + session.path() + " ";
            for (const auto &path : {std::string(sessions_directory), at, at + "/root", at + "/root/a/b"})
                text += mode_of(path) + ", ";
            struct stat own {};
            struct stat above {};
            ::stat(sessions_directory, &own);
            ::stat("/run", &above);
            return text + std::filesystem::read_symlink(at + "/root/link").string() + (own.st_dev != above.st_dev ? ", apart" : ", same");
        },
        "0 " + std::to_string(0700) + ", 0 " + std::to_string(0700) + ", 0 " + std::to_string(0755) + ", 0 " + std::to_string(0755) +
            ", a/b, apart");
}

TEST_CASE("a session without a disk quota is seen by the others of its user" * doctest::skip(not_root()))
{
    check_in_private_run(
        [](const AsRoot &root) {
            const std::string id = make_session_id();
            const auto own = SessionDirectory::create(root, id, Uid(1000));
            const std::string other_id = make_session_id();
            const auto other = SessionDirectory::create(root, other_id, Uid(1000));
            std::string text = std::to_string(has_session_without(root, held_link, Uid(1000), id)); // it waits
            for (const auto *session : {&own, &other})
                session->make_directory("home");
            text += std::to_string(has_session_without(root, held_link, Uid(1000), id));
            text += std::to_string(has_session_without(root, held_link, Uid(1001), id));
            other.make_link(held_link, "1");
            text += std::to_string(has_session_without(root, held_link, Uid(1000), id));
            return text + std::to_string(has_session_without(root, held_link, Uid(1000), other_id));
        },
        "01001");
}

TEST_CASE("an id is used once" * doctest::skip(not_root()))
{
    check_in_private_run(
        [](const AsRoot &root) {
            const std::string id = make_session_id();
            const auto session = SessionDirectory::create(root, id, Uid(1000));
            return std::to_string(errno_of([&] { return SessionDirectory::create(root, id, Uid(1000)); }));
        },
        std::to_string(EEXIST));
}

TEST_CASE("removing a session unmounts what is mounted in it and takes nothing of what is mounted" * doctest::skip(not_root()))
{
    check_in_private_run(
        [](const AsRoot &root) {
            const std::string id = make_session_id();
            const std::string other_id = make_session_id();
            std::filesystem::create_directories("/run/project/kept");
            const auto other = SessionDirectory::create(root, other_id, Uid(1000));
            other.make_directory("root");
            std::string at;
            {
                const auto session = SessionDirectory::create(root, id, Uid(1000));
                at = session.path();
                session.make_directory("project");
                session.make_directory("root/a");
                session.make_link("root/bin", "/run/project");
                for (int layer = 0; layer < 3; ++layer) // several on one point
                    if (::mount("/run/project", (at + "/project").c_str(), nullptr, MS_BIND, nullptr) != 0)
                        return std::string("set-up failed");
                if (::mount("inner", (at + "/project/kept").c_str(), "tmpfs", 0, nullptr) != 0) return std::string("set-up failed");
            }
            remove_session(root, id);
            remove_session(root, id); // what is gone is fine
            return mode_of(at) + (std::filesystem::exists("/run/project/kept") ? ", kept" : ", lost") +
                   (std::filesystem::exists(other.path() + "/root") ? ", other kept" : ", other lost");
        },
        "none, kept, other kept");
}

TEST_CASE("a directory with a file in it that is no mount point is not emptied through a mount that stays" * doctest::skip(not_root()))
{
    check_in_private_run(
        [](const AsRoot &root) {
            const std::string id = make_session_id();
            std::filesystem::create_directories("/run/project/kept");
            std::string at;
            {
                const auto session = SessionDirectory::create(root, id, Uid(1000));
                at = session.path();
                session.make_directory("project");
                for (int layer = 0; layer < 30; ++layer) // more than one removal takes
                    if (::mount("/run/project", (at + "/project").c_str(), nullptr, MS_BIND, nullptr) != 0)
                        return std::string("set-up failed");
            }
            const int refused = errno_of([&] {
                remove_session(root, id);
                return 0;
            });
            return std::to_string(refused) + (std::filesystem::exists("/run/project/kept") ? ", kept" : ", lost");
        },
        std::to_string(EXDEV) + ", kept");
}

TEST_CASE("only a directory that nobody holds, and that has the name of a session, is an orphan" * doctest::skip(not_root()))
{
    check_in_private_run(
        [](const AsRoot &root) {
            const std::string held = make_session_id();
            const std::string left = make_session_id();
            const auto session = SessionDirectory::create(root, held, Uid(1000));
            static_cast<void>(SessionDirectory::create(root, left, Uid(1000)));
            std::filesystem::create_directory(std::string(sessions_directory) + "/not-an-id");
            // One that counts sessions at this moment looks at it, and holds nothing.
            const UniqueFd counting = open_path(std::string(sessions_directory) + "/" + left, O_RDONLY | O_DIRECTORY);
            if (::flock(counting.get(), LOCK_SH | LOCK_NB) != 0) return std::string("it is held");
            const auto orphans = find_orphans(root);
            if (orphans.size() != 1) return std::to_string(orphans.size()) + " found";
            return std::string(orphans[0] == left ? "the one" : "another");
        },
        "the one");
}

TEST_CASE("sessions are counted by their user, and only those that somebody holds" * doctest::skip(not_root()))
{
    check_in_private_run(
        [](const AsRoot &root) {
            const auto first = SessionDirectory::create(root, make_session_id(), Uid(1000));
            const auto second = SessionDirectory::create(root, make_session_id(), Uid(1000));
            const auto other = SessionDirectory::create(root, make_session_id(), Uid(100));
            static_cast<void>(SessionDirectory::create(root, make_session_id(), Uid(1000)));
            const auto over = SessionDirectory::create(root, make_session_id(), Uid(1000));
            over.unlock();
            std::string text;
            for (const uid_t user : {1000U, 100U, 10U})
                text += std::to_string(count_sessions(root, Uid(user))) + " ";
            return text;
        },
        "2 1 0 ");
}

TEST_CASE("a session's directory says whose it is" * doctest::skip(not_root()))
{
    const std::string said = in_private_run([] {
        const AsRoot root = AsRoot::claim();
        const auto session = SessionDirectory::create(root, make_session_id(), Uid(1234));
        return std::to_string(session_user(session.fd())->value());
    });
    if (said == no_private_run) return skipped(said);
    CHECK(said == "1234");
}

} // namespace session_directory_test
