// What sessions do to a project, and that all of it comes back byte for byte: common/undo.
#include "common/base/text.hpp"

#include "undo/undo_place.hpp"

#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <iostream>
#include <random>
#include <sys/wait.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace undo_scenarios_test {

namespace {

struct Scenario {
    const char *name;
    void (*session)(const UndoPlace &it);
    std::size_t without = 0; // changes whose content was not kept
};

constexpr std::size_t large = 300'000;

// A project with some of everything.
void fill(const UndoPlace &it)
{
    it.write("README", "read me\n");
    it.write("src/a.c", "int a;\n");
    it.write("src/deep/er/b.c", "int b;\n");
    it.write("src/run", "#!/bin/sh\n");
    REQUIRE(chmod(it.at("src/run").c_str(), 0750) == 0);
    it.write(".env", "KEY=1\n");
    it.write("data.sqlite", std::string("SQLite\0x", 8));
    it.write("empty", "");
    it.write("large", std::string(large, 'x'));
    it.write("name\nwith \xff\x01 bytes", "odd");
    it.write("Case", "upper");
    it.write("node_modules/p/index.js", "made again");
    std::filesystem::create_directories(it.at("hollow/inner"));
    std::filesystem::create_symlink("src/a.c", it.at("link"));
    std::filesystem::create_symlink("/nowhere/at/all", it.at("dangling"));
    std::filesystem::create_hard_link(it.at("README"), it.at("README.too"));
    const int sparse = open(it.at("sparse").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    REQUIRE(ftruncate(sparse, off_t{10} << 30) == 0);
    REQUIRE(pwrite(sparse, "end", 3, off_t{5} << 30) == 3);
    close(sparse);
}

void append(const UndoPlace &it, const char *path, const char *text)
{
    std::ofstream(it.at(path), std::ios::binary | std::ios::app) << text;
}

const Scenario scenarios[] = {
    {"nothing", [](const UndoPlace & /*it*/) {}},
    {"an edit in place", [](const UndoPlace &it) { append(it, "src/a.c", "int more;\n"); }},
    {"an edit of the same size", [](const UndoPlace &it) { it.write("src/a.c", "int z;\n"); }},
    {"an edit that gives the time back",
     [](const UndoPlace &it) {
         const auto time = std::filesystem::last_write_time(it.at("src/a.c"));
         it.write("src/a.c", "int z;\n");
         std::filesystem::last_write_time(it.at("src/a.c"), time);
     }},
    {"an edit by a new file and a rename",
     [](const UndoPlace &it) {
         it.write("src/a.c~", "int new;\n");
         it.rename("src/a.c~", "src/a.c");
     }},
    {"emptied", [](const UndoPlace &it) { it.write("README", ""); }},
    {"an empty file filled", [](const UndoPlace &it) { it.write("empty", "full"); }},
    {"a created file", [](const UndoPlace &it) { it.write("new", "new"); }},
    {"a created tree", [](const UndoPlace &it) { it.write("new/tree/of/files", "new"), it.write("new/tree/other", "new"); }},
    {"an empty created directory", [](const UndoPlace &it) { std::filesystem::create_directories(it.at("new/inner")); }},
    {"a created link", [](const UndoPlace &it) { std::filesystem::create_symlink("/etc", it.at("etc")); }},
    {"a created pipe", [](const UndoPlace &it) { REQUIRE(mkfifo(it.at("pipe").c_str(), 0600) == 0); }},
    {"a deleted file", [](const UndoPlace &it) { it.remove("src/a.c"); }},
    {"a deleted ignored file", [](const UndoPlace &it) { it.remove(".env"), it.remove("data.sqlite"); }},
    {"a deleted tree", [](const UndoPlace &it) { it.remove("src"); }},
    {"deleted empty directories", [](const UndoPlace &it) { it.remove("hollow"); }},
    {"a deleted link", [](const UndoPlace &it) { it.remove("link"), it.remove("dangling"); }},
    {"deleted odd names", [](const UndoPlace &it) { it.remove("name\nwith \xff\x01 bytes"); }},
    {"a deleted sparse file", [](const UndoPlace &it) { it.remove("sparse"); }},
    {"a deleted large file", [](const UndoPlace &it) { it.remove("large"); }},
    {"a renamed file", [](const UndoPlace &it) { it.rename("src/a.c", "src/c.c"); }},
    {"a file moved to a new directory",
     [](const UndoPlace &it) {
         std::filesystem::create_directories(it.at("lib/new"));
         it.rename("src/a.c", "lib/new/a.c");
     }},
    {"a renamed and edited file", [](const UndoPlace &it) { it.rename("src/a.c", "src/c.c"), append(it, "src/c.c", "x"); }},
    {"a file renamed, and changed with its old size and time",
     [](const UndoPlace &it) {
         const auto time = std::filesystem::last_write_time(it.at("src/a.c"));
         it.rename("src/a.c", "src/c.c");
         it.write("src/c.c", "int z;\n");
         std::filesystem::last_write_time(it.at("src/c.c"), time);
     }},
    {"a renamed directory", [](const UndoPlace &it) { it.rename("src", "lib"); }},
    {"two files changed places",
     [](const UndoPlace &it) { it.rename("src/a.c", "t"), it.rename("src/deep/er/b.c", "src/a.c"), it.rename("t", "src/deep/er/b.c"); }},
    {"another case of letters", [](const UndoPlace &it) { it.rename("Case", "case"); }},
    {"what is not kept, moved", [](const UndoPlace &it) { it.rename("node_modules/p/index.js", "kept.js"); }},
    {"what is not kept, moved with its directory", [](const UndoPlace &it) { it.rename("node_modules", "modules"); }},
    {"a mode", [](const UndoPlace &it) { chmod(it.at("src/run").c_str(), 0644), chmod(it.at("README").c_str(), 0755); }},
    {"a set-id bit", [](const UndoPlace &it) { chmod(it.at("src/run").c_str(), 06755); }},
    {"a mode of a directory", [](const UndoPlace &it) { chmod(it.at("hollow").c_str(), 0700); }},
    {"a closed file", [](const UndoPlace &it) { chmod(it.at("README").c_str(), 0); }},
    {"another target", [](const UndoPlace &it) { it.remove("link"), std::filesystem::create_symlink("/etc/passwd", it.at("link")); }},
    {"a file in the place of a link", [](const UndoPlace &it) { it.remove("link"), it.write("link", "file"); }},
    {"a link in the place of a file",
     [](const UndoPlace &it) { it.remove("README"), std::filesystem::create_symlink("/etc/passwd", it.at("README")); }},
    {"a directory in the place of a file", [](const UndoPlace &it) { it.remove("README"), it.write("README/inner/file", "file"); }},
    {"a file in the place of a directory", [](const UndoPlace &it) { it.remove("src"), it.write("src", "file"); }},
    {"a link in the place of a directory",
     [](const UndoPlace &it) { it.remove("src"), std::filesystem::create_symlink("/etc", it.at("src")); }},
    {"a pipe in the place of a file",
     [](const UndoPlace &it) { it.remove("README"), REQUIRE(mkfifo(it.at("README").c_str(), 0600) == 0); }},
    {"one name of two", [](const UndoPlace &it) { append(it, "README.too", "both"); }},
    {"one name of two is gone", [](const UndoPlace &it) { it.remove("README"); }},
    {"a second name for a file", [](const UndoPlace &it) { std::filesystem::create_hard_link(it.at("src/a.c"), it.at("second")); }},
    {"a file that git stashed", [](const UndoPlace &it) { it.write("src/a.c", "int b;\n"), it.remove("src/deep"); }},
    {"times alone", [](const UndoPlace &it) { std::filesystem::last_write_time(it.at("src/a.c"), std::filesystem::file_time_type::clock::now()), it.write("x", "x"); }},
    {"a file that grows over its copy", [](const UndoPlace &it) { append(it, "large", std::string(large, 'y').c_str()); }},
    {"a file that is cut", [](const UndoPlace &it) { std::filesystem::resize_file(it.at("large"), 10); }},
    {"a hole filled", [](const UndoPlace &it) { std::filesystem::resize_file(it.at("sparse"), 3); }},
    {"a sparse file renamed", [](const UndoPlace &it) { it.rename("sparse", "holes"); }},
    {"a directory renamed, and a new one at its place", [](const UndoPlace &it) { it.rename("src", "lib"), it.write("src/a.c", "other"); }},
    {"a directory renamed into a new one", [](const UndoPlace &it) { it.write("top/x", "x"), it.rename("src", "top/src"); }},
    {"two directories changed places", [](const UndoPlace &it) { it.rename("src", "t"), it.rename("hollow", "src"), it.rename("t", "hollow"); }},
    {"a link renamed", [](const UndoPlace &it) { it.rename("link", "way"); }},
    {"a link to itself", [](const UndoPlace &it) { it.remove("link"), std::filesystem::create_symlink("link", it.at("link")); }},
    {"an empty directory replaced by a file", [](const UndoPlace &it) { it.remove("hollow"), it.write("hollow", ""); }},
    {"odd names made", [](const UndoPlace &it) { it.write("-rf", "x"), it.write(" ", "x"), it.write("\x1b]0;x\a", "x"), it.write(std::string(255, 'n'), "x"); }},
    {"odd names changed", [](const UndoPlace &it) { it.write("name\nwith \xff\x01 bytes", "other"); }},
    {"bytes that are no text", [](const UndoPlace &it) { it.write("data.sqlite", std::string("\0\xff\0", 3)); }},
    {"a file of the user's secrets", [](const UndoPlace &it) { it.write(".env", ""), it.write(".env.new", "KEY=1\n"); }},
    {"a file and its directory closed", [](const UndoPlace &it) { chmod(it.at("src/run").c_str(), 0400), chmod(it.at("src").c_str(), 0500); }},
    {"many files", [](const UndoPlace &it) { for (int index = 0; index < 300; ++index) it.write("many/" + std::to_string(index), "x"); }},
    {"a deep tree", [](const UndoPlace &it) { std::string path; for (int index = 0; index < 100; ++index) path += "d/"; it.write(path + "x", "x"); }},
    {"everything gone",
     [](const UndoPlace &it) {
         for (const char *path : {"README", "README.too", "src", ".env", "data.sqlite", "empty", "large", "name\nwith \xff\x01 bytes",
                                  "Case", "hollow", "link", "dangling", "sparse"})
             it.remove(path);
     }},
};

} // namespace

TEST_CASE("what a session did comes back, the second time nothing is left to do, and undoing the undo gives it again")
{
    for (const auto &scenario : scenarios) {
        CAPTURE(std::string(scenario.name));
        const UndoPlace it;
        fill(it);
        const auto before = it.whole();
        const Checkpoint checkpoint = it.begin();
        scenario.session(it);
        it.end(checkpoint);
        const auto left = it.whole();
        const auto plan = it.plan(checkpoint);
        CHECK(plan.conflicts.empty());
        CHECK(plan.without.empty());
        CHECK((left != before) == !plan.steps.empty());
        const Checkpoint kept = it.begin();
        const auto failures = it.undo(checkpoint);
        CHECK_MESSAGE(failures.empty(), (failures.empty() ? "" : failures.front()));
        CHECK(it.whole() == before);
        CHECK(it.changes(checkpoint).empty());
        it.end(kept);
        CHECK(it.undo(kept).empty());
        const auto again = it.whole();
        if (std::string_view(scenario.name) != "a created pipe" && std::string_view(scenario.name) != "a set-id bit" &&
            std::string_view(scenario.name) != "a closed file" && std::string_view(scenario.name) != "a pipe in the place of a file")
            CHECK(again == left); // pipes, set-id bits and what nobody could read are not made again
    }
}

TEST_CASE("the list says what happened, and nothing else")
{
    const UndoPlace it;
    fill(it);
    const Checkpoint checkpoint = it.begin();
    it.write("src/a.c", "other");
    it.write("new/file", "new");
    it.remove("empty");
    it.rename("Case", "case");
    REQUIRE(chmod(it.at("src/run").c_str(), 0700) == 0);
    it.write(".env", "KEY=1\n"); // the same bytes
    CHECK(it.list(checkpoint) == std::vector<std::string>{"renamed case from Case", "deleted empty", "created new", "created new/file",
                                                          "changed src/a.c", "mode src/run"});
}

TEST_CASE("a killed undo is finished by the next")
{
    const UndoPlace it;
    fill(it);
    const auto before = it.whole();
    const Checkpoint checkpoint = it.begin();
    it.remove("src");
    it.rename("Case", "case");
    it.write("new/a", "new");
    it.write("README", "changed");
    it.end(checkpoint);
    const auto all = it.plan(checkpoint).steps;
    for (std::size_t done = 0; done <= all.size(); ++done) {
        UndoPlan part;
        part.steps.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(done));
        static_cast<void>(take_back(part, checkpoint, it.root())); // in a directory that is not there yet, nothing can be put back
    }
    it.write(".pi-agent-undo-1", "half a file");
    it.undo(checkpoint);
    it.remove(".pi-agent-undo-1"); // of an inode that no file here has
    CHECK(it.whole() == before);
}

