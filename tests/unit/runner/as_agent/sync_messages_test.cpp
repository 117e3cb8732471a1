// The messages of the config sync, whole and broken: runner/as_agent/sync_messages.hpp
#include "runner/as_agent/sync_messages.hpp"

#include <doctest/doctest.h>
#include <limits>

using namespace pi_agent;

namespace sync_messages_test {

namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

SyncMessage listing(const std::vector<ListedEntry> &entries)
{
    return SyncMessage{SyncStep::listing, {}, {}, entries, {}};
}

std::vector<SyncMessage> examples()
{
    const HostFacts facts{most, 5, -1, std::numeric_limits<std::int64_t>::min(), 0777};
    return {
        SyncMessage{SyncStep::document, "settings.json", "/home/x/\xff\n", {}, {}},
        SyncMessage{SyncStep::document, "", "", {}, {}, true},
        listing({}),
        listing({{EntryKind::file, "a/b", facts}, {EntryKind::directory, "a", {}}, {EntryKind::unreadable, std::string(4096, 'x'), {}}}),
        listing({{EntryKind::link, "a/b/c/d", facts, "../c/../\xff"}, {EntryKind::link, "a/b/c/d", facts, std::string(4096, 'x')}}),
        SyncMessage{SyncStep::end_of_listing, {}, {}, {}, {}},
        SyncMessage{SyncStep::contents, {}, {}, {}, {Content{0, true, facts}, Content{most, false, {}}, Content{7, true, {}}}},
    };
}

bool is_same(const SyncMessage &one, const SyncMessage &other)
{
    bool same = one.step == other.step && one.name == other.name && one.place == other.place && one.by_agents == other.by_agents &&
                one.entries.size() == other.entries.size() && one.contents.size() == other.contents.size();
    for (std::size_t index = 0; same && index < one.entries.size(); ++index)
        same = one.entries[index].kind == other.entries[index].kind && one.entries[index].path == other.entries[index].path &&
               one.entries[index].facts == other.entries[index].facts && one.entries[index].target == other.entries[index].target;
    for (std::size_t index = 0; same && index < one.contents.size(); ++index)
        same = one.contents[index].number == other.contents[index].number &&
               one.contents[index].readable == other.contents[index].readable && one.contents[index].facts == other.contents[index].facts;
    return same;
}

} // namespace

TEST_CASE("each message comes back as it was")
{
    for (const auto &message : examples())
        CHECK(is_same(decode_fields<SyncMessage>(encode(message)), message));
}

TEST_CASE("a message that is cut off or goes on breaks the protocol")
{
    for (const auto &message : examples()) {
        const std::string bytes = encode(message);
        CAPTURE(bytes.size());
        for (std::size_t length = 0; length < bytes.size(); ++length)
            REQUIRE_THROWS_AS(decode_fields<SyncMessage>(std::string_view(bytes).substr(0, length)), ProtocolError);
        CHECK_THROWS_AS(decode_fields<SyncMessage>(bytes + std::string(1, '\0')), ProtocolError);
        CHECK_THROWS_AS(decode_fields<SyncMessage>(bytes + bytes), ProtocolError);
    }
}

TEST_CASE("unknown steps, kinds and impossible counts break the protocol")
{
    for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{5}, most})
        CHECK_THROWS_AS(decode_fields<SyncMessage>(Encoder().number(step).bytes()), ProtocolError);
    for (const std::uint64_t kind : {std::uint64_t{0}, std::uint64_t{5}, most})
        CHECK_THROWS_AS(decode_fields<SyncMessage>(Encoder().number(2).number(1).number(kind).text("x").bytes()), ProtocolError);
    CHECK_THROWS_AS(decode_fields<SyncMessage>(Encoder().number(4).number(1).number(0).number(2).bytes()), ProtocolError);
    for (const std::uint64_t step : {2U, 4U}) // nothing is made room for before it is there
        CHECK_THROWS_AS(decode_fields<SyncMessage>(Encoder().number(step).number(most).bytes()), ProtocolError);
}

TEST_CASE("only plain relative paths are listed")
{
    for (const std::string &path : {std::string(), std::string("."), std::string(".."), std::string("/"), std::string("/etc/x"),
                                    std::string("../x"), std::string("a/../b"), std::string("a/.."), std::string("a//b"), std::string("a/"),
                                    std::string("./a"), std::string("a/."), std::string("a\0b", 3), std::string(4097, 'x')}) {
        CAPTURE(path);
        CHECK_FALSE(is_plain_relative(path));
        for (const auto kind : {EntryKind::file, EntryKind::directory, EntryKind::unreadable})
            CHECK_THROWS_AS(decode_fields<SyncMessage>(encode(listing({{kind, path, {}}}))), ProtocolError);
    }
    for (const std::string &path : {std::string("a"), std::string("a/b/c"), std::string("..."), std::string("..a/.b"),
                                    std::string("\n/\xff"), std::string("-rf"), std::string(4096, 'x')})
        CHECK(is_plain_relative(path));
}

TEST_CASE("a link that leads out by its text is not listed")
{
    const std::string path = ".pi/agent/d/l";
    for (const std::string &target :
         {std::string(), std::string("/"), std::string("/etc/x"), std::string("../.."), std::string("../../x"),
          std::string("../../agent/x"), std::string("x/../../../agent"), std::string("a\0b", 3), std::string(4097, 'x')}) {
        CAPTURE(target);
        CHECK_FALSE(is_kept_link(path, target));
        CHECK_THROWS_AS(decode_fields<SyncMessage>(encode(listing({{EntryKind::link, path, {}, target}}))), ProtocolError);
    }
    for (const std::string target : {"x", "..", "../x", "a/../../b", ".", "./x/", "...", "\n"})
        CHECK_MESSAGE(is_kept_link(path, target), target);
}

TEST_CASE("what the writer wants comes back as it was, and no more than it may want")
{
    for (const std::vector<std::uint64_t> &numbers :
         {std::vector<std::uint64_t>{}, {0}, {5, 3, most}, std::vector<std::uint64_t>(wanted_limit, 1)}) {
        const std::string bytes = encode(WantedNumbers{numbers});
        CHECK(decode_fields<WantedNumbers>(bytes).numbers == numbers);
        for (std::size_t length = 0; length < bytes.size(); ++length)
            REQUIRE_THROWS_AS(decode_fields<WantedNumbers>(std::string_view(bytes).substr(0, length)), ProtocolError);
        CHECK_THROWS_AS(decode_fields<WantedNumbers>(bytes + "x"), ProtocolError);
    }
    CHECK_THROWS_AS(decode_fields<WantedNumbers>(encode(WantedNumbers{std::vector<std::uint64_t>(wanted_limit + 1, 1)})), ProtocolError);
    CHECK_THROWS_AS(decode_fields<WantedNumbers>(Encoder().number(most).bytes()), ProtocolError);
}

TEST_CASE("the longest listing that is sent fits into a packet")
{
    // The reader adds entries until their estimate is over the limit: the last one may be as long as a path can be.
    std::vector<ListedEntry> entries;
    for (std::size_t estimate = 0; estimate <= listing_bytes; estimate += 1 + 64)
        entries.push_back({EntryKind::file, "x", {}});
    entries.push_back({EntryKind::file, std::string(4096, 'x'), {}});
    CHECK(encode(listing(entries)).size() <= packet_limit);
}

} // namespace sync_messages_test
