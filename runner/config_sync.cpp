// Runs the two halves of the config sync and watches both.
#include "runner/config_sync.hpp"

#include "common/channel.hpp"
#include "common/defence.hpp"
#include "common/escape.hpp"
#include "runner/child.hpp"
#include "runner/reader.hpp"
#include "runner/writer.hpp"

#include <array>
#include <poll.h>

namespace pi_agent {

namespace {

constexpr int sync_patience_seconds = 60; // in all; each step has the children's own patience

// The reader's failure explains the writer's, so it is looked for first.
void rethrow_reader_failure(Child &reader)
{
    while (wait_for_input(reader.channel(), Clock::now()))
        if (const std::optional<Packet> packet = reader.receive_one(); packet && packet->bytes.empty()) return;
}

} // namespace

std::vector<std::string> sync_config(const AsRoot &root, const Account &user, const Account &agent, const std::string &config_directory,
                                     FdRef home, const std::string &managed, const SessionWatch &watch)
{
    auto [sending, receiving] = make_channel();
    Child writer(root, "writer of the config", agent, {home.get(), receiving.get()},
                 [&, from = FdRef(receiving)](const AsUser &self, FdRef channel) { write_config(self, home, managed, from, channel); });
    receiving.reset();
    Child reader(root, "reader of the config", user, {sending.get()},
                 [&, to = FdRef(sending)](const AsUser &self, FdRef channel) { read_config(self, config_directory, to, channel); });
    sending.reset();

    std::vector<std::string> skipped;
    bool reading = true;
    bool writing = true;
    const Deadline deadline = in_seconds(sync_patience_seconds);
    while (reading || writing) {
        std::array<pollfd, 4> waits{pollfd{reading ? reader.channel().get() : -1, POLLIN, 0},
                                    pollfd{writing ? writer.channel().get() : -1, POLLIN, 0}, pollfd{watch.wrapper.get(), POLLRDHUP, 0},
                                    pollfd{watch.termination.get(), POLLIN, 0}};
        const int ready = poll(waits.data(), waits.size(), child_patience_seconds * 1000);
        if (ready < 0 && errno != EINTR) throw_errno("waiting for the config sync");
        if (ready == 0)
            throw Failure(ExitStatus::system_failure, "reading " + config_directory + " made no progress for " +
                                                          std::to_string(child_patience_seconds) +
                                                          " seconds and was stopped; is a file system not answering?");
        if (ready < 0) continue;
        if ((waits[2].revents != 0 || waits[3].revents != 0) && defence_is_on("sync-ends-with-session"))
            throw Failure(ExitStatus::system_failure, "the session was ended while its configuration was read");
        if (Clock::now() >= deadline)
            throw Failure(ExitStatus::configuration, escape_for_display(config_directory) + " could not be read within " +
                                                         std::to_string(sync_patience_seconds) +
                                                         " seconds; is it on a slow file system, or larger than a configuration?");
        if (waits[0].revents != 0) {
            if (const std::optional<Packet> packet = reader.receive_one()) {
                if (packet->bytes.empty())
                    reading = false;
                else
                    skipped.push_back(packet->bytes);
            }
        } else if (waits[1].revents != 0) {
            try {
                if (writer.receive_one()) writing = false;
            } catch (const Failure &) {
                if (reading) rethrow_reader_failure(reader);
                throw;
            }
        }
    }
    return skipped;
}

} // namespace pi_agent
