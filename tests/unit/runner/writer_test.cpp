// What the writer makes in the agent's home, against a hostile reader and against what the agent planted there: runner/writer.hpp
#include "runner/writer.hpp"

#include "runner/child.hpp"
#include "runner/sync_messages.hpp"
#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace pi_agent;
using namespace pi_agent::test;

namespace {

namespace fs = std::filesystem;

struct Message {
    SyncMessage header;
    std::optional<std::string> content;
};

Message settings(const std::optional<std::string> &text = std::nullopt)
{
    return {SyncMessage{SyncStep::settings, "", 0, 0, 0, 0}, text};
}

Message file(const std::string &path, const std::string &text, std::uint64_t mode = 0644, SyncStep step = SyncStep::file)
{
    return {SyncMessage{step, path, mode, 1'600'000'000, 123'456'789, text.size()}, text};
}

Message directory(const std::string &path)
{
    return {SyncMessage{SyncStep::directory, path, 0755, 0, 0, 0}, std::nullopt};
}

const Message end{SyncMessage{SyncStep::end, "", 0, 0, 0, 0}, std::nullopt};

std::string content_of(const std::string &path)
{
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

// The agent's home, and a directory of the agent outside it: only care, not file permissions, keeps the writer out of that.
struct Agent {
    Agent() : home(make_private(place, "home", agent_account())), outside(make_private(place, "outside", agent_account()))
    {
        place.write("outside/canary", "alive");
        give(outside + "/canary", agent_account());
    }
    [[nodiscard]] std::string operator/(const std::string &name) const { return home + "/.pi/agent/" + name; }
    // As the agent would: with everything above it.
    void make(const std::string &name) const
    {
        std::string path;
        for (const auto &part : fs::path("home/" + name)) {
            path += (path.empty() ? "" : "/") + part.string();
            if (!fs::exists(place / path)) give(place.make(path), agent_account());
        }
    }
    void link(const std::string &name, const std::string &target) const { give(place.link("home/" + name, target), agent_account()); }
    void write(const std::string &name, const std::string &text) const { give(place.write("home/" + name, text), agent_account()); }
    [[nodiscard]] bool outside_is_unchanged() const
    {
        return content_of(outside + "/canary") == "alive" && std::distance(fs::directory_iterator(outside), fs::directory_iterator()) == 1;
    }
    // Names that only the writer's own unfinished files have.
    [[nodiscard]] bool has_leftovers() const
    {
        for (const auto &entry : fs::recursive_directory_iterator(home))
            if (has(entry.path().filename(), ".pi-agent-new-")) return true;
        return false;
    }

    TemporaryDirectory place;
    std::string home;
    std::string outside;
};

// Runs the writer as the agent and takes the reader's place.
Caught write_as_agent(const Agent &agent, const std::vector<Message> &messages, const nlohmann::json &managed = nlohmann::json::object())
{
    const AsRoot root = AsRoot::claim();
    const UniqueFd home = open_path(agent.home, O_RDONLY | O_DIRECTORY);
    const TemporaryDirectory sources;
    auto [sending, receiving] = make_channel();
    Child writer(
        root, "writer", agent_account(), {home.get(), receiving.get()},
        [&, from = FdRef(receiving)](const AsUser &self, FdRef channel) { write_config(self, home, managed.dump(), from, channel); });
    receiving.reset();
    try {
        for (const auto &message : messages) {
            UniqueFd source;
            if (message.content) source = open_path(sources.write("source", *message.content));
            send_packet(sending, encode(message.header), source ? std::vector<int>{source.get()} : std::vector<int>{}, in_seconds(10));
            if (message.content) fs::remove(sources / "source"); // the descriptor is all that the writer has
        }
    } catch (const SystemFailure &) { // the writer has ended already; it says why below
    }
    sending.reset();
    return failure_of([&] { return writer.receive(); });
}

std::string text_of(const Caught &caught)
{
    return std::to_string(caught.status) + " " + caught.text;
}

mode_t mode_of(const std::string &path)
{
    struct stat facts {};
    REQUIRE(::lstat(path.c_str(), &facts) == 0);
    return facts.st_mode & 07777U;
}

} // namespace

TEST_CASE("files and directories arrive in the agent's directory, private to the agent" * doctest::skip(not_root()))
{
    const Agent agent;
    CHECK(text_of(write_as_agent(agent, {settings("{}"), directory("skills"), file("skills/a.md", std::string("x\0y", 3)),
                                         file("new/deep/file", "made"), file("empty", ""), directory("bare"), end})) == "0 ");
    CHECK(content_of(agent / "skills/a.md") == std::string("x\0y", 3));
    CHECK(content_of(agent / "new/deep/file") == "made");
    CHECK(fs::is_empty(agent / "empty"));
    CHECK(fs::is_directory(agent / "bare"));
    for (const std::string name : {"", "skills", "bare", "new/deep"})
        CHECK(mode_of(agent / name) == 0700);
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
        std::uint64_t host;
        mode_t inside;
    };
    const Agent agent;
    for (const Row &row : {Row{0644, 0600},
                           {0755, 0700},
                           {0777, 0700},
                           {0000, 0600},
                           {0400, 0600},
                           {04755, 0700},
                           {02711, 0700},
                           {01777, 0700},
                           {~std::uint64_t{0}, 0700}}) {
        CAPTURE(row.host);
        CHECK(text_of(write_as_agent(agent, {settings(), file("f" + std::to_string(row.host), "x", row.host), end})) == "0 ");
        CHECK(mode_of(agent / ("f" + std::to_string(row.host))) == row.inside);
    }
}

TEST_CASE("an unchanged file is left alone, a changed one is replaced in one step" * doctest::skip(not_root()))
{
    const Agent agent;
    REQUIRE(text_of(write_as_agent(agent, {settings(), file("f", "one"), end})) == "0 ");
    const UniqueFd old = open_path(agent / "f");
    REQUIRE(text_of(write_as_agent(agent, {settings(), file("f", "one"), end})) == "0 ");
    CHECK(inode_of(open_path(agent / "f")) == inode_of(old));
    REQUIRE(text_of(write_as_agent(agent, {settings(), file("f", "longer"), end})) == "0 ");
    CHECK(content_of(agent / "f") == "longer");
    CHECK(inode_of(open_path(agent / "f")) != inode_of(old));
    std::array<char, 8> buffer{};
    CHECK(::read(old.get(), buffer.data(), buffer.size()) == 3); // who had it open still reads the old one, whole
    Message newer = file("f", "LONGER");
    newer.header.modified_nanoseconds += 1;
    REQUIRE(text_of(write_as_agent(agent, {settings(), newer, end})) == "0 ");
    CHECK(content_of(agent / "f") == "LONGER");
}

TEST_CASE("a seed is sown once" * doctest::skip(not_root()))
{
    const Agent agent;
    REQUIRE(text_of(write_as_agent(agent, {settings(), file("auth.json", "first", 0600, SyncStep::seed), end})) == "0 ");
    CHECK(content_of(agent / "auth.json") == "first");
    REQUIRE(text_of(write_as_agent(agent, {settings(), file("auth.json", "second", 0600, SyncStep::seed), end})) == "0 ");
    CHECK(content_of(agent / "auth.json") == "first");
}

TEST_CASE("a large file arrives whole" * doctest::skip(not_root()))
{
    const Agent agent;
    std::string bytes(20'000'003, '\0');
    for (std::size_t index = 0; index < bytes.size(); ++index)
        bytes[index] = static_cast<char>(index * 31 % 251);
    CHECK(text_of(write_as_agent(agent, {settings(), file("large", bytes), end})) == "0 ");
    CHECK((content_of(agent / "large") == bytes));
}

TEST_CASE("file and directory change places" * doctest::skip(not_root()))
{
    const Agent agent;
    REQUIRE(text_of(write_as_agent(agent, {settings(), file("a", "x"), directory("b"), file("b/c", "x"), end})) == "0 ");
    REQUIRE(text_of(write_as_agent(agent, {settings(), directory("a"), file("a/c", "y"), file("b", "y"), end})) == "0 ");
    CHECK(content_of(agent / "a/c") == "y");
    CHECK(content_of(agent / "b") == "y");
    CHECK_FALSE(agent.has_leftovers());
}

TEST_CASE("whatever the agent planted is replaced and never followed" * doctest::skip(not_root()))
{
    struct Row {
        std::string what;
        std::function<void(const Agent &)> plant;
    };
    const std::vector<Row> rows = {
        {".pi is a link", [](const Agent &agent) { agent.link(".pi", agent.outside); }},
        {".pi is a relative link", [](const Agent &agent) { agent.link(".pi", "../outside"); }},
        {".pi is a file", [](const Agent &agent) { agent.write(".pi", "x"); }},
        {".pi/agent is a link", [](const Agent &agent) { agent.make(".pi"), agent.link(".pi/agent", agent.outside); }},
        {".pi/agent is a dangling link", [](const Agent &agent) { agent.make(".pi"), agent.link(".pi/agent", agent.outside + "/new"); }},
        {"a directory is a link", [](const Agent &agent) { agent.make(".pi/agent"), agent.link(".pi/agent/d", agent.outside); }},
        {"a file is a link",
         [](const Agent &agent) { agent.make(".pi/agent/d"), agent.link(".pi/agent/d/canary", agent.outside + "/canary"); }},
        {"a file is a dangling link",
         [](const Agent &agent) { agent.make(".pi/agent/d"), agent.link(".pi/agent/d/canary", agent.outside + "/new"); }},
        {"a file is a directory with a link in it",
         [](const Agent &agent) { agent.make(".pi/agent/d/canary/x"), agent.link(".pi/agent/d/canary/x/out", agent.outside); }},
        {"a file is a directory nobody may enter",
         [](const Agent &agent) {
             agent.make(".pi/agent/d/canary/x");
             set_mode(agent / "d/canary/x", 0000);
             set_mode(agent / "d/canary", 0555);
         }},
        {"a directory is a FIFO",
         [](const Agent &agent) {
             agent.make(".pi/agent");
             REQUIRE(::mkfifo((agent / "d").c_str(), 0666) == 0);
         }},
        {"a file is a FIFO",
         [](const Agent &agent) {
             agent.make(".pi/agent/d");
             REQUIRE(::mkfifo((agent / "d/canary").c_str(), 0666) == 0);
         }},
        {"a file is a hard link to one outside",
         [](const Agent &agent) {
             agent.make(".pi/agent/d");
             fs::create_hard_link(agent.outside + "/canary", agent / "d/canary");
         }},
        {"settings are a link",
         [](const Agent &agent) { agent.make(".pi/agent"), agent.link(".pi/agent/settings.json", agent.outside + "/canary"); }},
        {"settings are a dangling link",
         [](const Agent &agent) { agent.make(".pi/agent"), agent.link(".pi/agent/settings.json", agent.outside + "/new"); }},
        {"settings are a directory",
         [](const Agent &agent) { agent.make(".pi/agent/settings.json/d"), agent.link(".pi/agent/settings.json/out", agent.outside); }},
        {"settings are a FIFO",
         [](const Agent &agent) {
             agent.make(".pi/agent");
             REQUIRE(::mkfifo((agent / "settings.json").c_str(), 0666) == 0);
         }},
        {"settings are huge",
         [](const Agent &agent) { agent.make(".pi/agent"), agent.write(".pi/agent/settings.json", std::string(9'000'000, ' ')); }},
    };
    for (const auto &row : rows) {
        CAPTURE(row.what);
        const Agent agent;
        row.plant(agent);
        const Caught caught =
            write_as_agent(agent, {settings(R"({"a": 1})"), directory("d"), file("d/canary", "from the host"), end}, {{"b", 2}});
        CHECK_MESSAGE(caught.status == 0, caught.text);
        CHECK(content_of(agent / "d/canary") == "from the host");
        CHECK(content_of(agent / "settings.json") == "{\n  \"a\": 1,\n  \"b\": 2\n}\n");
        for (const std::string name : {"", "d", "d/canary", "settings.json"})
            CHECK_FALSE(fs::is_symlink(agent / name));
        CHECK_FALSE(fs::is_symlink(agent.home + "/.pi"));
        CHECK(agent.outside_is_unchanged());
        CHECK_FALSE(agent.has_leftovers());
    }
}

TEST_CASE("a path that is not plain is refused, and nothing outside is made" * doctest::skip(not_root()))
{
    const Agent agent;
    for (const std::string &path :
         {std::string("../x"), std::string("../../../outside/x"), std::string("a/../../x"), std::string("/etc/x"), agent.outside + "/x",
          std::string(), std::string("."), std::string(".."), std::string("a//b"), std::string("a/"), std::string("/"), std::string("./a"),
          std::string("a/."), std::string("a\0/../b", 7), std::string(5000, 'x')}) {
        CAPTURE(path);
        for (const auto &message : {file(path, "x"), directory(path), file(path, "x", 0600, SyncStep::seed)}) {
            const Caught caught = write_as_agent(agent, {settings(), message, end});
            CHECK(caught.status == 77);
            CHECK(caught.text == "the reader of the config broke the protocol");
        }
    }
    CHECK(agent.outside_is_unchanged());
    CHECK(std::distance(fs::directory_iterator(agent.home + "/.pi/agent"), fs::directory_iterator()) == 1); // settings.json
}

TEST_CASE("a reader that breaks the protocol or dies is a failure, never a success" * doctest::skip(not_root()))
{
    struct Row {
        std::string what;
        std::vector<Message> messages;
        int status;
        std::string refusal;
    };
    Message unknown = settings();
    unknown.header.step = static_cast<SyncStep>(9);
    unknown.header.path = "x";
    const std::vector<Row> rows = {
        {"nothing at all", {}, 71, "ended before it was done"},
        {"no end", {settings(), file("f", "x")}, 71, "ended before it was done"},
        {"only the end", {end}, 77, "broke the protocol"},
        {"a file before the settings", {file("f", "x"), settings(), end}, 77, "broke the protocol"},
        {"a directory before the settings", {directory("d"), settings(), end}, 77, "broke the protocol"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.what);
        const Agent agent;
        const Caught caught = write_as_agent(agent, row.messages);
        CHECK(caught.status == row.status);
        CHECK_MESSAGE(has(caught.text, row.refusal), caught.text);
    }
}

TEST_CASE("a file without a descriptor makes nothing" * doctest::skip(not_root()))
{
    const Agent agent;
    Message hollow = file("f", "x");
    hollow.content.reset();
    CHECK(text_of(write_as_agent(agent, {settings(), hollow, end})) == "0 ");
    CHECK_FALSE(fs::exists(agent / "f"));
}

TEST_CASE("managed settings win over the host's, at any depth, and stand alone without them" * doctest::skip(not_root()))
{
    const nlohmann::json managed = {{"model", "managed"}, {"deep", {{"a", 1}}}};
    const Agent agent;
    const auto written = [&] { return nlohmann::json::parse(content_of(agent / "settings.json")); };
    REQUIRE(text_of(write_as_agent(agent, {settings(R"({"model":"host","deep":{"a":0,"b":2},"own":[1]})"), end}, managed)) == "0 ");
    CHECK(written() == nlohmann::json::parse(R"({"model":"managed","deep":{"a":1,"b":2},"own":[1]})"));
    REQUIRE(text_of(write_as_agent(agent, {settings(), end}, managed)) == "0 ");
    CHECK(written() == managed);
    const ino_t before = inode_of(open_path(agent / "settings.json"));
    REQUIRE(text_of(write_as_agent(agent, {settings(), end}, managed)) == "0 ");
    CHECK(inode_of(open_path(agent / "settings.json")) == before); // nothing to change
    CHECK(mode_of(agent / "settings.json") == 0600);
}

TEST_CASE("settings that are wrong are refused with their place, and the agent's stay as they were" * doctest::skip(not_root()))
{
    struct Row {
        std::string what;
        std::string text;
        std::string refusal;
    };
    const std::vector<Row> rows = {
        {"no JSON", "{\n  \"a\": 1,\n}", "your settings.json:3:1: this is not valid JSON"},
        {"empty", "", "your settings.json:1:1: this is not valid JSON"},
        {"cut", "{\"a\": ", "your settings.json:1:"},
        {"a list", "[1]", "your settings.json:1:1: the top level must be an object"},
        {"null", "null", "the top level must be an object"},
        {"not UTF-8", "{\"a\": \"\xff\"}", "this is not valid JSON"},
        {"a number beyond all", "{\"a\": 1e999}", "your settings.json: it holds a number that is too large"},
        {"too deep", std::string(100'000, '['), "nested deeper than 128 levels"},
        {"too large", std::string(4'194'305, ' '), "your settings.json is larger than 4194304 bytes"},
    };
    const Agent agent;
    REQUIRE(text_of(write_as_agent(agent, {settings(R"({"kept": true})"), file("f", "kept"), end})) == "0 ");
    const std::string before = content_of(agent / "settings.json");
    for (const auto &row : rows) {
        CAPTURE(row.what);
        const Caught caught = write_as_agent(agent, {settings(row.text), file("f", "changed"), file("g", "new"), end});
        CHECK(caught.status == 78);
        CHECK_MESSAGE(has(caught.text, row.refusal), caught.text);
        CHECK(content_of(agent / "settings.json") == before);
        CHECK(content_of(agent / "f") == "kept");
        CHECK_FALSE(fs::exists(agent / "g"));
        CHECK_FALSE(agent.has_leftovers());
    }
}

TEST_CASE("a home that the agent cannot write to is a failure that says so" * doctest::skip(not_root()))
{
    const Agent agent;
    give(agent.home, user_account());
    set_mode(agent.home, 0755);
    const Caught caught = write_as_agent(agent, {settings(), end});
    CHECK(caught.status == 71);
    CHECK(caught.text == "creating .pi: Permission denied");
}
