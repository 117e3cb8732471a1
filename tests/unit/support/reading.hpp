// Runs the reader of the config as the user, and takes the writer's place.
#pragma once

#include "runner/as_agent/sync_messages.hpp"
#include "runner/as_user/reader.hpp"
#include "runner/root/errand/errand.hpp"
#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"

#include <algorithm>
#include <map>
#include <poll.h>

namespace pi_agent::test {

constexpr const char *inside_config = ".pi/agent";

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
        return set(directory.write("home/config/" + name, text), mode);
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
    [[nodiscard]] ReadingPlan plan() const
    {
        return {{ConfigSource{config, inside_config, true}}, {}, {"auth.json", "mcp-auth.json", "settings.json"}, {}};
    }

    TemporaryDirectory directory;
    std::string home;
    std::string config;
    std::string secrets;
};

struct SentDocument {
    std::string name, place;
    std::optional<std::string> text;
};

struct Reading {
    std::vector<SentDocument> documents;
    std::vector<ListedEntry> entries;
    std::vector<std::string> files;              // their paths by number
    std::map<std::string, std::string> contents; // of those that could be read
    std::vector<HostFacts> facts;                // of the descriptors, by number
    std::vector<std::string> skipped;
    Caught failure;

    // By the path beneath the config directory.
    [[nodiscard]] const ListedEntry *find(const std::string &path) const
    {
        const std::string inside = std::string(inside_config) + "/" + path;
        const auto found = std::find_if(entries.begin(), entries.end(), [&](const ListedEntry &entry) { return entry.path == inside; });
        return found == entries.end() ? nullptr : &*found;
    }
    [[nodiscard]] bool is(const std::string &path, EntryKind kind) const { return find(path) != nullptr && find(path)->kind == kind; }
    [[nodiscard]] std::optional<std::string> content(const std::string &path) const
    {
        const auto found = contents.find(std::string(inside_config) + "/" + path);
        return found == contents.end() ? std::nullopt : std::optional(found->second);
    }
    [[nodiscard]] bool was_skipped(const std::string &path, const std::string &reason) const
    {
        return std::any_of(skipped.begin(), skipped.end(),
                           [&](const std::string &text) { return has(text, "config: skipped " + path + ": ") && has(text, reason); });
    }
};

inline std::string bytes_of(FdRef fd)
{
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t count = 0; (count = ::pread(fd.get(), buffer.data(), buffer.size(), static_cast<off_t>(text.size()))) > 0;)
        text.append(buffer.data(), static_cast<std::size_t>(count));
    return text;
}

// What a writer says that asks for everything.
class Asking {
public:
    explicit Asking(Reading &reading) : reading_(reading) {}

    void take(const Packet &packet, FdRef transfer)
    {
        const SyncMessage message = decode_fields<SyncMessage>(packet.bytes);
        if (message.step == SyncStep::document)
            reading_.documents.push_back(
                {message.name, message.place, packet.fds.empty() ? std::nullopt : std::optional(bytes_of(packet.fds[0]))});
        for (const auto &entry : message.entries) {
            reading_.entries.push_back(entry);
            if (entry.kind == EntryKind::file) reading_.files.push_back(entry.path);
        }
        std::size_t next = 0;
        for (const auto &content : message.contents) {
            CHECK(content.number == answered_++);
            reading_.facts.push_back(content.facts);
            if (content.readable) reading_.contents[reading_.files.at(content.number)] = bytes_of(packet.fds.at(next++));
        }
        CHECK((message.step != SyncStep::contents || next == packet.fds.size()));
        const bool is_end = message.step == SyncStep::end_of_listing;
        if (is_end || (message.step == SyncStep::contents && answered_ == asked_)) ask(transfer);
    }

private:
    void ask(FdRef transfer)
    {
        std::vector<std::uint64_t> numbers;
        while (numbers.size() < wanted_limit && asked_ < reading_.files.size())
            numbers.push_back(asked_++);
        send_packet(transfer, encode(WantedNumbers{numbers}), {}, in_seconds(10));
    }

    Reading &reading_;
    std::uint64_t asked_ = 0;
    std::uint64_t answered_ = 0;
};

// `when_listed` is called between the listing and the first request.
inline Reading read_as_user(
    const ReadingPlan &plan, const std::function<void()> &when_listed = [] {})
{
    const AsRoot root = AsRoot::claim();
    auto [sending, receiving] = make_channel();
    Child reader(root, "reader", user_account(), {sending.get()},
                 [&, to = FdRef(sending)](const AsUser &self, FdRef channel) { read_config(self, plan, to, channel); });
    sending.reset();
    Reading reading;
    Asking asking(reading);
    bool done = false;
    bool closed = false;
    while (!done || !closed) {
        std::array<pollfd, 2> waits{pollfd{closed ? -1 : receiving.get(), POLLIN, 0},
                                    pollfd{done ? -1 : reader.channel().get(), POLLIN, 0}};
        REQUIRE(::poll(waits.data(), waits.size(), 20'000) > 0);
        if (waits[0].revents != 0) {
            if (const auto packet = receive_packet(receiving, in_seconds(10))) {
                if (decode_fields<SyncMessage>(packet->bytes).step == SyncStep::end_of_listing) when_listed();
                asking.take(*packet, receiving);
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

inline Reading read_as_user(const Host &host)
{
    return read_as_user(host.plan());
}

} // namespace pi_agent::test
