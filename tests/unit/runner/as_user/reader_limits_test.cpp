// What the reader skips, how it says so, and what a hostile writer gets from it: runner/as_user/reader.hpp
#include "support/reading.hpp"

#include <sys/un.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace reader_limits_test {

TEST_CASE("links are followed with the user's rights and no others" * doctest::skip(not_root()))
{
    const Host host;
    host.directory.write("home/elsewhere", "mine");
    Host::set(host.directory / "home/elsewhere", 0600);
    host.link("own", "../elsewhere");
    host.link("absolute", host.directory / "home/elsewhere");
    host.link("store", host.directory.make("open"));
    set_mode(host.directory / "open", 0755);
    host.directory.write("open/file", "shared");
    set_mode(host.directory / "open/file", 0644);
    host.link("key", host.directory / "key");
    host.link("below", host.secrets + "/key");
    host.link("secrets", host.secrets);
    host.link("shadow", "/etc/shadow");
    host.link("dangling", "nowhere");
    host.link("loop", "loop");
    host.link("environ", "/proc/self/environ");
    host.link("kernels", "/proc/sys");
    const Reading reading = read_as_user(host);
    CHECK(reading.failure.status == 0);
    CHECK(reading.content("own") == "mine");
    CHECK(reading.content("absolute") == "mine");
    CHECK(reading.is("store", EntryKind::directory));
    CHECK(reading.content("store/file") == "shared");
    // A link that cannot be looked through is listed as unreadable: what it led to once stays. One to a closed file fails when it is
    // opened.
    for (const std::string name : {"key", "below", "secrets", "shadow"}) {
        CAPTURE(name);
        CHECK_FALSE(reading.content(name));
        CHECK(reading.was_skipped(host.config + "/" + name, "Permission denied"));
    }
    for (const std::string name : {"below", "secrets", "dangling", "loop", "environ", "kernels"})
        CHECK_MESSAGE(reading.is(name, EntryKind::unreadable), name);
    CHECK(reading.was_skipped(host.config + "/dangling", "No such file"));
    CHECK(reading.was_skipped(host.config + "/loop", "a loop of links"));
    CHECK(reading.was_skipped(host.config + "/environ", "the kernel makes that file"));
    CHECK(reading.was_skipped(host.config + "/kernels", "the kernel makes that file"));
    CHECK(reading.skipped.size() == 8);
}

TEST_CASE("what is neither file nor directory is skipped without being opened" * doctest::skip(not_root()))
{
    const Host host;
    REQUIRE(::mkfifo((host.config + "/fifo").c_str(), 0666) == 0); // opening it would wait for a writer
    const UniqueFd socket = UniqueFd::adopt(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{AF_UNIX, {}};
    (host.config + "/socket").copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0);
    host.link("null", "/dev/null");
    host.link("fifo_link", "fifo");
    host.write("kept", "x");
    const Reading reading = read_as_user(host);
    CHECK(reading.failure.status == 0);
    for (const std::string name : {"fifo", "socket", "null", "fifo_link"})
        CHECK_MESSAGE(reading.was_skipped(host.config + "/" + name, "neither a file nor a directory"), name);
    CHECK(reading.content("kept") == "x");
    CHECK(reading.entries.size() == 1);
}

TEST_CASE("an unreadable file or directory costs only itself" * doctest::skip(not_root()))
{
    const Host host;
    host.write("closed", "x", 0000);
    host.make("directory");
    host.write("directory/inner", "x");
    set_mode(host.config + "/directory", 0000);
    host.make("listed_only");
    host.write("listed_only/inner", "x");
    set_mode(host.config + "/listed_only", 0400);
    host.write("kept", "x");
    const Reading reading = read_as_user(host);
    CHECK(reading.failure.status == 0);
    CHECK(reading.was_skipped(host.config + "/closed", "Permission denied")); // seen when it is opened
    CHECK(reading.is("closed", EntryKind::file));
    CHECK_FALSE(reading.content("closed"));
    CHECK(reading.was_skipped(host.config + "/directory", "Permission denied"));
    CHECK(reading.is("directory", EntryKind::unreadable));
    CHECK(reading.was_skipped(host.config + "/listed_only/inner", "Permission denied"));
    CHECK(reading.is("listed_only/inner", EntryKind::unreadable));
    CHECK(reading.content("kept") == "x");
}

TEST_CASE("a file that vanishes or changes its kind between the listing and the request costs only itself" * doctest::skip(not_root()))
{
    const Host host;
    for (const std::string name : {"gone", "pipe", "shadow", "kernels", "kept"})
        host.write(name, "x");
    const Reading reading = read_as_user(host.plan(), [&] {
        for (const std::string name : {"gone", "pipe", "shadow", "kernels"})
            std::filesystem::remove(host.config + "/" + name);
        REQUIRE(::mkfifo((host.config + "/pipe").c_str(), 0666) == 0);
        host.link("shadow", "/etc/shadow");
        host.link("kernels", "/proc/self/environ");
        host.write("kept", "longer");
    });
    CHECK(reading.failure.status == 0);
    CHECK(reading.contents.size() == 1);
    CHECK(reading.content("kept") == "longer");
    CHECK(reading.was_skipped(host.config + "/gone", "No such file"));
    CHECK(reading.was_skipped(host.config + "/pipe", "not a regular file"));
    CHECK(reading.was_skipped(host.config + "/shadow", "Permission denied"));
    CHECK(reading.was_skipped(host.config + "/kernels", "the kernel makes that file"));
}

