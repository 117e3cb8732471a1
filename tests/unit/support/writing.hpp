// Runs the writer of the config as the agent, and takes the reader's place.
#pragma once

#include "runner/as_agent/sync_messages.hpp"
#include "runner/as_agent/writer.hpp"
#include "runner/as_user/reader.hpp"
#include "runner/root/errand/errand.hpp"
#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"

#include <fstream>
#include <functional>
#include <sstream>

namespace pi_agent::test {

namespace fs = std::filesystem;

inline std::string content_of(const std::string &path)
{
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

inline std::string text_of(const Caught &caught)
{
    return std::to_string(caught.status) + " " + caught.text;
}

// The agent's home, and a directory of the agent outside it: only care, not file permissions, keeps the writer out of that.
struct Agent {
    Agent()
        : home(make_private(place, "home", agent_account())), outside(make_private(place, "outside", agent_account())),
          staging(make_private(place, "staging", agent_account()))
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
    // Unfinished files, which are made out of the agent's sight.
    [[nodiscard]] bool has_leftovers() const { return !fs::is_empty(staging); }
    // The paths of what was set aside of `name`.
    [[nodiscard]] std::vector<std::string> kept(const std::string &name) const
    {
        const fs::path path = *this / name;
        std::vector<std::string> found;
        for (const auto &entry : fs::directory_iterator(path.parent_path())) {
            const std::string other = entry.path().filename();
            if (other.size() == path.filename().string().size() + 14 &&
                other.compare(0, other.size() - 8, path.filename().string() + ".kept-") == 0)
                found.push_back(entry.path());
        }
        return found;
    }

    TemporaryDirectory place;
    std::string home;
    std::string outside;
    std::string staging;
};

// What a reader has to tell: documents, and a listing with real files behind it.
class Listing {
public:
    void document(const std::string &name, const std::optional<std::string> &text) { documents_.emplace_back(name, text); }
    void file(const std::string &path, const std::string &text, mode_t mode = 0644)
    {
        const std::string source = sources_ / std::to_string(++count_);
        std::ofstream(source, std::ios::binary) << text;
        const timespec when{1'600'000'000, 123'456'789};
        const std::array<timespec, 2> times{when, when};
        REQUIRE(::utimensat(AT_FDCWD, source.c_str(), times.data(), 0) == 0);
        set_mode(source, mode);
        struct stat facts {};
        REQUIRE(::stat(source.c_str(), &facts) == 0);
        add({EntryKind::file, inside(path), facts_of(facts)});
        files_.back() = source;
    }
    void directory(const std::string &path) { add({EntryKind::directory, inside(path), {}}); }
    void unreadable(const std::string &path) { add({EntryKind::unreadable, inside(path), {}}); }
    // As it is, not beneath the config directory.
    void add(ListedEntry entry)
    {
        if (entry.kind == EntryKind::file) files_.emplace_back("/dev/null");
        entries_.push_back(std::move(entry));
    }

    void send(FdRef transfer) const
    {
        for (const auto &[name, text] : documents_) {
            UniqueFd source;
            if (text) source = open_path(sources_.write("document", *text));
            send_packet(transfer, encode(SyncMessage{SyncStep::document, name, "/host/" + name, {}, {}}),
                        source ? std::vector<int>{source.get()} : std::vector<int>{}, in_seconds(10));
            if (text) fs::remove(sources_ / "document"); // the descriptor is all that the writer has
        }
        if (!entries_.empty()) send_packet(transfer, encode(SyncMessage{SyncStep::listing, {}, {}, entries_, {}}), {}, in_seconds(10));
        send_packet(transfer, encode(SyncMessage{SyncStep::end_of_listing, {}, {}, {}, {}}), {}, in_seconds(10));
    }

    // The descriptor of a file by its number, and what a reader says of it.
    [[nodiscard]] std::pair<UniqueFd, Content> open(std::uint64_t number) const
    {
        UniqueFd fd = open_path(files_.at(number));
        struct stat facts {};
        REQUIRE(::fstat(fd.get(), &facts) == 0);
        return {std::move(fd), Content{number, true, facts_of(facts)}};
    }

private:
    static std::string inside(const std::string &path) { return std::string(agent_directory) + "/" + path; }

    TemporaryDirectory sources_;
    int count_ = 0;
    std::vector<std::pair<std::string, std::optional<std::string>>> documents_;
    std::vector<ListedEntry> entries_;
    std::vector<std::string> files_; // by number
};

// Answers one request; false ends the reader.
using Answer = std::function<bool(FdRef transfer, const std::vector<std::uint64_t> &numbers, const Listing &listing)>;

inline bool answer_honestly(FdRef transfer, const std::vector<std::uint64_t> &numbers, const Listing &listing)
{
    for (std::size_t start = 0; start < numbers.size(); start += packet_fd_limit) {
        SyncMessage message{SyncStep::contents, {}, {}, {}, {}};
        std::vector<UniqueFd> fds;
        std::vector<int> borrowed;
        for (std::size_t index = start; index < std::min(start + packet_fd_limit, numbers.size()); ++index) {
            auto [fd, content] = listing.open(numbers[index]);
            message.contents.push_back(content);
            borrowed.push_back(fd.get());
            fds.push_back(std::move(fd));
        }
        send_packet(transfer, encode(message), borrowed, in_seconds(10));
    }
    return !numbers.empty();
}

struct Written {
    Caught caught;
    std::vector<std::string> notices;
    std::vector<std::uint64_t> asked; // numbers of files
};

inline WritingPlan plan_with(const std::map<std::string, std::string> &managed = {})
{
    WritingPlan plan;
    for (const char *name : {"settings.json", "auth.json", "mcp-auth.json"})
        plan.documents[name];
    for (const auto &[name, text] : managed)
        plan.documents[name].managed = text;
    return plan;
}

// One sync; the manifest stays beside the agent's home.
inline Written write_as_agent(const Agent &agent, const std::function<void(FdRef)> &send, const Listing &listing, const Answer &answer,
                              const WritingPlan &plan = plan_with())
{
    const AsRoot root = AsRoot::claim();
    const UniqueFd home = open_path(agent.home, O_RDONLY | O_DIRECTORY);
    const UniqueFd staging = open_path(agent.staging, O_RDONLY | O_DIRECTORY);
    const UniqueFd manifest = open_path(agent.place / "manifest", O_RDWR | O_CREAT);
    const UniqueFd spare = open_path(agent.place / "manifest.new", O_RDWR | O_CREAT);
    const WritingPlaces places{home, staging, manifest, spare, FdRef(-1)};
    auto [sending, receiving] = make_channel();
    Child writer(root, "writer", agent_account(), {home.get(), staging.get(), manifest.get(), spare.get(), receiving.get()},
                 [&, from = FdRef(receiving)](const AsUser &self, FdRef channel) { write_config(self, places, plan, from, channel); });
    receiving.reset();
    Written written;
    try {
        send(sending);
        for (bool goes_on = true; goes_on;) {
            const auto packet = receive_packet(sending, in_seconds(20));
            if (!packet) break;
            const std::vector<std::uint64_t> numbers = decode_fields<WantedNumbers>(packet->bytes).numbers;
            written.asked.insert(written.asked.end(), numbers.begin(), numbers.end());
            goes_on = answer(sending, numbers, listing);
        }
    } catch (const SystemFailure &) { // the writer has ended already; it says why below
    }
    sending.reset();
    written.caught = failure_of([&] {
        for (std::string text = writer.receive().bytes; !text.empty() && text != answer_rewritten; text = writer.receive().bytes)
            written.notices.push_back(text);
    });
    return written;
}

inline Written write_as_agent(const Agent &agent, const Listing &listing, const WritingPlan &plan = plan_with())
{
    return write_as_agent(
        agent, [&](FdRef transfer) { listing.send(transfer); }, listing, answer_honestly, plan);
}

} // namespace pi_agent::test
