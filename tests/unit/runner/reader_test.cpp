// What the reader sends of a user's config directory, and what it skips or refuses: runner/reader.hpp
#include "runner/reader.hpp"

#include "runner/child.hpp"
#include "runner/sync_messages.hpp"
#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"

#include <algorithm>
#include <map>
#include <poll.h>
#include <sys/un.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace {

namespace fs = std::filesystem;

struct Sent {
    SyncMessage message;
    std::optional<std::string> content; // of the descriptor that came along
};

struct Reading {
    std::vector<Sent> sent;
    std::vector<std::string> skipped;
    Caught failure;

    [[nodiscard]] const Sent *find(const std::string &path) const
    {
        const auto found = std::find_if(sent.begin(), sent.end(), [&](const Sent &entry) { return entry.message.path == path; });
        return found == sent.end() ? nullptr : &*found;
    }
    [[nodiscard]] bool was_skipped(const std::string &path, const std::string &reason) const
    {
        return std::any_of(skipped.begin(), skipped.end(),
                           [&](const std::string &text) { return has(text, "config: skipped " + path + ": ") && has(text, reason); });
    }
};

std::string content_of(FdRef fd)
{
    std::string text(4096, '\0');
    const ssize_t length = ::read(fd.get(), text.data(), text.size());
    REQUIRE(length >= 0);
    return text.substr(0, static_cast<std::size_t>(length));
}

