// What the writer makes in the agent's home, sync after sync: runner/as_agent/writer.hpp
#include "support/writing.hpp"

using namespace pi_agent;
using namespace pi_agent::test;

namespace writer_test {

namespace {

// Times of change are settled only when they are older than this.
void let_settle()
{
    ::usleep(80'000);
}

} // namespace

TEST_CASE("files and directories arrive in the agent's directory, private to the agent" * doctest::skip(not_root()))
{
    const Agent agent;
    Listing host;
    host.document("settings.json", "{}");
    host.directory("skills");
    host.file("skills/a.md", std::string("x\0y", 3));
    host.file("new/deep/file", "made");
    host.file("empty", "");
    host.directory("bare");
    const Written written = write_as_agent(agent, host);
    CHECK(text_of(written.caught) == "0 ");
    CHECK(written.notices.empty());
    CHECK(content_of(agent / "skills/a.md") == std::string("x\0y", 3));
    CHECK(content_of(agent / "new/deep/file") == "made");
    CHECK(fs::is_empty(agent / "empty"));
    for (const std::string name : {"", "skills", "bare", "new/deep"})
        CHECK(mode_of(agent / name) == 0700);
    CHECK(mode_of(agent / "settings.json") == 0600);
    struct stat facts {};
    REQUIRE(::stat((agent / "skills/a.md").c_str(), &facts) == 0);
    CHECK(facts.st_uid == agent_account().uid.value());
    CHECK(facts.st_gid == agent_account().gid.value());
    CHECK(facts.st_mtim.tv_sec == 1'600'000'000);
    CHECK(facts.st_mtim.tv_nsec == 123'456'789);
    CHECK_FALSE(agent.has_leftovers());
}

TEST_CASE("of a mode only the owner's bits travel" * doctest::skip(not_root()))
{
    struct Row {
        mode_t host, inside;
    };
    const Agent agent;
    for (const Row &row :
         {Row{0644, 0600}, {0755, 0700}, {0777, 0700}, {0000, 0600}, {0400, 0600}, {04755, 0700}, {02711, 0700}, {01777, 0700}}) {
        CAPTURE(row.host);
        Listing host;
        host.file("f", "x", row.host);
        CHECK(text_of(write_as_agent(agent, host).caught) == "0 ");
        CHECK(mode_of(agent / "f") == row.inside);
    }
    Listing host;
    host.file("f", "x");
    const Answer every_bit = [](FdRef transfer, const std::vector<std::uint64_t> &numbers, const Listing &listing) {
        if (numbers.empty()) return false;
        auto [fd, content] = listing.open(numbers[0]);
        content.facts.mode = ~std::uint64_t{0};
        send_packet(transfer, encode(SyncMessage{SyncStep::contents, {}, {}, {}, {content}}), {fd.get()}, in_seconds(10));
        return true;
    };
    CHECK(text_of(write_as_agent(
                      agent, [&](FdRef transfer) { host.send(transfer); }, host, every_bit)
                      .caught) == "0 ");
    CHECK(mode_of(agent / "f") == 0700);
}

TEST_CASE("an unchanged file is compared once more and then not even asked for" * doctest::skip(not_root()))
{
    const Agent agent;
    Listing host;
    host.file("f", "one");
    host.file("g", "two");
    CHECK(write_as_agent(agent, host).asked == std::vector<std::uint64_t>{0, 1});
    const ino_t before = inode_of(open_path(agent / "f"));
    let_settle();
    CHECK(write_as_agent(agent, host).asked == std::vector<std::uint64_t>{0, 1});
    CHECK(inode_of(open_path(agent / "f")) == before);
    CHECK(write_as_agent(agent, host).asked.empty());
    CHECK(inode_of(open_path(agent / "f")) == before);
}

TEST_CASE("what changed on either side is replaced in one step" * doctest::skip(not_root()))
{
    const Agent agent;
    Listing host;
    host.file("f", "one");
    REQUIRE(text_of(write_as_agent(agent, host).caught) == "0 ");
    const UniqueFd old = open_path(agent / "f");
    Listing changed;
    changed.file("f", "two"); // of the same size and time
    REQUIRE(text_of(write_as_agent(agent, changed).caught) == "0 ");
    CHECK(content_of(agent / "f") == "two");
    CHECK(inode_of(open_path(agent / "f")) != inode_of(old));
    std::array<char, 8> buffer{};
    CHECK(::read(old.get(), buffer.data(), buffer.size()) == 3); // who had it open still reads the old one, whole
    CHECK(std::string(buffer.data(), 3) == "one");
    agent.write(".pi/agent/f", "TWO");
    REQUIRE(text_of(write_as_agent(agent, changed).caught) == "0 ");
    CHECK(content_of(agent / "f") == "two");
    fs::remove(agent / "f");
    REQUIRE(text_of(write_as_agent(agent, changed).caught) == "0 ");
    CHECK(content_of(agent / "f") == "two");
}

TEST_CASE("a seed is sown once, and again when the host's changes" * doctest::skip(not_root()))
{
    const Agent agent;
    WritingPlan plan = plan_with();
    plan.classes.set("seed", FileClass::seed);
    Listing host;
    host.file("seed", "first");
    REQUIRE(text_of(write_as_agent(agent, host, plan).caught) == "0 ");
    agent.write(".pi/agent/seed", "agent's");
    for (int start = 0; start < 3; ++start)
        CHECK(write_as_agent(agent, host, plan).asked.empty());
    CHECK(content_of(agent / "seed") == "agent's");
    Listing changed;
    changed.file("seed", "second");
    REQUIRE(text_of(write_as_agent(agent, changed, plan).caught) == "0 ");
    CHECK(content_of(agent / "seed") == "second");
}

TEST_CASE("what the agent has in a seed's place before the first sync stays until the host's changes" * doctest::skip(not_root()))
{
    const Agent agent;
    WritingPlan plan = plan_with();
    plan.classes.set("seed", FileClass::seed);
    agent.make(".pi/agent");
    agent.write(".pi/agent/seed", "agent's");
    Listing host;
    host.file("seed", "host's");
    for (int start = 0; start < 3; ++start)
        CHECK(write_as_agent(agent, host, plan).asked.empty());
    CHECK(content_of(agent / "seed") == "agent's");
    Listing changed;
    changed.file("seed", "newer");
    REQUIRE(text_of(write_as_agent(agent, changed, plan).caught) == "0 ");
    CHECK(content_of(agent / "seed") == "newer");
}

TEST_CASE("a large file arrives whole, and a hundred small ones" * doctest::skip(not_root()))
{
    const Agent agent;
    std::string bytes(20'000'003, '\0');
    for (std::size_t index = 0; index < bytes.size(); ++index)
        bytes[index] = static_cast<char>(index * 31 % 251);
    Listing host;
    host.file("large", bytes);
    host.file("edge", bytes.substr(0, 64 * 1024));
    host.file("over", bytes.substr(0, 64 * 1024 + 1));
    for (int number = 0; number < 100; ++number)
        host.file("small" + std::to_string(number), std::to_string(number));
    CHECK(text_of(write_as_agent(agent, host).caught) == "0 ");
    CHECK((content_of(agent / "large") == bytes));
    CHECK((content_of(agent / "edge") == bytes.substr(0, 64 * 1024)));
    CHECK((content_of(agent / "over") == bytes.substr(0, 64 * 1024 + 1)));
    for (int number = 0; number < 100; ++number)
        CHECK(content_of(agent / ("small" + std::to_string(number))) == std::to_string(number));
}

TEST_CASE("file and directory change places, in every class" * doctest::skip(not_root()))
{
    for (const auto file_class : {FileClass::mirror, FileClass::seed}) {
        CAPTURE(to_string(file_class));
        const Agent agent;
        WritingPlan plan = plan_with();
        for (const std::string name : {"a", "b"})
            plan.classes.set(name, file_class);
        Listing host;
        host.file("a", "x");
        host.directory("b");
        host.file("b/c", "x");
        REQUIRE(text_of(write_as_agent(agent, host, plan).caught) == "0 ");
        Listing swapped;
        swapped.directory("a");
        swapped.file("a/c", "y");
        swapped.file("b", "y");
        REQUIRE(text_of(write_as_agent(agent, swapped, plan).caught) == "0 ");
        CHECK(content_of(agent / "a/c") == "y");
        CHECK(content_of(agent / "b") == "y");
        REQUIRE(text_of(write_as_agent(agent, host, plan).caught) == "0 ");
        CHECK(content_of(agent / "a") == "x");
        CHECK(content_of(agent / "b/c") == "x");
        CHECK(agent.kept("a").empty());
        CHECK(agent.kept("b").empty());
        CHECK_FALSE(agent.has_leftovers());
    }
}

TEST_CASE("what the host has no longer goes, and the agent's own stays" * doctest::skip(not_root()))
{
    for (const auto file_class : {FileClass::mirror, FileClass::seed}) {
        CAPTURE(to_string(file_class));
        const Agent agent;
        WritingPlan plan = plan_with();
        for (const std::string name : {"d", "e", "f"})
            plan.classes.set(name, file_class);
        Listing host;
        for (const std::string name : {"d", "d/sub", "e", "e/sub"})
            host.directory(name);
        for (const std::string name : {"f", "d/f", "d/sub/f", "e/sub/f"})
            host.file(name, "x");
        REQUIRE(text_of(write_as_agent(agent, host, plan).caught) == "0 ");
        agent.write(".pi/agent/e/own", "agent's");
        agent.write(".pi/agent/other", "agent's");
        REQUIRE(text_of(write_as_agent(agent, Listing(), plan).caught) == "0 ");
        for (const std::string name : {"f", "d", "e/sub"})
            CHECK_FALSE_MESSAGE(fs::exists(agent / name), name);
        CHECK(content_of(agent / "e/own") == "agent's");
        CHECK(content_of(agent / "other") == "agent's");
        fs::remove(agent / "e/own");
        REQUIRE(text_of(write_as_agent(agent, Listing(), plan).caught) == "0 ");
        CHECK(fs::is_directory(agent / "e")); // it had become the agent's
    }
}

TEST_CASE("what the agent put at a path that is deleted on the host goes only where it was a file of ours" * doctest::skip(not_root()))
{
    const Agent agent;
    Listing host;
    host.file("file", "x");
    host.file("now_directory", "x");
    host.directory("now_file");
    REQUIRE(text_of(write_as_agent(agent, host).caught) == "0 ");
    agent.write(".pi/agent/file", "changed inside");
    fs::remove(agent / "now_directory");
    agent.make(".pi/agent/now_directory");
    fs::remove(agent / "now_file");
    agent.write(".pi/agent/now_file", "agent's");
    REQUIRE(text_of(write_as_agent(agent, Listing()).caught) == "0 ");
    CHECK_FALSE(fs::exists(agent / "file"));
    CHECK(fs::is_directory(agent / "now_directory"));
    CHECK(content_of(agent / "now_file") == "agent's");
}

TEST_CASE("what cannot be read on the host stays as it is, at and below that path" * doctest::skip(not_root()))
{
    const Agent agent;
    Listing host;
    for (const std::string name : {"d", "dx"})
        host.directory(name);
    for (const std::string name : {"f", "d/f", "dx/f"})
        host.file(name, "x");
    REQUIRE(text_of(write_as_agent(agent, host).caught) == "0 ");
    Listing closed;
    closed.unreadable("f");
    closed.unreadable("d");
    for (int start = 0; start < 2; ++start)
        REQUIRE(text_of(write_as_agent(agent, closed).caught) == "0 ");
    CHECK(content_of(agent / "f") == "x");
    CHECK(content_of(agent / "d/f") == "x");
    CHECK_FALSE(fs::exists(agent / "dx"));
    CHECK(write_as_agent(agent, host).asked.size() == 3); // the two to compare, the third anew
}

TEST_CASE("a class that changes is obeyed at the next sync" * doctest::skip(not_root()))
{
    const Agent agent;
    Listing host;
    host.directory("d");
    host.file("d/f", "x");
    REQUIRE(text_of(write_as_agent(agent, host).caught) == "0 ");
    WritingPlan plan = plan_with();
    plan.classes.set("d", FileClass::agent);
    REQUIRE(text_of(write_as_agent(agent, Listing(), plan).caught) == "0 "); // a reader with these classes lists nothing
    CHECK(content_of(agent / "d/f") == "x");
    REQUIRE(text_of(write_as_agent(agent, Listing()).caught) == "0 ");
    CHECK(content_of(agent / "d/f") == "x"); // the agent's from then on

    REQUIRE(text_of(write_as_agent(agent, host).caught) == "0 ");
    agent.write(".pi/agent/d/f", "changed inside");
    plan.classes.set("d", FileClass::never);
    REQUIRE(text_of(write_as_agent(agent, Listing(), plan).caught) == "0 ");
    CHECK_FALSE(fs::exists(agent / "d"));
}

TEST_CASE("a home that the agent cannot write to is a failure that says so" * doctest::skip(not_root()))
{
    const Agent agent;
    give(agent.home, user_account());
    set_mode(agent.home, 0755);
    const Written written = write_as_agent(agent, Listing());
    CHECK(written.caught.status == 71);
    CHECK(written.caught.text == "creating .pi: Permission denied");
}

TEST_CASE("what a killed sync left in the staging directory goes" * doctest::skip(not_root()))
{
    const Agent agent;
    agent.place.make("staging/d/e");
    agent.place.write("staging/1", "half a fi");
    for (const std::string name : {"staging/d/e", "staging/d", "staging/1"})
        give(agent.place / name, agent_account());
    Listing host;
    host.file("f", "x");
    CHECK(text_of(write_as_agent(agent, host).caught) == "0 ");
    CHECK(content_of(agent / "f") == "x");
    CHECK_FALSE(agent.has_leftovers());
}

} // namespace writer_test
