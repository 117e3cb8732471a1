// The writer against a reader that breaks the protocol, or ends too early: runner/as_agent/writer.hpp
#include "support/writing.hpp"

using namespace pi_agent;
using namespace pi_agent::test;

namespace writer_protocol_test {

namespace {

Written write_with(const Agent &agent, const Listing &listing, const Answer &answer)
{
    return write_as_agent(
        agent, [&](FdRef transfer) { listing.send(transfer); }, listing, answer);
}

// Sends the messages, raw, and then nothing more.
Written write_raw(const Agent &agent, const std::vector<std::string> &messages)
{
    const auto send = [&](FdRef transfer) {
        for (const auto &message : messages)
            send_packet(transfer, message, {}, in_seconds(10));
        throw SystemFailure(EPIPE, "the end"); // as if the writer had gone
    };
    return write_as_agent(agent, send, Listing(), answer_honestly);
}

std::string empty(SyncStep step)
{
    return encode(SyncMessage{step, {}, {}, {}, {}});
}

std::string document(const std::string &name)
{
    return encode(SyncMessage{SyncStep::document, name, "/host/" + name, {}, {}});
}

} // namespace

TEST_CASE("a path that is not plain is refused, and nothing is made" * doctest::skip(not_root()))
{
    const Agent agent;
    for (const std::string &path :
         {std::string("../x"), std::string("../../../outside/x"), std::string("a/../../x"), std::string("/etc/x"), agent.outside + "/x",
          std::string(), std::string("."), std::string(".."), std::string("a//b"), std::string("a/"), std::string("/"), std::string("./a"),
          std::string("a/."), std::string("a\0/../b", 7), std::string(5000, 'x')})
        for (const auto kind : {EntryKind::file, EntryKind::directory, EntryKind::unreadable}) {
            CAPTURE(path);
            Listing listing;
            listing.file("before", "x");
            listing.add({kind, path, {}});
            const Written written = write_as_agent(agent, listing);
            CHECK(text_of(written.caught) == "77 the reader of the config listed what it may not");
        }
    CHECK(agent.outside_is_unchanged());
    CHECK(fs::is_empty(agent.home));
}

TEST_CASE("a reader that ends at any step is a failure, and what was there stays" * doctest::skip(not_root()))
{
    const Agent agent;
    Listing host;
    for (int number = 0; number < 100; ++number)
        host.file("f" + std::to_string(number), "old");
    REQUIRE(text_of(write_as_agent(agent, host).caught) == "0 ");
    Listing fresh;
    fresh.document("settings.json", R"({"new":1})");
    for (int number = 0; number < 100; ++number)
        fresh.file("f" + std::to_string(number), "new");

    for (const std::vector<std::string> &messages :
         {std::vector<std::string>{}, {document("settings.json")}, {document("settings.json"), empty(SyncStep::listing)}}) {
        const Written written = write_raw(agent, messages);
        CHECK(text_of(written.caught) == "75 the process that reads your configuration ended early; try again");
        CHECK(content_of(agent / "f0") == "old");
        CHECK(content_of(agent / "settings.json") == "{}\n");
    }
    // Nor may it matter that nobody is there any more who could be asked.
    const Written unasked = write_as_agent(
        agent,
        [&](FdRef transfer) {
            fresh.send(transfer);
            throw SystemFailure(EPIPE, "the end");
        },
        fresh, answer_honestly);
    CHECK(text_of(unasked.caught) == "75 the process that reads your configuration ended early; try again");
    for (int answers = 0; answers < 3; ++answers) {
        CAPTURE(answers);
        int left = answers;
        const Answer answer = [&](FdRef transfer, const std::vector<std::uint64_t> &numbers, const Listing &listing) {
            return left-- > 0 && answer_honestly(transfer, numbers, listing);
        };
        const Written written = write_with(agent, fresh, answer);
        CHECK_MESSAGE((written.caught.status == 75) == (answers < 2), text_of(written.caught));
        for (int number = 0; number < 100; ++number) {
            const std::string content = content_of(agent / ("f" + std::to_string(number)));
            CHECK((content == "new" || content == "old"));
        }
    }
    REQUIRE(text_of(write_as_agent(agent, fresh).caught) == "0 ");
    for (int number = 0; number < 100; ++number)
        CHECK(content_of(agent / ("f" + std::to_string(number))) == "new");
    CHECK_FALSE(agent.has_leftovers());
}

TEST_CASE("messages out of their order, unknown ones and unknown documents are refused" * doctest::skip(not_root()))
{
    struct Row {
        std::string what;
        std::vector<std::string> messages;
        std::string refusal;
    };
    const std::vector<Row> rows = {
        {"contents before the end", {empty(SyncStep::contents)}, "broke the protocol"},
        {"a document that nobody merges", {document("models.json")}, "a document that nobody merges"},
        {"a document with a path", {document("../settings.json")}, "a document that nobody merges"},
        {"an unknown message", {empty(static_cast<SyncStep>(9))}, "an unknown message"},
        {"half a message", {document("settings.json").substr(0, 20)}, ""},
    };
    for (const auto &row : rows) {
        CAPTURE(row.what);
        const Agent agent;
        const Written written = write_raw(agent, row.messages);
        CHECK(written.caught.status == 77);
        CHECK_MESSAGE(has(written.caught.text, row.refusal), written.caught.text);
        CHECK(fs::is_empty(agent.home));
    }
}

TEST_CASE("a document that is listed as a file or a directory is refused" * doctest::skip(not_root()))
{
    for (const auto kind : {EntryKind::file, EntryKind::directory})
        for (const std::string name : {"settings.json", "auth.json", "mcp-auth.json"}) {
            const Agent agent;
            Listing listing;
            listing.add({kind, std::string(agent_directory) + "/" + name, {}});
            const Written written = write_as_agent(agent, listing);
            CHECK(written.caught.status == 77);
            CHECK(has(written.caught.text, "listed a document as"));
            CHECK(fs::is_empty(agent.home));
        }
}

TEST_CASE("contents that were not asked for are refused" * doctest::skip(not_root()))
{
    // What is wrong with the answer to a request for the file 0 of two.
    struct Row {
        std::string what;
        std::function<void(std::vector<Content> &, std::vector<int> &)> spoil;
        int status;
        std::string refusal;
    };
    const std::vector<Row> rows = {
        {"another number", [](auto &contents, auto &) { contents[0].number = 1; }, 77, "mixed up its files"},
        {"a number beyond all", [](auto &contents, auto &) { contents[0].number = ~std::uint64_t{0}; }, 77, "mixed up its files"},
        {"no descriptor", [](auto &, auto &fds) { fds.clear(); }, 77, "sent too few descriptors"},
        {"no contents", [](auto &contents, auto &) { contents.clear(); }, 77, "broke the protocol"},
        {"more than all", [](auto &contents, auto &) { contents.resize(5, contents[0]); }, 77, "broke the protocol"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.what);
        const Agent agent;
        Listing listing;
        listing.file("a", "x");
        listing.file("b", "x");
        const Answer answer = [&](FdRef transfer, const std::vector<std::uint64_t> &numbers, const Listing &host) {
            if (numbers.empty()) return false;
            auto [fd, content] = host.open(0);
            std::vector<Content> contents = {content};
            std::vector<int> fds = {fd.get()};
            row.spoil(contents, fds);
            send_packet(transfer, encode(SyncMessage{SyncStep::contents, {}, {}, {}, contents}), fds, in_seconds(10));
            return true;
        };
        const Written written = write_with(agent, listing, answer);
        CHECK(written.caught.status == row.status);
        CHECK_MESSAGE(has(written.caught.text, row.refusal), written.caught.text);
        CHECK_FALSE(fs::exists(agent / "a"));
        CHECK_FALSE(fs::exists(agent / "b"));
    }
}

TEST_CASE("a file that turned out to be unreadable makes nothing and takes nothing" * doctest::skip(not_root()))
{
    const Agent agent;
    Listing host;
    host.file("f", "old");
    REQUIRE(text_of(write_as_agent(agent, host).caught) == "0 ");
    Listing fresh;
    fresh.file("f", "new");
    fresh.file("g", "new");
    const Answer unreadable = [](FdRef transfer, const std::vector<std::uint64_t> &numbers, const Listing &) {
        if (numbers.empty()) return false;
        std::vector<Content> contents;
        for (const auto number : numbers)
            contents.push_back({number, false, {}});
        send_packet(transfer, encode(SyncMessage{SyncStep::contents, {}, {}, {}, contents}), {}, in_seconds(10));
        return true;
    };
    CHECK(text_of(write_with(agent, fresh, unreadable).caught) == "0 ");
    CHECK(content_of(agent / "f") == "old");
    CHECK_FALSE(fs::exists(agent / "g"));
    CHECK(text_of(write_as_agent(agent, fresh).caught) == "0 ");
    CHECK(content_of(agent / "g") == "new");
}

TEST_CASE("a descriptor of what is no file costs the sync, and nothing half made stays" * doctest::skip(not_root()))
{
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const UniqueFd pipe = UniqueFd::adopt(ends[0]);
    ::close(ends[1]);
    const UniqueFd directory = open_path("/", O_RDONLY | O_DIRECTORY);
    const UniqueFd path = open_path("/etc/passwd", O_PATH);
    for (const int hostile : {pipe.get(), directory.get(), path.get()}) {
        const Agent agent;
        Listing listing;
        listing.file("f", "12345");
        const Answer answer = [&](FdRef transfer, const std::vector<std::uint64_t> &numbers, const Listing &host) {
            if (numbers.empty()) return false;
            const Content content = host.open(0).second;
            send_packet(transfer, encode(SyncMessage{SyncStep::contents, {}, {}, {}, {content}}), {hostile}, in_seconds(10));
            return true;
        };
        CHECK(write_with(agent, listing, answer).caught.status == 71);
        CHECK_FALSE(fs::exists(agent / "f"));
        CHECK_FALSE(agent.has_leftovers());
    }
}

TEST_CASE("what a reader says of a file is not believed when it is copied" * doctest::skip(not_root()))
{
    const Agent agent;
    Listing listing;
    listing.file("f", "12345");
    const Answer lying = [](FdRef transfer, const std::vector<std::uint64_t> &numbers, const Listing &host) {
        if (numbers.empty()) return false;
        auto [fd, content] = host.open(0);
        content.facts.size = 2;
        content.facts.inode = 1;
        send_packet(transfer, encode(SyncMessage{SyncStep::contents, {}, {}, {}, {content}}), {fd.get()}, in_seconds(10));
        return true;
    };
    CHECK(text_of(write_with(agent, listing, lying).caught) == "0 ");
    CHECK(content_of(agent / "f") == "12345");
}

} // namespace writer_protocol_test