// Runs the reader as the user and takes the writer's place.
Reading read_as_user(const std::string &directory)
{
    const AsRoot root = AsRoot::claim();
    auto [sending, receiving] = make_channel();
    Child reader(root, "reader", user_account(), {sending.get()},
                 [&, to = FdRef(sending)](const AsUser &self, FdRef channel) { read_config(self, directory, to, channel); });
    sending.reset();
    Reading reading;
    bool done = false;
    bool closed = false;
    while (!done || !closed) {
        std::array<pollfd, 2> waits{pollfd{closed ? -1 : receiving.get(), POLLIN, 0},
                                    pollfd{done ? -1 : reader.channel().get(), POLLIN, 0}};
        REQUIRE(::poll(waits.data(), waits.size(), 20'000) > 0);
        if (waits[0].revents != 0) {
            if (const auto packet = receive_packet(receiving, in_seconds(10))) {
                Sent sent{decode_sync_message(packet->bytes), std::nullopt};
                if (!packet->fds.empty()) sent.content = content_of(packet->fds[0]);
                reading.sent.push_back(std::move(sent));
            } else {
                closed = true;
            }
        }
        if (waits[1].revents == 0) continue;
        reading.failure = failure_of([&] {
            if (const auto packet = reader.receive_one()) {
                done = packet->bytes.empty();
                if (!done) reading.skipped.push_back(packet->bytes);
            }
        });
        done = done || reading.failure.status != 0;
    }
    return reading;
}

// The user's home with a config directory, and things around it that are not the user's.
struct Host {
    Host()
        : home(make_private(directory, "home", user_account())), config(make_private(directory, "home/config", user_account())),
          secrets(directory.make("secrets"))
    {
        directory.write("secrets/key", "root's secret");
        directory.write("key", "root's secret");
        set_mode(directory / "key", 0600);
        set_mode(secrets, 0700);
    }
    std::string write(const std::string &name, const std::string &text, mode_t mode = 0600) const
    {
        const std::string path = directory.write("home/config/" + name, text);
        give(path, user_account());
        set_mode(path, mode);
        return path;
    }
    std::string make(const std::string &name, mode_t mode = 0700) const { return set(directory.make("home/config/" + name), mode); }
    void link(const std::string &name, const std::string &target) const
    {
        give(directory.link("home/config/" + name, target), user_account());
    }
    static std::string set(const std::string &path, mode_t mode)
    {
        give(path, user_account());
        set_mode(path, mode);
        return path;
    }

    TemporaryDirectory directory;
    std::string home;
    std::string config;
    std::string secrets;
};

} // namespace

TEST_CASE("settings come first, the end last, and every file with its bytes between them" * doctest::skip(not_root()))
{
    const Host host;
    host.write("settings.json", "{}");
    host.write("models.json", "m");
    host.make("skills/deep");
    host.write("skills/deep/SKILL.md", std::string("a\0b", 3));
    host.write("empty", "");
    const Reading reading = read_as_user(host.config);
    CHECK(reading.failure.status == 0);
    CHECK(reading.skipped.empty());
    REQUIRE(reading.sent.size() == 7);
    CHECK(reading.sent.front().message.step == SyncStep::settings);
    CHECK(reading.sent.front().content == "{}");
    CHECK(reading.sent.back().message.step == SyncStep::end);
    CHECK(reading.find("models.json")->content == "m");
    CHECK(reading.find("empty")->content == "");
    CHECK(reading.find("skills")->message.step == SyncStep::directory);
    CHECK(reading.find("skills/deep")->message.step == SyncStep::directory);
    CHECK(reading.find("skills/deep/SKILL.md")->content == std::string("a\0b", 3));
    CHECK(reading.find("settings.json") == nullptr);
}

TEST_CASE("mode, time and size of a file travel with it, its setuid bits do not" * doctest::skip(not_root()))
{
    const Host host;
    const std::string path = host.write("tool", "12345", 0755);
    const std::array<timespec, 2> times{timespec{1, 2}, timespec{1'600'000'000, 123'456'789}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0) == 0);
    set_mode(path, 06755);
    const Reading reading = read_as_user(host.config);
    const Sent *sent = reading.find("tool");
    REQUIRE(sent != nullptr);
    CHECK(sent->message.step == SyncStep::file);
    CHECK(sent->message.mode == 0755);
    CHECK(sent->message.size == 5);
    CHECK(sent->message.modified_seconds == 1'600'000'000);
    CHECK(sent->message.modified_nanoseconds == 123'456'789);
}

TEST_CASE("a directory that does not exist counts as an empty one" * doctest::skip(not_root()))
{
    const Host host;
    const Reading reading = read_as_user(host.home + "/none");
    CHECK(reading.failure.status == 0);
    REQUIRE(reading.sent.size() == 2);
    CHECK(reading.sent[0].message.step == SyncStep::settings);
    CHECK_FALSE(reading.sent[0].content);
    CHECK(reading.sent[1].message.step == SyncStep::end);
}

TEST_CASE("a config directory that is a link to nothing is a mistake, not an empty one" * doctest::skip(not_root()))
{
    const Host host;
    host.link("dangling", "none");
    // As a link itself, and anywhere above: ~/.pi may lead to a file system that is not mounted.
    for (const std::string below : {"", "/agent", "/deeper/agent"}) {
        const Reading reading = read_as_user(host.config + "/dangling" + below);
        CHECK(reading.failure.status == 78);
        CHECK(has(reading.failure.text, "dangling: " + host.config + "/dangling is a link to what is not there"));
        CHECK(reading.sent.empty());
    }
}

TEST_CASE("a config directory that is none, or that the user cannot read, is refused with a remedy" * doctest::skip(not_root()))
{
    const Host host;
    host.write("file", "x");
    host.make("closed", 0000);
    host.link("loop", "loop");
    REQUIRE(::mkfifo((host.config + "/fifo").c_str(), 0666) == 0);
    for (const std::string &path : {host.config + "/file", host.config + "/closed", host.config + "/loop", host.secrets,
                                    host.secrets + "/below", host.config + "/fifo"}) {
        CAPTURE(path);
        const Reading reading = read_as_user(path);
        CHECK(reading.failure.status == 78);
        CHECK(has(reading.failure.text, "your config directory cannot be used: opening " + path));
        CHECK(has(reading.failure.text, "make it a directory that you can read"));
        CHECK(reading.sent.empty());
    }
}

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
    const Reading reading = read_as_user(host.config);
    CHECK(reading.failure.status == 0);
    CHECK(reading.find("own")->content == "mine");
    CHECK(reading.find("absolute")->content == "mine");
    CHECK(reading.find("store")->message.step == SyncStep::directory);
    CHECK(reading.find("store/file")->content == "shared");
    for (const std::string name : {"key", "below", "secrets", "shadow"}) {
        CAPTURE(name);
        CHECK(reading.find(name) == nullptr);
        CHECK(reading.was_skipped(host.config + "/" + name, "Permission denied"));
    }
    CHECK(reading.was_skipped(host.config + "/dangling", "No such file"));
    CHECK(reading.was_skipped(host.config + "/loop", "a loop of links"));
    CHECK(reading.skipped.size() == 6);
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
    const Reading reading = read_as_user(host.config);
    CHECK(reading.failure.status == 0);
    for (const std::string name : {"fifo", "socket", "null", "fifo_link"})
        CHECK_MESSAGE(reading.was_skipped(host.config + "/" + name, "neither a file nor a directory"), name);
    CHECK(reading.find("kept")->content == "x");
    CHECK(reading.sent.size() == 3);
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
    const Reading reading = read_as_user(host.config);
    CHECK(reading.failure.status == 0);
    CHECK(reading.was_skipped(host.config + "/closed", "Permission denied"));
    CHECK(reading.was_skipped(host.config + "/directory", "Permission denied"));
    CHECK(reading.was_skipped(host.config + "/listed_only/inner", "Permission denied"));
    CHECK(reading.find("kept")->content == "x");
}

TEST_CASE("what the agent owns, locks and logs stay at the top, and the same names below travel" * doctest::skip(not_root()))
{
    const Host host;
    host.make("below");
    const std::vector<std::string> names = {"models-store.json", "trust.json", "crashes.json", "mcp-auth.json", "x.lock", "pi.log",
                                            "mcp-auth-refresh-1"};
    for (const auto &name : names) {
        host.write(name, "x");
        host.write("below/" + name, "x");
    }
    for (const std::string name : {"sessions", "bin", "git", "npm", "tmp"}) {
        host.make(name);
        host.write(std::string(name) + "/file", "x");
        host.make(std::string("below/") + name);
    }
    const Reading reading = read_as_user(host.config);
    CHECK(reading.failure.status == 0);
    for (const auto &sent : reading.sent)
        CHECK_MESSAGE(
            (sent.message.step == SyncStep::settings || sent.message.path.empty() || sent.message.path.compare(0, 5, "below") == 0),
            sent.message.path);
    CHECK(reading.sent.size() == 2 + 1 + names.size() + 5);
}

TEST_CASE("credentials are a seed, at the top only" * doctest::skip(not_root()))
{
    const Host host;
    host.write("auth.json", "{}");
    host.make("below");
    host.write("below/auth.json", "{}");
    const Reading reading = read_as_user(host.config);
    CHECK(reading.find("auth.json")->message.step == SyncStep::seed);
    CHECK(reading.find("below/auth.json")->message.step == SyncStep::file);
}

TEST_CASE("names of any bytes travel as they are and are escaped in notices" * doctest::skip(not_root()))
{
    const Host host;
    for (const std::string name : {"a b", "q'\"", "line\nbreak", "\xff\xfe", "%n$HOME", "\\", "-rf", ".hidden"})
        host.write(name, name);
    REQUIRE(::mkfifo((host.config + "/x\n\x1b[31m").c_str(), 0666) == 0);
    const Reading reading = read_as_user(host.config);
    for (const std::string name : {"a b", "q'\"", "line\nbreak", "\xff\xfe", "%n$HOME", "\\", "-rf", ".hidden"}) {
        CAPTURE(name);
        REQUIRE(reading.find(name) != nullptr);
        CHECK(reading.find(name)->content == name);
    }
    REQUIRE(reading.skipped.size() == 1);
    CHECK(reading.skipped[0].find_first_of("\n\x1b") == std::string::npos);
}

TEST_CASE("a link back to a directory above is skipped, and the walk ends" * doctest::skip(not_root()))
{
    const Host host;
    host.make("a/b");
    host.link("a/b/top", host.config);
    host.link("a/up", ".");
    const Reading reading = read_as_user(host.config);
    CHECK(reading.failure.status == 0);
    CHECK(reading.was_skipped(host.config + "/a/b/top", "a link back to a directory above it"));
    CHECK(reading.was_skipped(host.config + "/a/up", "a link back to a directory above it"));
}

TEST_CASE("a tree that is nested too deep is cut there" * doctest::skip(not_root()))
{
    const Host host;
    std::string path;
    for (int depth = 0; depth < 140; ++depth)
        path += "d/";
    host.directory.make("home/config/" + path);
    const Reading reading = read_as_user(host.config);
    CHECK(reading.failure.status != 78);
    // Directories are root's own here, 0755: readable, so only the depth can stop the walk.
    REQUIRE(reading.skipped.size() == 1);
    CHECK(has(reading.skipped[0], "nested too deep"));
}

TEST_CASE("settings that are no readable file are refused, and nothing is sent" * doctest::skip(not_root()))
{
    struct Row {
        std::string what;
        std::function<void(const Host &)> set_up;
        int status;
    };
    const std::vector<Row> rows = {
        {"a FIFO", [](const Host &host) { REQUIRE(::mkfifo((host.config + "/settings.json").c_str(), 0666) == 0); }, 78},
        {"a directory", [](const Host &host) { host.make("settings.json"); }, 78},
        {"unreadable", [](const Host &host) { host.write("settings.json", "{}", 0000); }, 78},
        {"a link to root's file", [](const Host &host) { host.link("settings.json", host.directory / "key"); }, 78},
        {"a link into root's directory", [](const Host &host) { host.link("settings.json", host.secrets + "/key"); }, 78},
        {"a loop", [](const Host &host) { host.link("settings.json", "settings.json"); }, 78},
        {"a device", [](const Host &host) { host.link("settings.json", "/dev/zero"); }, 78},
        {"a dangling link", [](const Host &host) { host.link("settings.json", "none"); }, 78},
    };
    for (const auto &row : rows) {
        CAPTURE(row.what);
        const Host host;
        host.write("other", "x");
        row.set_up(host);
        const Reading reading = read_as_user(host.config);
        CHECK(reading.failure.status == row.status);
        CHECK(reading.sent.empty() == (row.status != 0));
        if (row.status == 0) CHECK_FALSE(reading.sent.front().content);
        if (row.status != 0) CHECK(has(reading.failure.text, "settings.json"));
    }
}

TEST_CASE("no more than twenty notices, and then their number" * doctest::skip(not_root()))
{
    const Host host;
    for (int number = 0; number < 50; ++number)
        REQUIRE(::mkfifo((host.config + "/fifo" + std::to_string(number)).c_str(), 0666) == 0);
    const Reading reading = read_as_user(host.config);
    REQUIRE(reading.skipped.size() == 21);
    CHECK(reading.skipped.back() == "and 30 more");
}

TEST_CASE("ten thousand files arrive, each once" * doctest::skip(not_root()))
{
    const Host host;
    const Account user = user_account();
    for (int number = 0; number < 10'000; ++number) {
        const UniqueFd file = open_path(host.config + "/" + std::to_string(number), O_WRONLY | O_CREAT);
        REQUIRE(::fchown(file.get(), user.uid.value(), user.gid.value()) == 0);
    }
    const Reading reading = read_as_user(host.config);
    CHECK(reading.failure.status == 0);
    std::map<std::string, int> counts;
    for (const auto &sent : reading.sent)
        ++counts[sent.message.path];
    CHECK(counts.size() == 10'002); // settings first and end last
    CHECK(reading.sent.size() == 10'002);
}