TEST_CASE("a link back to a directory above is none to follow, and the walk ends" * doctest::skip(not_root()))
{
    const Host host;
    host.make("a");
    host.make("a/b");
    host.link("a/b/top", host.config);
    host.link("a/up", ".");
    host.link("a/out", "../../config/a");
    const Reading reading = read_as_user(host);
    CHECK(reading.failure.status == 0);
    CHECK(reading.was_skipped(host.config + "/a/b/top", "a link back to a directory above it"));
    CHECK(reading.was_skipped(host.config + "/a/out", "a link back to a directory above it"));
    REQUIRE(reading.is("a/up", EntryKind::link));
    CHECK(reading.find("a/up")->target == ".");
}

TEST_CASE("a tree that is nested too deep is cut there" * doctest::skip(not_root()))
{
    const Host host;
    std::string path;
    for (int depth = 0; depth < 140; ++depth)
        path += "d/";
    host.directory.make("home/config/" + path);
    const Reading reading = read_as_user(host);
    CHECK(reading.failure.status == 0);
    // Directories are root's own here, 0755: readable, so only the depth can stop the walk.
    REQUIRE(reading.skipped.size() == 1);
    CHECK(has(reading.skipped[0], "nested too deep"));
    CHECK(reading.entries.size() == 128);
}

TEST_CASE("a path that is longer than 4096 bytes is skipped" * doctest::skip(not_root()))
{
    const Host host;
    UniqueFd directory = open_path(host.config, O_RDONLY | O_DIRECTORY);
    const std::string name(250, 'd');
    for (int depth = 0; depth < 20; ++depth) {
        REQUIRE(::mkdirat(directory.get(), name.c_str(), 0755) == 0);
        directory = UniqueFd::adopt(::openat(directory.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        REQUIRE(directory.is_open());
    }
    const Reading reading = read_as_user(host);
    CHECK(reading.failure.status == 0);
    REQUIRE(reading.skipped.size() == 1);
    CHECK(has(reading.skipped[0], "its path is longer than 4096 bytes"));
    for (const auto &entry : reading.entries)
        CHECK(entry.path.size() <= 4096);
}

TEST_CASE("a file that is too large is skipped, and too much together is refused" * doctest::skip(not_root()))
{
    const auto grow = [](const std::string &path, off_t mebibytes) { REQUIRE(::truncate(path.c_str(), mebibytes << 20U) == 0); };
    const Host host;
    grow(host.write("large", ""), 5 * 1024);
    host.write("kept", "x");
    const Reading reading = read_as_user(host);
    CHECK(reading.was_skipped(host.config + "/large", "larger than 256 MiB"));
    CHECK(reading.is("large", EntryKind::unreadable));
    CHECK(reading.content("kept") == "x");
    for (int number = 0; number < 9; ++number)
        grow(host.write("part" + std::to_string(number), ""), 250);
    const Reading refused = read_as_user(host);
    CHECK(refused.failure.status == 78);
    CHECK(has(refused.failure.text, host.config + " holds more than 2 GiB"));
    CHECK(refused.contents.empty());
}

TEST_CASE("no more than twenty notices, and then their number" * doctest::skip(not_root()))
{
    const Host host;
    for (int number = 0; number < 50; ++number)
        REQUIRE(::mkfifo((host.config + "/fifo" + std::to_string(number)).c_str(), 0666) == 0);
    const Reading reading = read_as_user(host);
    REQUIRE(reading.skipped.size() == 21);
    CHECK(reading.skipped.back() == "and 30 more");
}

TEST_CASE("ten thousand files are listed and handed out, each once" * doctest::skip(not_root()))
{
    const Host host;
    const Account user = user_account();
    for (int number = 0; number < 10'000; ++number) {
        const UniqueFd file = open_path(host.config + "/" + std::to_string(number), O_WRONLY | O_CREAT);
        REQUIRE(::fchown(file.get(), user.uid.value(), user.gid.value()) == 0);
    }
    const Reading reading = read_as_user(host);
    CHECK(reading.failure.status == 0);
    CHECK(reading.entries.size() == 10'000);
    CHECK(reading.contents.size() == 10'000);
}

TEST_CASE("a writer that asks for what was not listed, or for too much, ends the reader with a refusal" * doctest::skip(not_root()))
{
    struct Row {
        std::string request, refusal;
    };
    const std::vector<Row> rows = {
        {encode(WantedNumbers{{1}}), "the writer of the config wants what was not listed"},
        {encode(WantedNumbers{{0, ~std::uint64_t{0}}}), "the writer of the config wants what was not listed"},
        {encode(WantedNumbers{std::vector<std::uint64_t>(wanted_limit + 1, 0)}), "the writer of the config wants too much at once"},
        {"x", "a message"},
        {std::string(packet_limit, 'x'), ""},
    };
    for (const auto &row : rows) {
        CAPTURE(row.refusal);
        const Host host;
        host.write("file", "x");
        const AsRoot root = AsRoot::claim();
        auto [sending, receiving] = make_channel();
        const ReadingPlan plan = host.plan();
        Child reader(root, "reader", user_account(), {sending.get()},
                     [&, to = FdRef(sending)](const AsUser &self, FdRef channel) { read_config(self, plan, to, channel); });
        sending.reset();
        for (SyncStep step{}; step != SyncStep::end_of_listing;) {
            const auto packet = receive_packet(receiving, in_seconds(10));
            REQUIRE(packet);
            step = decode_fields<SyncMessage>(packet->bytes).step;
        }
        send_raw(receiving, row.request);
        const Caught caught = failure_of([&] { return reader.receive(); });
        CHECK(caught.status == 77);
        if (row.refusal != "a message") CHECK_MESSAGE(has(caught.text, row.refusal), caught.text);
    }
}

} // namespace reader_limits_test
