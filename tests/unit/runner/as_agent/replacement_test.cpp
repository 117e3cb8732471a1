// New files that take another's place in one step: runner/as_agent/writer.hpp
#include "runner/as_agent/writer.hpp"

#include "common/host/beneath.hpp"

#include "common/base/channel.hpp"
#include "common/base/files.hpp"
#include "runner/as_user/reader.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"
#include "support/temporary_directory.hpp"

#include <fstream>

using namespace pi_agent;
using namespace pi_agent::test;

namespace replacement_test {

namespace {

namespace fs = std::filesystem;

struct Place {
    Place()
        : staging(open_path(directory.make("staging"), O_RDONLY | O_DIRECTORY)),
          home(open_path(directory.make("home"), O_RDONLY | O_DIRECTORY)), channel(make_channel())
    {
    }
    [[nodiscard]] std::string commit(const std::string &name, const std::string &text) const
    {
        Replacement file(staging, 0600);
        write_whole(file.fd(), text, name);
        return file.commit(home, name);
    }
    [[nodiscard]] std::string content(const std::string &name) const
    {
        return read_whole(open_path(directory / ("home/" + name)), 100'000'000, name);
    }
    [[nodiscard]] bool is_clean() const { return fs::is_empty(directory / "staging"); }

    TemporaryDirectory directory;
    UniqueFd staging;
    UniqueFd home;
    std::pair<UniqueFd, UniqueFd> channel;
};

HostFacts facts_by(FdRef fd)
{
    struct stat facts {};
    REQUIRE(::fstat(fd.get(), &facts) == 0);
    return facts_of(facts);
}

} // namespace

TEST_CASE("a file appears whole, and one that is not committed leaves nothing")
{
    const Place place;
    {
        const Replacement file(place.staging, 0700);
        write_whole(file.fd(), "half", "f");
        CHECK_FALSE(place.is_clean());
    }
    CHECK(place.is_clean());
    CHECK(fs::is_empty(place.directory / "home"));
    CHECK(place.commit("f", "whole") == "");
    CHECK(place.content("f") == "whole");
    CHECK(place.is_clean());
}

TEST_CASE("what stood in its place goes, or is set aside when it is a directory that holds something")
{
    const Place place;
    place.directory.write("outside", "alive");
    place.directory.write("home/file", "old");
    place.directory.link("home/link", place.directory / "outside");
    place.directory.link("home/dangling", "nowhere");
    place.directory.make("home/empty");
    REQUIRE(::mkfifo((place.directory / "home/fifo").c_str(), 0600) == 0);
    for (const std::string name : {"file", "link", "dangling", "empty", "fifo"}) {
        CAPTURE(name);
        CHECK(place.commit(name, "new") == "");
        CHECK(place.content(name) == "new");
        CHECK_FALSE(fs::is_symlink(place.directory / ("home/" + name)));
    }
    place.directory.make("home/full");
    place.directory.write("home/full/own", "kept");
    const std::string kept = place.commit("full", "new");
    CHECK(kept.size() == std::string("full.kept-01234567").size());
    CHECK(place.content("full") == "new");
    CHECK(place.content(kept + "/own") == "kept");
    CHECK(read_whole(open_path(place.directory / "outside"), 100, "outside") == "alive");
    CHECK(place.is_clean());
}

TEST_CASE("what is set aside gets a name of its own each time, that fits")
{
    const Place place;
    const std::string longest(255, 'n');
    for (int round = 0; round < 3; ++round) {
        place.directory.write("home/" + longest, std::to_string(round));
        const std::string kept = set_aside(place.home, longest);
        CHECK(kept.compare(0, 206, std::string(200, 'n') + ".kept-") == 0);
        CHECK(kept.find_first_not_of("0123456789abcdef", 206) == std::string::npos);
        CHECK(place.content(kept) == std::to_string(round));
    }
    CHECK(std::distance(fs::directory_iterator(place.directory / "home"), fs::directory_iterator()) == 3);
    CHECK_NOTHROW(set_aside(place.home, "missing")); // the agent was faster
}

TEST_CASE("a file is copied whole, whatever its size")
{
    for (const std::size_t size : {0U, 1U, 65'535U, 65'536U, 65'537U, 9'000'000U}) {
        CAPTURE(size);
        const Place place;
        std::string text(size, '\0');
        for (std::size_t index = 0; index < size; ++index)
            text[index] = static_cast<char>(index * 31 % 251);
        const UniqueFd source = open_path(place.directory.write("source", text));
        HostFacts facts = facts_by(source);
        const HostFacts before = facts;
        Replacement file(place.staging, 0600);
        file.copy_from(source, facts, place.channel.first);
        CHECK(facts == before);
        file.commit(place.home, "f");
        CHECK((place.content("f") == text));
    }
}

TEST_CASE("a file that was written meanwhile is copied again, with its new facts")
{
    const Place place;
    const UniqueFd source = open_path(place.directory.write("source", std::string(100, 'o')));
    HostFacts facts = facts_by(source);
    for (const std::string &text : {std::string(50, 'n'), std::string(200'000, 'n')}) { // it shrank, it grew
        std::ofstream(place.directory / "source", std::ios::binary) << text;
        REQUIRE(::lseek(source.get(), 0, SEEK_SET) == 0);
        Replacement file(place.staging, 0600);
        file.copy_from(source, facts, place.channel.first);
        CHECK(facts == facts_by(source));
        file.commit(place.home, "f");
        CHECK((place.content("f") == text));
    }
}

TEST_CASE("a file that never stops changing is taken as it is, and again at the next start")
{
    const Place place;
    place.directory.write("source", "0");
    const pid_t writer = ::fork();
    REQUIRE(writer >= 0);
    if (writer == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int fd = ::open((place.directory / "source").c_str(), O_WRONLY | O_CLOEXEC);
        // So large that a busy host does not let a copy of it go on to its end.
        for (char byte = 0;; ++byte)
            if (::pwrite(fd, &byte, 1, 0) != 1 || ::ftruncate(fd, 16'000'000 + byte % 100 * 1000) != 0) ::_exit(1);
    }
    bool was_unsure = false;
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    while (!was_unsure && Clock::now() < deadline) {
        const UniqueFd source = open_path(place.directory / "source");
        HostFacts facts = facts_by(source);
        Replacement file(place.staging, 0600);
        file.copy_from(source, facts, place.channel.first);
        was_unsure = facts.changed == 0;
        while (wait_for_input(place.channel.second, Clock::now()))
            static_cast<void>(receive_packet(place.channel.second, in_seconds(1)));
    }
    ::kill(writer, SIGKILL);
    REQUIRE(::waitpid(writer, nullptr, 0) == writer);
    CHECK(was_unsure);
}

TEST_CASE("a new file takes only a name that nothing has, not even one that comes up at the last moment")
{
    const Place place;
    const auto commit_new = [&](const std::string &text) {
        Replacement file(place.staging, 0600);
        write_whole(file.fd(), text, "f");
        return file.commit_new(place.home, "f");
    };
    CHECK(commit_new("first"));
    CHECK_FALSE(commit_new("second"));
    CHECK(place.content("f") == "first");
    CHECK(fs::hard_link_count(place.directory / "home/f") == 1);
    fs::remove(place.directory / "home/f");
    place.directory.link("home/f", "new");
    CHECK_FALSE(commit_new("through the link"));
    CHECK_FALSE(fs::exists(place.directory / "home/new"));
    CHECK(place.is_clean());
}

TEST_CASE("files are compared byte for byte, from their beginnings")
{
    const TemporaryDirectory place;
    const std::string large(64 * 1024 * 3, 'x');
    std::string late = large;
    late.back() = 'y';
    struct Row {
        std::string one, other;
        bool same;
    };
    for (const Row &row : {Row{"", "", true},
                           {"a", "a", true},
                           {"a", "b", false},
                           {"a", "", false},
                           {"", "a", false},
                           {"a", "aa", false},
                           {large, large, true},
                           {large, late, false},
                           {large, large + "x", false},
                           {std::string("a\0b", 3), std::string("a\0c", 3), false}}) {
        const UniqueFd one = open_path(place.write("one", row.one));
        const UniqueFd other = open_path(place.write("other", row.other));
        REQUIRE(::lseek(one.get(), 0, SEEK_END) >= 0);
        CHECK(have_same_bytes(one, other, [] {}) == row.same);
    }
    const UniqueFd file = open_path(place.write("one", ""));
    CHECK(errno_of([&] { return have_same_bytes(file, open_path(place.path(), O_RDONLY | O_DIRECTORY), [] {}); }) == EISDIR);
}

} // namespace replacement_test
