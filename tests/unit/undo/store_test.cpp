// Where checkpoints are kept: whose place it is, which of them stay, and who keeps whom from what.
#include "undo/undo_place.hpp"

#include <doctest/doctest.h>

#include <atomic>

using namespace pi_agent;
using namespace pi_agent::test;

namespace undo_store_test {

TEST_CASE("a place that others can write to, or that is a link, is not used")
{
    const UndoPlace it;
    REQUIRE(chmod(it.beside("store").c_str(), 0770) == 0);
    CHECK_THROWS_WITH_AS(static_cast<void>(it.store()), doctest::Contains("belongs to you alone"), Failure);
    std::filesystem::rename(it.beside("store"), it.beside("elsewhere"));
    REQUIRE(chmod(it.beside("elsewhere").c_str(), 0700) == 0);
    std::filesystem::create_symlink("elsewhere", it.beside("store"));
    CHECK_THROWS_AS(static_cast<void>(it.store()), SystemFailure);
    std::filesystem::remove(it.beside("store"));
    CHECK_THROWS_AS(static_cast<void>(it.store()), SystemFailure);
}

TEST_CASE("ten are kept, for two weeks, in the quota: the oldest go, never the newest, and none that is open")
{
    const UndoPlace it;
    it.write("a", std::string(50'000, 'a'));
    const auto store = it.store();
    const auto count = [&] { return store.list().size(); };
    for (int index = 0; index < 12; ++index)
        it.begin();
    CHECK(count() == 12);
    store.prune(1UL << 30U, time_now());
    CHECK(count() == 10);
    const std::string newest = store.list().front().id;
    const Checkpoint held = std::move(store.list().back());
    {
        const Checkpoint unnamed = store.begin(it.head());
        store.prune(1UL << 30U, time_now());
        CHECK(unnamed.has("head"));
    }
    FileTime later = time_now();
    later += 15L * 24 * 60 * 60 * 1'000'000'000;
    store.prune(1UL << 30U, later);
    CHECK(count() == 2);
    CHECK(store.list().back().id == held.id);
    CHECK(store.list().front().id == newest);
    CHECK(std::distance(std::filesystem::directory_iterator(it.beside("store")), {}) == 3); // with the copies; the unnamed one is gone, too
    const auto copies = [&] { return std::distance(std::filesystem::directory_iterator(it.beside("store/copies")), {}); };
    CHECK(copies() == 1);
    it.write("a", std::string(60'000, 'b'));
    it.begin();
    CHECK(copies() == 2);
    {
        const UniqueFd making = store.open_copies(); // by another start
        store.prune(10, later);
        CHECK(count() == 3);
    }
    store.prune(80'000, time_now());
    CHECK(count() == 2); // the newest, and the held one
    store.prune(10, time_now());
    CHECK(store.list().front().id != newest);
    CHECK(copies() == 2); // of the newest, and of the held one
    CHECK(store.list().size() == 2);
}

TEST_CASE("whoever prunes makes no checkpoint a live one")
{
    const UndoPlace it;
    for (int index = 0; index < 9; ++index) {
        it.write("a" + std::to_string(index), std::string(1000, 'a'));
        it.begin();
    }
    std::atomic<bool> is_over = false;
    std::thread pruner([&] {
        while (!is_over)
            it.store().prune(1UL << 30U, time_now());
    });
    std::size_t live = 0;
    for (int round = 0; round < 300; ++round)
        for (const auto &one : it.store().list())
            live += one.is_live ? 1 : 0;
    is_over = true;
    pruner.join();
    CHECK(live == 0);
}

TEST_CASE("a checkpoint lives as long as its maker")
{
    const UndoPlace it;
    it.write("a", "a");
    auto made = std::optional(it.begin());
    CHECK(it.store().list().front().is_live);
    it.store().prune(0, time_now());
    CHECK(it.store().list().size() == 1);
    made.reset();
    CHECK_FALSE(it.store().list().front().is_live);
}

TEST_CASE("the copies of a checkpoint stay whose session has no id yet")
{
    const UndoPlace it;
    it.write("a", "kept");
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // what is as young as the start is not copied
    const auto store = it.store();
    const Checkpoint made = store.begin(it.head());
    WalkOrder walk;
    walk.start = made.head.start;
    CopyOrder copy;
    copy.size = copy.file = 1UL << 30U;
    const TreeLook before = take_checkpoint(store, made, it.root(), walk_tree(it.root(), walk), copy);
    it.store().drop_old(time_now());
    it.store().prune(1UL << 30U, time_now());
    REQUIRE(before.find("a")->kept == Kept::copied);
    const UniqueFd kept = made.open_copy(*before.find("a"));
    CHECK(read("/proc/self/fd/" + std::to_string(kept.get())) == "kept");
}

TEST_CASE("what is half removed, or damaged, hides no other checkpoint")
{
    const UndoPlace it;
    it.write("a", "a");
    const std::string half = it.begin().id;
    const Checkpoint whole = it.begin();
    for (const auto &one : std::filesystem::directory_iterator(it.beside("store")))
        if (one.path().filename().string().ends_with(half)) std::filesystem::remove(one.path() / "head");
    REQUIRE(it.store().list().size() == 1);
    CHECK(it.store().list().front().id == whole.id);
    it.store().prune(1UL << 30U, time_now());
    CHECK(std::distance(std::filesystem::directory_iterator(it.beside("store")), {}) == 2); // with the copies
    it.remove("a");
    CHECK(it.undo(whole).empty());
    CHECK(read(it.at("a")) == "a");
}

} // namespace undo_store_test
