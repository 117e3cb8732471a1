// What others got wrong, and what an agent tries: common/undo.
#include "common/base/text.hpp"

#include "undo/undo_place.hpp"

#include <doctest/doctest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace undo_traps_test {

namespace {

std::vector<std::string> paths_of(const std::vector<TreeChange> &changes)
{
    std::vector<std::string> paths;
    for (const auto &change : changes)
        paths.push_back(change.path);
    return paths;
}

Kept kept_of(const Checkpoint &checkpoint, const std::string &path)
{
    const TreeLook before = checkpoint.before();
    const TreeEntry *entry = before.find(path);
    REQUIRE_MESSAGE(entry != nullptr, path);
    return entry->kept;
}

using Paths = std::vector<std::string>;

} // namespace

TEST_CASE("what the user made or changed after the session stays, unless it is named")
{
    const UndoPlace it;
    it.write("a", "a");
    it.write("b", "b");
    it.write("gone", "gone");
    const Checkpoint checkpoint = it.begin();
    it.write("a", "agent's");
    it.write("b", "agent's");
    it.write("made/by-agent", "agent's");
    it.remove("gone");
    it.end(checkpoint);
    it.write("a", "user's");
    it.write("own", "user's");
    it.write("made/own", "user's");
    it.write("gone", "user's");
    const auto plan = it.plan(checkpoint);
    CHECK(paths_of(plan.conflicts) == Paths{"a", "gone", "made/own", "own"});
    const auto failures = it.undo(checkpoint);
    CHECK(failures.size() == 1); // the directory has a file of the user's
    CHECK(it.whole().size() == 6);
    CHECK(read(it.at("a")) == "user's");
    CHECK(read(it.at("b")) == "b");
    CHECK(read(it.at("made/own")) == "user's");
    CHECK(read(it.at("gone")) == "user's");
    it.undo(checkpoint, {"."}); // not the file itself
    CHECK(read(it.at("a")) == "user's");
    CHECK(it.undo(checkpoint, {"a"}).empty());
    CHECK(read(it.at("a")) == "a");
}

TEST_CASE("what the user deleted after the session stays deleted")
{
    const UndoPlace it;
    it.write("a", "a");
    const Checkpoint checkpoint = it.begin();
    it.write("new", "agent's");
    it.end(checkpoint);
    it.remove("a");
    CHECK(paths_of(it.plan(checkpoint).conflicts) == Paths{"a"});
    it.undo(checkpoint);
    CHECK(it.whole().empty());
}

TEST_CASE("where nobody saw the end, all counts as the session's")
{
    const UndoPlace it;
    it.write("a", "a");
    const Checkpoint checkpoint = it.begin();
    it.write("a", "other");
    CHECK_FALSE(checkpoint.after());
    CHECK(paths_of(it.plan(checkpoint).steps) == Paths{"a"});
}

TEST_CASE("what changes between plan and undo stays")
{
    const UndoPlace it;
    it.write("a", "a");
    const Checkpoint checkpoint = it.begin();
    it.write("a", "agent's");
    it.write("new", "agent's");
    it.end(checkpoint);
    const auto plan = it.plan(checkpoint);
    it.write("a", "user's");
    it.write("new", "user's");
    CHECK(take_back(plan, checkpoint, it.root()).size() == 2);
    CHECK(read(it.at("a")) == "user's");
    CHECK(read(it.at("new")) == "user's");
}

TEST_CASE("nothing is restored or deleted through a link that came since")
{
    const UndoPlace it;
    it.write("d/kept", "inside");
    it.write("d/more", "inside");
    const Checkpoint checkpoint = it.begin();
    it.write("d/kept", "agent's");
    it.write("d/new", "agent's");
    it.end(checkpoint);
    const auto plan = it.plan(checkpoint);
    std::filesystem::create_directories(it.beside("other"));
    for (const char *name : {"kept", "new"})
        std::ofstream(it.beside("other/") + name) << "somebody's";
    it.rename("d", "moved");
    std::filesystem::create_symlink(it.beside("other"), it.at("d"));
    CHECK(take_back(plan, checkpoint, it.root()).size() == 2);
    CHECK(read(it.beside("other/kept")) == "somebody's");
    CHECK(read(it.beside("other/new")) == "somebody's");
}

