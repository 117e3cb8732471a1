// The reading half of the config sync.
#include "runner/as_user/reader.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "runner/as_user/named_files.hpp"

namespace pi_agent {

namespace {

constexpr int lock_patience_milliseconds = 1000;

// Lists the sources, and opens by number what the writer asks for.
class Reading {
public:
    Reading(const ReadingPlan &plan, FdRef transfer, FdRef channel)
        : plan_(plan), paths_(plan.agents), transfer_(transfer), channel_(channel), skipped_(channel),
          listing_(plan, paths_, transfer, channel, skipped_)
    {
    }

    void open_sources()
    {
        for (const auto &source : plan_.sources) {
            std::string left_out;
            tops_.push_back(open_source_directory(paths_, source.directory,
                                                  source.is_config ? "your config directory" : "your directory of skills", left_out));
            if (!left_out.empty()) send_answer(channel_, "config: " + left_out);
        }
    }

    // Looks at names, and at no session.
    void tell_sessions_outside()
    {
        const UserPlacePtr &top = tops_.front();
        if (!top || plan_.sessions_outside.empty()) return;
        try {
            const UserPlacePtr place = paths_.follow(top, plan_.sessions_outside);
            const UniqueFd directory = open_to_list(*place);
            if (!directory || !find_name(directory, [](const std::string &name) { return name.ends_with(".jsonl"); })) return;
            send_answer(channel_,
                        std::string(answer_told_once) + "config: your sessions of this directory (" +
                            shown_of(plan_.sources.front(), plan_.sessions_outside) +
                            ") stay outside, since they may hold what your agent read in other places; to bring copies of them in, "
                            "start once with: pi --pi-agent-sessions");
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): without sessions there is nothing to report
        }
    }

    void send_documents()
    {
        send_progress(channel_, "reading " + escape_for_display(plan_.sources.front().directory));
        for (std::size_t index = 0; index < tops_.size(); ++index) {
            if (!plan_.sources[index].is_config) continue;
            for (const auto &name : plan_.documents)
                send_document(tops_[index], name, plan_.sources[index].directory + "/" + name);
        }
    }

    void list()
    {
        for (std::size_t index = 0; index < tops_.size(); ++index)
            if (tops_[index]) listing_.list(index, tops_[index]);
        listing_.end();
    }

    void serve()
    {
        for (;;) {
            const std::optional<Packet> packet = receive_packet(transfer_, in_seconds(sync_patience_seconds));
            if (!packet) wait_for_the_end();
            const std::vector<std::uint64_t> numbers = decode_fields<WantedNumbers>(packet->bytes).numbers;
            if (numbers.empty()) break;
            for (std::size_t start = 0; start < numbers.size(); start += packet_fd_limit)
                send_contents({numbers.begin() + static_cast<std::ptrdiff_t>(start),
                               numbers.begin() + static_cast<std::ptrdiff_t>(std::min(start + packet_fd_limit, numbers.size()))});
        }
        skipped_.tell_rest();
    }

private:
    void send_document(const UserPlacePtr &directory, const std::string &name, const std::string &place)
    {
        HostFile file;
        if (directory) {
            wait_for_lock(directory->fd, name, lock_patience_milliseconds);
            std::string left_out;
            file = open_document(paths_, directory, name, place, left_out);
            if (!left_out.empty()) send_answer(channel_, "config: " + left_out);
        }
        SyncMessage message{SyncStep::document, name, place, {}, {}, file.by_agents};
        send_to_writer(transfer_, message, file.fd ? std::vector<int>{file.fd.get()} : std::vector<int>{});
    }

    void send_contents(const std::vector<std::uint64_t> &numbers)
    {
        SyncMessage message{SyncStep::contents, {}, {}, {}, {}};
        std::vector<UniqueFd> fds;
        for (const std::uint64_t number : numbers) {
            if (number >= listing_.files().size()) throw ProtocolError("the writer of the config wants what was not listed");
            const ListedFile &file = listing_.files()[number];
            HostFile opened = open_host_file(paths_, tops_[file.source], file.path);
            if (opened.fd && opened.facts.size > config_file_limit && defence_is_on("file-limit"))
                opened = {{}, {}, "larger than 256 MiB", opened.by_agents};
            if (!opened.fd) skipped_.name(shown_of(plan_.sources[file.source], file.path), opened.problem);
            message.contents.push_back(Content{number, opened.fd.is_open(), opened.facts});
            if (opened.fd) fds.push_back(std::move(opened.fd));
        }
        std::vector<int> borrowed;
        for (const auto &fd : fds)
            borrowed.push_back(fd.get());
        send_to_writer(transfer_, message, borrowed);
    }

    const ReadingPlan &plan_;
    UserPaths paths_;
    FdRef transfer_;
    FdRef channel_;
    std::vector<UserPlacePtr> tops_; // one for each source; none where it is missing
    SkippedNames skipped_;
    Listing listing_;
};

} // namespace

void read_config(const AsUser & /*user*/, const ReadingPlan &plan, FdRef transfer, FdRef channel)
{
    Reading reading(plan, transfer, channel);
    reading.open_sources();
    reading.tell_sessions_outside();
    reading.send_documents();
    reading.list();
    fault_point("listed");
    reading.serve();
    send_answer(channel, "");
}

} // namespace pi_agent
