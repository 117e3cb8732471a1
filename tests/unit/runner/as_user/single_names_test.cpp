// Protected files with several names: runner/as_user/protected_paths.hpp
#include "runner/as_user/protected_paths.hpp"

#include "common/base/files.hpp"
#include "support/as_user.hpp"
#include "support/failure.hpp"
#include "support/shown_project.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <thread>

using namespace pi_agent;
using namespace pi_agent::test;

namespace single_names_test {

namespace {

struct stat facts_of(const std::string &path)
{
    struct stat facts {};
    REQUIRE(::lstat(path.c_str(), &facts) == 0);
    return facts;
}

void give_another_name(const std::string &path, const std::string &name)
{
    REQUIRE(::link(path.c_str(), name.c_str()) == 0);
}

std::vector<std::string> made_single(const ShownProject &project, const std::string &path)
{
    SingleNames names(project.tree);
    names.require(path);
    return names.notices();
}

} // namespace

TEST_CASE("a file with another name becomes one of its own and is otherwise as it was")
{
    const ShownProject project;
    project.directory.make("git");
    const std::string file = project.directory.write("git/config", "[core]\n");
    const std::array<timespec, 2> times{timespec{1'000'000, 5}, timespec{2'000'000, 7}};
    REQUIRE(::chmod(file.c_str(), 0640) == 0);
    const bool has_attributes = ::setxattr(file.c_str(), "user.note", "kept", 4, 0) == 0; // a tmpfs has none before Linux 6.6
    REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times.data(), 0) == 0);
    give_another_name(file, project.directory / "other");
    const std::vector<std::string> notices = made_single(project, "git/config");
    REQUIRE(notices.size() == 1);
    CHECK(has(notices[0], file));
    const struct stat now = facts_of(file);
    CHECK(now.st_nlink == 1);
    CHECK(now.st_ino != facts_of(project.directory / "other").st_ino);
    CHECK(facts_of(project.directory / "other").st_nlink == 1);
    CHECK((now.st_mode & 07777U) == 0640);
    CHECK(now.st_mtim.tv_sec == 2'000'000);
    CHECK(now.st_mtim.tv_nsec == 7);
    std::array<char, 8> value{};
    if (has_attributes) CHECK(::getxattr(file.c_str(), "user.note", value.data(), value.size()) == 4);
    project.directory.write("other", "[core] fsmonitor = x\n");
    std::ifstream text(file);
    CHECK(std::string(std::istreambuf_iterator<char>(text), {}) == "[core]\n");
    CHECK(std::distance(std::filesystem::directory_iterator(project.directory / "git"), {}) == 1);
    CHECK(made_single(project, "git/config").empty());
}

TEST_CASE("a copy acts as nobody, and what is renamed into its place meanwhile stays")
{
    const ShownProject project;
    const std::string file = project.directory.write("config", "x");
    REQUIRE(::chmod(file.c_str(), 06755) == 0);
    give_another_name(file, project.directory / "other");
    CHECK(made_single(project, "config").size() == 1);
    CHECK((facts_of(file).st_mode & 07777U) == 0755);

    const auto content = [&] {
        std::ifstream text(file);
        return std::string(std::istreambuf_iterator<char>(text), {});
    };
    std::atomic<bool> done{false};
    std::thread single([&] {
        while (!done)
            failure_of([&] { return made_single(project, "config").size(); }); // may find that it changes all the time
    });
    int lost = 0;
    for (int round = 0; round < 300; ++round) {
        const std::string text = std::to_string(round);
        const std::string next = project.directory.write("next" + text, text);
        give_another_name(next, project.directory / "too" + text);
        REQUIRE(::rename(next.c_str(), file.c_str()) == 0);
        bool is_there = false;
        for (int look = 0; !is_there && look < 10'000; ++look) {
            is_there = content() == text; // for a moment it is the copy of the one before
            if (!is_there) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        lost += is_there ? 0 : 1;
    }
    done = true;
    single.join();
    CHECK(lost == 0);
}

TEST_CASE("in a directory that is every file, at any depth, and no link is followed")
{
    const ShownProject project;
    project.directory.make("hooks/deep");
    project.directory.make("elsewhere");
    for (const char *name : {"hooks/one", "hooks/deep/two", "elsewhere/three"})
        give_another_name(project.directory.write(name, "x"), project.directory / std::string(name) + "-too");
    project.directory.link("hooks/link", "../elsewhere");
    project.directory.link("hooks/file", "../elsewhere/three");
    CHECK(made_single(project, "hooks").size() == 2); // the other name is single then, too
    CHECK(facts_of(project.directory / "hooks/deep/two").st_nlink == 1);
    CHECK(facts_of(project.directory / "elsewhere/three").st_nlink == 2);
    CHECK(made_single(project, "hooks/link").empty());
    CHECK(facts_of(project.directory / "elsewhere/three").st_nlink == 2);
}

TEST_CASE("what the user cannot change may have any number of names, and what cannot be replaced is named")
{
    const ShownProject project;
    REQUIRE(::chmod(project.directory.path().c_str(), 0777) == 0);
    const std::string fixed = project.directory.write("roots", "x");
    const std::string open = project.directory.write("open", "x");
    REQUIRE(::chmod(open.c_str(), 0666) == 0);
    give_another_name(fixed, project.directory / "roots-too");
    give_another_name(open, project.directory / "open-too");
    const auto require = [&](const std::string &path) {
        return failure_of([&] {
            return as_user([&](const AsUser &) {
                const UniqueFd top = UniqueFd::adopt(::open(project.directory.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
                const GuardedTree tree{top, project.directory.path()};
                SingleNames(tree).require(path);
                return std::string("done");
            });
        });
    };
    CHECK(require("roots").status == 0);
    const Caught refused = require("open");
    CHECK(refused.status == 78);
    CHECK(has(refused.text, open + " has 2 names (hard links)"));
    CHECK(has(refused.text, "belongs to somebody else"));

    project.directory.make("closed");
    const std::string own = project.directory.write("closed/own", "x");
    give_another_name(own, project.directory / "own-too");
    const Account user = user_account();
    REQUIRE(::chown(own.c_str(), user.uid.value(), user.gid.value()) == 0);
    CHECK(has(require("closed/own").text, "Permission denied"));
    std::filesystem::resize_file(own, 17UL << 20U);
    CHECK(has(require("closed/own").text, "too large to be copied"));
}

} // namespace single_names_test
