// The log of the config sync, whole and cut off: runner/as_agent/writer.hpp
#include "runner/as_agent/writer.hpp"

#include "common/base/channel.hpp"
#include "common/base/files.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <map>
#include <tuple>

using namespace pi_agent;
using namespace pi_agent::test;

namespace manifest_test {

namespace {

namespace fs = std::filesystem;

// A log and its spare as files.
struct Log {
    Log() : log(open_path(place / "log", O_RDWR | O_CREAT)), spare(open_path(place / "spare", O_RDWR | O_CREAT)) {}
    [[nodiscard]] Manifest load() const { return Manifest(log, spare); }
    [[nodiscard]] std::string bytes() const
    {
        std::string text(fs::file_size(place / "log"), '\0');
        REQUIRE(::pread(log.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
        return text;
    }
    void write(const std::string &text) const
    {
        REQUIRE(::ftruncate(log.get(), 0) == 0);
        REQUIRE(::pwrite(log.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
        REQUIRE(::lseek(log.get(), 0, SEEK_SET) == 0);
    }

    TemporaryDirectory place;
    UniqueFd log;
    UniqueFd spare;
};

ManifestEntry entry_of(std::uint64_t number, bool is_directory = false)
{
    return ManifestEntry{is_directory, HostFacts{number, number + 1, -5, static_cast<std::int64_t>(number) + 3, 0640},
                         InsideFacts{number + 4, number + 5, -6}, static_cast<std::int64_t>(number) + 7, false};
}

// All that a manifest knows, as text that tests can compare.
std::map<std::string, std::string> content_of(Manifest &manifest, const std::vector<std::string> &documents = {"d"})
{
    std::map<std::string, std::string> all;
    for (const auto &[path, entry] : manifest.entries()) {
        const auto &[host, inside] = std::tie(entry.host, entry.inside);
        for (const std::int64_t number : {static_cast<std::int64_t>(host.inode), static_cast<std::int64_t>(host.size), host.modified,
                                          host.changed, static_cast<std::int64_t>(host.mode), static_cast<std::int64_t>(inside.inode),
                                          static_cast<std::int64_t>(inside.size), inside.changed, entry.recorded})
            all[path] += std::to_string(number) + " ";
        all[path] += entry.is_directory ? "directory" : entry.is_link ? "link" : "file";
    }
    for (const auto &name : documents)
        if (const DocumentBase *base = manifest.document(name))
            all["document " + name] = base->host + "|" + base->chosen + "|" + base->written;
    return all;
}

std::map<std::string, std::string> content_of(Manifest &&manifest)
{
    return content_of(manifest);
}

// A log with each kind of record, and what it says after each.
std::vector<std::map<std::string, std::string>> write_example(const Log &log)
{
    Manifest manifest = log.load();
    std::vector<std::map<std::string, std::string>> states = {{}};
    const auto step = [&](const auto &change) {
        change();
        manifest.flush();
        states.push_back(content_of(manifest));
    };
    step([&] { manifest.intend("a/b", false); });
    step([&] { manifest.set("a/b", entry_of(1)); });
    step([&] { manifest.set_document("d", {"{}", "{\"x\":1}", ""}); });
    step([&] { manifest.set(std::string("line\n\xff"), entry_of(2, true)); });
    step([&] { manifest.set("a/b", entry_of(3)); });
    step([&] { manifest.forget("a/b"); });
    step([&] { manifest.set_document("d", {"{\"y\":2}", "{}", "{}"}); });
    return states;
}

} // namespace

TEST_CASE("what an earlier version recorded is read as it was, and a link comes back as one")
{
    const Log log;
    const auto old = [](std::uint64_t kind, const std::string &path, std::uint64_t directory, int numbers) {
        Encoder record;
        record.number(kind).text(path).number(directory);
        for (int number = 1; number <= numbers; ++number)
            record.number(static_cast<std::uint64_t>(number));
        return Encoder().text(record.bytes()).bytes();
    };
    const std::string header = Encoder().text(Encoder().number(1).number(1).bytes()).bytes();
    write_whole(log.log, header + old(3, "file", 0, 9) + old(3, "directory", 1, 9) + old(2, "intended", 1, 0), "a log");
    REQUIRE(::lseek(log.log.get(), 0, SEEK_SET) == 0);
    {
        Manifest manifest = log.load();
        REQUIRE(manifest.entries().size() == 3);
        CHECK((!manifest.find("file")->is_directory && !manifest.find("file")->is_link));
        CHECK(manifest.find("file")->host == HostFacts{1, 2, 3, 4, 5});
        CHECK(manifest.find("file")->inside == InsideFacts{6, 7, 8});
        CHECK((manifest.find("directory")->is_directory && manifest.find("intended")->is_directory));
        manifest.intend("link", false, true);
        ManifestEntry entry = entry_of(1);
        entry.is_link = true;
        manifest.set("other", entry);
        manifest.flush();
    }
    Manifest again = log.load();
    CHECK((again.find("link")->is_link && !again.find("link")->is_directory));
    CHECK((again.find("other")->is_link && again.find("other")->host == entry_of(1).host));
}

TEST_CASE("a new manifest knows nothing, and what it is told is there the next time")
{
    const Log log;
    CHECK(content_of(log.load()).empty());
    Manifest manifest = log.load();
    manifest.intend("intended", true);
    manifest.set("file", entry_of(1));
    manifest.set("gone", entry_of(2));
    manifest.forget("gone");
    manifest.set_document("settings.json", {"{\"host\":1}", "{\"chosen\":1}", "{\"written\":1}"});
    REQUIRE(manifest.find("file") != nullptr);
    CHECK(manifest.find("file")->was_seen);
    CHECK(manifest.find("gone") == nullptr);
    manifest.flush();

    Manifest again = log.load();
    CHECK(again.entries().size() == 2);
    CHECK(content_of(again) == content_of(manifest));
    REQUIRE(again.find("intended") != nullptr);
    CHECK(again.find("intended")->is_directory);
    CHECK(again.find("intended")->inside.inode == 0);
    CHECK(again.find("file")->host == entry_of(1).host);
    CHECK(again.find("file")->inside == entry_of(1).inside);
    CHECK_FALSE(again.find("file")->was_seen);
    REQUIRE(again.document("settings.json") != nullptr);
    CHECK(again.document("settings.json")->host == "{\"host\":1}");
    CHECK(again.document("settings.json")->written == "{\"written\":1}");
    CHECK(again.document("settings.json")->chosen == "{\"chosen\":1}");
    CHECK(again.document("other") == nullptr);
}

TEST_CASE("nothing is in the log before it is flushed, and loading alone does not change it")
{
    const Log log;
    log.load().flush();
    const std::string before = log.bytes();
    Manifest manifest = log.load();
    manifest.set("file", entry_of(1));
    CHECK(log.bytes() == before);
    manifest.flush();
    CHECK(log.bytes().size() > before.size());
    manifest.flush();
    const std::string after = log.bytes();
    static_cast<void>(log.load());
    CHECK(log.bytes() == after);
}

TEST_CASE("a log that is cut off anywhere loses its tail and no more")
{
    const Log log;
    const auto states = write_example(log);
    const std::string whole = log.bytes();
    std::size_t reached = 0;
    for (std::size_t length = 0; length <= whole.size(); ++length) {
        CAPTURE(length);
        log.write(whole.substr(0, length));
        const auto content = content_of(log.load());
        if (reached + 1 < states.size() && content == states[reached + 1]) ++reached;
        REQUIRE(content == states[reached]);
        // The next sync goes on where the good part ends.
        Manifest next = log.load();
        next.set("next", entry_of(9));
        next.flush();
        auto expected = content;
        expected["next"] = content_of(next)["next"];
        REQUIRE(content_of(log.load()) == expected);
    }
    CHECK(reached + 1 == states.size());
}

TEST_CASE("what follows a good log is cut off, whatever it is")
{
    const Log log;
    const auto states = write_example(log);
    const std::string whole = log.bytes();
    const std::string unknown_kind = Encoder().text(Encoder().number(9).text("x").bytes()).bytes();
    const std::string left_over = Encoder().text(Encoder().number(4).text("line\n\xff").number(1).bytes()).bytes();
    for (const std::string &tail : {std::string(1, '\0'), std::string(8, '\0'), std::string(5000, '\0'), std::string(5000, '\xff'),
                                    std::string("garbage and more of it"), unknown_kind, left_over, Encoder().number(1).bytes() + "x"}) {
        CAPTURE(tail.size());
        log.write(whole + tail);
        CHECK(content_of(log.load()) == states.back());
        CHECK(log.bytes() == whole);
    }
}

TEST_CASE("a log that is none is begun anew")
{
    const std::string other_version = Encoder().text(Encoder().number(1).number(2).bytes()).bytes();
    const std::string no_header = Encoder().text(Encoder().number(4).text("x").bytes()).bytes();
    for (const std::string &text : {std::string(3, 'x'), std::string(100'000, '\0'), std::string(100'000, 'x'), other_version, no_header}) {
        const Log log;
        log.write(text);
        CHECK(content_of(log.load()).empty());
        const auto states = write_example(log);
        CHECK(content_of(log.load()) == states.back());
    }
    const Log log;
    REQUIRE(::ftruncate(log.log.get(), off_t{193} << 20U) == 0);
    CHECK(content_of(log.load()).empty()); // cut, not refused: every start would be
}

TEST_CASE("a long log of what counts no longer is written anew, a short one or one that counts is not")
{
    const Log log;
    Manifest manifest = log.load();
    for (std::uint64_t number = 0; number < 100; ++number)
        manifest.set("file" + std::to_string(number), entry_of(number));
    CHECK_FALSE(manifest.rewrite_if_long());
    CHECK(fs::file_size(log.place / "spare") == 0);
    manifest.set_document("d", {"{\"kept\":1}", "{}", "{\"u\":1}"});
    for (std::uint64_t round = 0; round < 200; ++round)
        for (std::uint64_t number = 0; number < 50; ++number)
            manifest.set("file" + std::to_string(number), entry_of(round + number));
    manifest.forget("file7");
    Manifest reloaded = [&] {
        manifest.flush();
        return log.load();
    }();
    REQUIRE(fs::file_size(log.place / "log") > 1024 * 1024);
    const auto expected = content_of(manifest);
    CHECK(expected.size() == 100);
    REQUIRE(reloaded.rewrite_if_long()); // it is known after a load too
    fs::rename(log.place / "spare", log.place / "log");
    const UniqueFd fresh = open_path(log.place / "log", O_RDWR);
    const UniqueFd spare = open_path(log.place / "spare", O_RDWR | O_CREAT);
    Manifest rewritten(fresh, spare);
    CHECK(content_of(rewritten) == expected);
    CHECK(fs::file_size(log.place / "log") < 20'000);
    CHECK_FALSE(rewritten.rewrite_if_long());

    const Log full;
    Manifest counting = full.load();
    for (std::uint64_t number = 0; number < 10'000; ++number)
        counting.set("file" + std::to_string(number), entry_of(number));
    CHECK_FALSE(counting.rewrite_if_long());
    CHECK(fs::file_size(full.place / "log") > 1024 * 1024);
}

TEST_CASE("a spare that a killed rewrite left is written over")
{
    const Log log;
    log.place.write("spare", std::string(3'000'000, 'x'));
    Manifest manifest = log.load();
    for (std::uint64_t round = 0; round < 12'000; ++round)
        manifest.set("file", entry_of(round));
    REQUIRE(manifest.rewrite_if_long());
    CHECK(fs::file_size(log.place / "spare") < 1000);
    CHECK(content_of(Manifest(log.spare, log.log)) == content_of(manifest));
}

TEST_CASE("an entry is settled when both sides were written long enough before it was recorded")
{
    constexpr std::int64_t millisecond = 1'000'000;
    const auto is_settled = [](std::int64_t host, std::int64_t inside) {
        ManifestEntry entry;
        entry.host.changed = host * millisecond;
        entry.inside.changed = inside * millisecond;
        entry.recorded = 1000 * millisecond;
        return entry.is_settled();
    };
    CHECK(is_settled(0, 0));
    CHECK(is_settled(949, 949));
    CHECK_FALSE(is_settled(950, 0));
    CHECK_FALSE(is_settled(0, 950));
    CHECK_FALSE(is_settled(1000, 1000));
    CHECK_FALSE(is_settled(5000, 0)); // a clock that was set back
    CHECK_FALSE(ManifestEntry().is_settled());
}

} // namespace manifest_test