TEST_CASE("a link is kept as a link, and nothing behind it is read")
{
    const UndoPlace it;
    std::ofstream(it.beside("secret")) << "secret";
    std::filesystem::create_symlink(it.beside("secret"), it.at("link"));
    std::filesystem::create_directories(it.beside("outside"));
    std::ofstream(it.beside("outside/file")) << "secret";
    std::filesystem::create_symlink(it.beside("outside"), it.at("way"));
    const Checkpoint checkpoint = it.begin();
    CHECK(checkpoint.before().entries.size() == 2);
    CHECK(std::filesystem::is_empty(it.beside("store/copies")));
}

TEST_CASE("pipes, sockets and devices are listed, and not opened")
{
    const UndoPlace it;
    REQUIRE(mkfifo(it.at("pipe").c_str(), 0600) == 0);
    const UniqueFd listening = UniqueFd::adopt(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{AF_UNIX, {}};
    it.at("socket").copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(bind(listening.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0); // NOLINT
    const Checkpoint checkpoint = it.begin();
    CHECK(kept_of(checkpoint, "pipe") == Kept::none);
    CHECK(kept_of(checkpoint, "socket") == Kept::none);
    it.remove("pipe");
    it.remove("socket");
    const auto plan = it.plan(checkpoint);
    CHECK(plan.steps.empty());
    CHECK(plan.without.size() == 2);
}

TEST_CASE("a file that came or changed after the start is not saved, and said so")
{
    const UndoPlace it;
    it.write("old", "old");
    std::this_thread::sleep_for(UndoPlace::tick);
    const auto store = it.store();
    Checkpoint made = store.begin(it.head());
    std::this_thread::sleep_for(UndoPlace::tick);
    it.write("old", "agent's"); // before the walk comes by
    it.write("new", "agent's");
    it.write("gone", "agent's");
    CopyOrder copy;
    copy.size = copy.file = 1000;
    WalkOrder walk;
    walk.start = made.head.start;
    take_checkpoint(store, made, it.root(), walk_tree(it.root(), walk), copy);
    store.name(made, random_id());
    CHECK(kept_of(made, "old") == Kept::young);
    it.remove("gone");
    it.end(made);
    const auto plan = it.plan(made);
    CHECK(plan.steps.empty()); // and nothing of it is deleted
    CHECK(paths_of(plan.without) == Paths{"new", "old"});
}

TEST_CASE("bounds of one file and of all hold, the smallest files come first")
{
    const UndoPlace it;
    it.write("small", "s");
    it.write("middle", std::string(20'000, 'm'));
    it.write("large", std::string(60'000, 'l'));
    it.write("huge", std::string(200'000, 'h'));
    CopyOrder copy;
    copy.size = 70'000;
    copy.file = 100'000;
    const Checkpoint checkpoint = it.begin(copy);
    CHECK(kept_of(checkpoint, "small") == Kept::copied);
    CHECK(kept_of(checkpoint, "middle") == Kept::copied);
    CHECK(kept_of(checkpoint, "large") == Kept::no_room);
    CHECK(kept_of(checkpoint, "huge") == Kept::too_large);
    it.remove("huge");
    it.remove("small");
    it.end(checkpoint);
    const auto plan = it.plan(checkpoint);
    CHECK(paths_of(plan.without) == Paths{"huge"});
    CHECK(paths_of(plan.steps) == Paths{"small"});
}

TEST_CASE("a walk that meets its bound names what it left out, and undo leaves that alone")
{
    const UndoPlace it;
    it.write("first/a", "a");
    for (int index = 0; index < 30; ++index)
        it.write("many/" + std::to_string(index), "m");
    WalkOrder walk;
    walk.first = "first";
    walk.entries = 10;
    const Checkpoint checkpoint = it.begin({}, walk);
    CHECK(kept_of(checkpoint, "first/a") == Kept::copied);
    CHECK(checkpoint.before().left_out == Paths{"many"});
    it.remove("first");
    it.write("many/new", "new");
    it.end(checkpoint);
    CHECK(paths_of(it.plan(checkpoint).steps) == Paths{"first", "first/a"});
}

TEST_CASE("what tools make again is listed, without its content")
{
    const UndoPlace it;
    it.write("web/node_modules/p/i.js", "x");
    it.write("target/CACHEDIR.TAG", "x");
    it.write("target/debug/app", "x");
    it.write("docs/target/page", "x"); // no cargo's
    const Checkpoint checkpoint = it.begin();
    CHECK(kept_of(checkpoint, "web/node_modules/p/i.js") == Kept::made_again);
    CHECK(kept_of(checkpoint, "target/debug/app") == Kept::made_again);
    CHECK(kept_of(checkpoint, "docs/target/page") == Kept::copied);
}

TEST_CASE("git's own files are taken back only where they are named, and objects never go")
{
    const UndoPlace it;
    it.write(".git/HEAD", "ref: refs/heads/main\n");
    it.write(".git/refs/heads/main", "1\n");
    it.write("a", "a");
    const Checkpoint checkpoint = it.begin();
    it.write(".git/refs/heads/main", "2\n");
    it.write(".git/refs/heads/new", "2\n");
    it.write(".git/objects/ab/cd", "object");
    it.write("a", "other");
    it.end(checkpoint);
    CHECK(it.plan(checkpoint).of_git.size() == 5);
    it.undo(checkpoint);
    CHECK(read(it.at("a")) == "a");
    CHECK(read(it.at(".git/refs/heads/main")) == "2\n");
    it.undo(checkpoint, {".git"});
    CHECK(read(it.at(".git/refs/heads/main")) == "1\n");
    CHECK_FALSE(std::filesystem::exists(it.at(".git/refs/heads/new")));
    CHECK(std::filesystem::exists(it.at(".git/objects/ab/cd")));
}

TEST_CASE("the product's own placeholders are nobody's change")
{
    const UndoPlace it;
    const Checkpoint checkpoint = it.begin();
    it.write(".envrc", std::string(placeholder_comment));
    it.write(".git/commondir", std::string(placeholder_commondir));
    std::filesystem::create_directories(it.at("hooks"));
    REQUIRE(chmod(it.at("hooks").c_str(), 01755) == 0);
    CHECK(it.list(checkpoint) == Paths{"created .git"});
}

TEST_CASE("a second checkpoint needs no other copy of what did not change, and an inode given to another file is another file")
{
    const UndoPlace it;
    it.write("a", "a");
    it.write("b", "b");
    const Checkpoint first = it.begin();
    it.remove("b");
    it.write("c", "c"); // perhaps of the same inode, and of the same size
    const Checkpoint second = it.begin();
    const TreeLook before = second.before();
    const auto inode_of = [](const UniqueFd &file) { return examine(file, "a copy").st_ino; };
    CHECK(inode_of(first.open_copy(*first.before().find("a"))) == inode_of(second.open_copy(*before.find("a"))));
    CHECK(read("/proc/self/fd/" + std::to_string(second.open_copy(*before.find("c")).get())) == "c");
}

TEST_CASE("a file system that has another number by now keeps no copy from being found")
{
    const UndoPlace it;
    it.write("a", "a");
    std::this_thread::sleep_for(UndoPlace::tick);
    const auto store = it.store();
    CheckpointHead head = it.head();
    ++head.device; // of a session before a restart of the host, by which an undo names what it keeps first
    const Checkpoint made = store.begin(head);
    take_checkpoint(store, made, it.root(), it.look(), {0, 0, 1000, 1000});
    CHECK(read("/proc/self/fd/" + std::to_string(made.open_copy(*made.before().find("a")).get())) == "a");
}

TEST_CASE("a copy that a lost write cut is not restored")
{
    const UndoPlace it;
    it.write("a", "whole");
    const Checkpoint checkpoint = it.begin();
    const auto copy = copy_name(checkpoint.head.device, *checkpoint.before().find("a"));
    REQUIRE(truncate(it.beside("store/copies/" + copy).c_str(), 0) == 0);
    it.write("a", "agent's");
    const auto failures = it.undo(checkpoint);
    REQUIRE(failures.size() == 1);
    CHECK(failures.front().find("is not whole") != std::string::npos);
    CHECK(read(it.at("a")) == "agent's");
}

TEST_CASE("a damaged manifest is refused, and so is a path that leads out")
{
    const UndoPlace it;
    it.write("a", "a");
    const Checkpoint checkpoint = it.begin();
    TreeLook manifest = checkpoint.before();
    for (const char *path : {"../a", "/etc/passwd", "b/../../a", ""}) {
        manifest.entries.front().path = path;
        it.store().write(checkpoint, "before", manifest);
        CHECK_THROWS_WITH_AS(static_cast<void>(checkpoint.before()), doctest::Contains("is damaged"), Failure);
    }
    const UniqueFd file = open_at(checkpoint.directory(), "before", O_WRONLY | O_TRUNC);
    REQUIRE(write(file.get(), "\1\2\3", 3) == 3);
    CHECK_THROWS_WITH_AS(static_cast<void>(checkpoint.before()), doctest::Contains("is damaged"), Failure);
}

TEST_CASE("a cancelled look says what it did not reach")
{
    const UndoPlace it;
    it.write("a", ""); // the smallest comes first, and needs no copy
    it.write("b", std::string(5000, 'b'));
    int calls = 0;
    CopyOrder copy;
    copy.size = copy.file = 1UL << 20U;
    copy.is_cancelled = [&] { return ++calls > 1; };
    const Checkpoint checkpoint = it.begin(copy);
    CHECK(kept_of(checkpoint, "a") == Kept::copied);
    CHECK(kept_of(checkpoint, "b") == Kept::unreached);
}

TEST_CASE("a file that its user cannot read, and a directory that is closed, are said")
{
    if (geteuid() == 0) return; // root reads everything
    const UndoPlace it;
    it.write("closed/a", "a");
    it.write("b", "b");
    REQUIRE(chmod(it.at("b").c_str(), 0) == 0);
    REQUIRE(chmod(it.at("closed").c_str(), 0) == 0);
    const Checkpoint checkpoint = it.begin();
    CHECK(kept_of(checkpoint, "b") == Kept::unreadable);
    CHECK(checkpoint.before().left_out == Paths{"closed"});
    chmod(it.at("closed").c_str(), 0700);
}

TEST_CASE("a full disk restores nothing by halves")
{
    const UndoPlace it;
    it.write("a", std::string(100'000, 'a'));
    const Checkpoint checkpoint = it.begin();
    it.write("a", "agent's");
    rlimit former{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &former) == 0);
    const rlimit small{1000, former.rlim_max};
    signal(SIGXFSZ, SIG_IGN); // NOLINT(cert-err33-c)
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    const auto failures = it.undo(checkpoint);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &former) == 0);
    CHECK(failures.size() == 1);
    CHECK(read(it.at("a")) == "agent's");
    CHECK(it.whole().size() == 1); // no temporary file either
    CHECK(it.undo(checkpoint).empty());
    CHECK(read(it.at("a")) == std::string(100'000, 'a'));
}

} // namespace undo_traps_test