TEST_CASE("only what is named is taken back")
{
    const UndoPlace it;
    fill(it);
    const Checkpoint checkpoint = it.begin();
    it.write("src/a.c", "other");
    it.remove("src/deep");
    it.write("README", "other");
    it.write("srcs", "new");
    it.rename("Case", "case");
    it.end(checkpoint);
    CHECK(it.undo(checkpoint, {"src"}).empty());
    CHECK(it.list(checkpoint) ==
          std::vector<std::string>{"changed README", "changed README.too", "renamed case from Case", "created srcs"});
    CHECK(it.undo(checkpoint, {"Case"}).empty());
    CHECK(it.undo(checkpoint, {"README", "srcs"}).empty());
    CHECK(it.list(checkpoint) == std::vector<std::string>{"changed README.too"});
}

TEST_CASE("killed at random points, checkpoint and undo leave each file the old or the new one, and the next finishes")
{
    const char *given = std::getenv("PI_AGENT_SEED");
    const auto seed = given == nullptr ? static_cast<std::uint32_t>(time(nullptr)) : static_cast<std::uint32_t>(std::stoul(given));
    // A sample, unless everything is asked for, or a seed, which repeats what was seen.
    const char *part = std::getenv("PI_AGENT_SAMPLE");
    const int kills = part != nullptr && std::string_view(part) == "1" ? 200 : 20;
    std::cout << kills << " kills drawn with PI_AGENT_SEED=" << seed << '\n';
    std::mt19937 random(seed);
    const UndoPlace it;
    fill(it);
    for (int index = 0; index < 40; ++index)
        it.write("many/" + std::to_string(index), "before " + std::to_string(index));
    const auto before = it.whole();
    // In a child, killed after a part of the time that it takes whole; returns that time.
    const auto run = [&](const std::function<void()> &work, std::optional<std::chrono::microseconds> kill_after) {
        const auto begun = std::chrono::steady_clock::now();
        const pid_t child = fork();
        if (child == 0) {
            work();
            _exit(0);
        }
        if (kill_after) {
            std::this_thread::sleep_for(*kill_after);
            kill(child, SIGKILL);
        }
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        if (!kill_after) CHECK(status == 0);
        return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun);
    };
    const auto within = [&](std::chrono::microseconds whole) {
        return std::chrono::microseconds(std::uniform_int_distribution<std::int64_t>(0, whole.count() + whole.count() / 10)(random));
    };
    const auto take = [&] { static_cast<void>(it.begin()); };
    const auto taking = run(take, std::nullopt);
    int unfinished = 0;
    for (int count = 0; count < kills / 2; ++count) {
        run(take, within(taking));
        CHECK(it.whole() == before);
        CHECK_FALSE(it.store().list().empty());
        it.store().prune(1UL << 30U, time_now());
    }
    CHECK(std::distance(std::filesystem::directory_iterator(it.beside("store")), {}) <=
          11); // with the copies, and nothing that is half made
    const Checkpoint checkpoint = it.begin();
    const auto session = [&] {
        for (int index = 0; index < 40; ++index)
            it.write("many/" + std::to_string(index), "agent's");
        it.remove("src");
        it.write("new/file", "agent's");
        it.rename("Case", "case");
    };
    session();
    it.end(checkpoint);
    const auto undo = [&] { static_cast<void>(it.undo(checkpoint)); };
    auto undoing = run(undo, std::nullopt);
    CHECK(it.whole() == before);
    for (int count = 0; count < kills / 2; ++count) {
        session();
        it.end(checkpoint);
        const auto left = it.whole();
        const auto kill_after = within(undoing);
        run(undo, kill_after);
        const auto now = it.whole();
        for (const auto &[path, text] : now) {
            CAPTURE(path);
            if (path.find(".pi-agent-undo-") != std::string::npos || path == "src" || path.starts_with("src/deep")) continue;
            CHECK(((before.contains(path) && before.at(path) == text) || (left.contains(path) && left.at(path) == text)));
        }
        for (const auto &[path, text] : left)
            if (before.contains(path)) CHECK_MESSAGE(now.contains(path), path); // no file is missing for a moment
        unfinished += now == before ? 0 : 1;
        if (now == before) undoing = std::min(undoing, kill_after); // it takes no longer: the first may have waited for a processor
        undo();
        auto after = it.whole();
        std::erase_if(after, [](const auto &one) { return one.first.find(".pi-agent-undo-") != std::string::npos; });
        CHECK(after == before);
    }
    CHECK(unfinished > 0); // or nothing was killed in time
}

TEST_CASE("a file in a directory that is gone comes back alone")
{
    const UndoPlace it;
    fill(it);
    const Checkpoint checkpoint = it.begin();
    it.remove("src");
    it.end(checkpoint);
    CHECK(it.undo(checkpoint, {"src/deep/er/b.c"}).empty());
    CHECK(it.whole().contains("src/deep/er/b.c"));
    CHECK_FALSE(it.whole().contains("src/a.c"));
}

TEST_CASE("a checkpoint that was damaged keeps no later one from being made")
{
    const UndoPlace it;
    it.write("a", "a");
    const Checkpoint checkpoint = it.begin();
    REQUIRE(truncate(("/proc/self/fd/" + std::to_string(checkpoint.directory().get()) + "/before").c_str(), 20) == 0);
    it.write("a", "b");
    const Checkpoint next = it.begin();
    it.remove("a");
    it.end(next);
    CHECK(it.undo(next).empty());
    CHECK(it.whole().contains("a"));
}

} // namespace undo_scenarios_test
