// Copies the files that the reader hands over.
#include "runner/as_agent/fetching.hpp"

#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "runner/as_agent/replacement.hpp"

#include <algorithm>
#include <fcntl.h>

namespace pi_agent {

namespace {

constexpr std::size_t kept_notice_limit = 20;

} // namespace

Packet receive_from_reader(FdRef transfer)
{
    std::optional<Packet> packet = receive_packet(transfer, in_seconds(sync_patience_seconds));
    // The reader died: it reports the reason itself, and every file that was written so far is whole.
    if (!packet) throw Failure(ExitStatus::system_failure, "the process that reads your configuration ended early; try again");
    return std::move(*packet);
}

void KeptNames::report(const std::string &path, const std::string &kept)
{
    if (++count_ <= kept_notice_limit)
        send_answer(channel_, "config: what the agent had put at " + escape_for_display(path) + " in its home is kept beside it as " +
                                  escape_for_display(kept));
}

void KeptNames::tell_rest() const
{
    if (count_ > kept_notice_limit) send_answer(channel_, "config: and " + std::to_string(count_ - kept_notice_limit) + " more kept");
}

void Fetching::fetch()
{
    std::size_t asked = ask(0);
    for (std::size_t done = 0; done < wanted_.size();) {
        const std::size_t until = asked;
        asked = ask(asked);
        while (done < until)
            done += receive_contents(done);
        send_progress(channel_,
                      "copying your configuration (" + std::to_string(done) + " of " + std::to_string(wanted_.size()) + " files)");
    }
    send_packet(transfer_, encode(WantedNumbers{}), {}, in_seconds(sync_patience_seconds));
}

std::size_t Fetching::ask(std::size_t from)
{
    const std::size_t until = std::min(from + wanted_limit, wanted_.size());
    std::vector<std::uint64_t> numbers;
    for (std::size_t index = from; index < until; ++index)
        numbers.push_back(wanted_[index].number);
    if (!numbers.empty()) send_packet(transfer_, encode(WantedNumbers{numbers}), {}, in_seconds(sync_patience_seconds));
    return until;
}

std::size_t Fetching::receive_contents(std::size_t first)
{
    Packet packet = receive_from_reader(transfer_);
    const auto message = decode_fields<SyncMessage>(packet.bytes);
    if (message.step != SyncStep::contents || message.contents.empty() || first + message.contents.size() > wanted_.size())
        throw ProtocolError("the reader of the config broke the protocol");
    for (std::size_t index = 0; index < message.contents.size(); ++index) {
        const Wanted &wanted = wanted_[first + index];
        if (message.contents[index].number != wanted.number) throw ProtocolError("the reader of the config mixed up its files");
        if (message.contents[index].readable && manifest_.find(wanted.path) == nullptr) manifest_.intend(wanted.path, false);
    }
    manifest_.flush();
    std::size_t next_fd = 0;
    for (std::size_t index = 0; index < message.contents.size(); ++index) {
        if (!message.contents[index].readable) continue;
        if (next_fd == packet.fds.size()) throw ProtocolError("the reader of the config sent too few descriptors");
        bring(wanted_[first + index], packet.fds[next_fd++], message.contents[index].facts);
    }
    return message.contents.size();
}

void Fetching::bring(const Wanted &wanted, FdRef source, HostFacts facts)
{
    const auto [directory_path, name] = split_last(wanted.path);
    const FdRef directory = writing_.make(directory_path);
    if (wanted.compare && settle(wanted, directory, name, source, facts)) return;
    // Only the owner's bits: the home is private, and setuid bits never travel.
    Replacement file(places_.staging, static_cast<mode_t>((facts.mode & 0700U) | 0600U));
    file.copy_from(source, facts, channel_);
    file.set_modified(facts.modified);
    const std::string kept = file.commit(directory, name);
    if (!kept.empty()) kept_.report(wanted.path, kept);
    struct stat now = examine(file.fd(), "examining a config file in the agent's home");
    manifest_.set(wanted.path, ManifestEntry{false, facts, inside_facts(now), wall_clock_nanoseconds(), true});
}

// The times cannot tell whether the two files still hold the same, so this compares their bytes. False when they differ.
bool Fetching::settle(const Wanted &wanted, FdRef directory, const std::string &name, FdRef source, const HostFacts &facts)
{
    const UniqueFd inside = open_at(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    struct stat before {};
    if (!inside || fstat(inside.get(), &before) != 0 || !S_ISREG(before.st_mode)) return false;
    const std::int64_t now = wall_clock_nanoseconds();
    if (!have_same_bytes(source, inside, [&] { send_progress(channel_); })) return false;
    manifest_.set(wanted.path, ManifestEntry{false, facts, inside_facts(before), now, true});
    return true;
}

} // namespace pi_agent
