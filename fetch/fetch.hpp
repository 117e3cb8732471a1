// Node and npm from the registry's own archives, by their check sums; then npm, for the agent.
#pragma once

#include "common/agents/fetch_order.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// --- Starts tar and npm in the unit that this program has for itself: what they leave running ends with it.

struct ProgramOutcome {
    int status = 0;     // exit code, or 128 and the signal
    std::string output; // the end of what it wrote, to either stream
};

// Runs a program by its path, in `directory`, without input, and waits for it. `variables` ("NAME=value") are all that it gets. Throws
// SystemFailure; ends this program where nobody listens to it any more.
ProgramOutcome run_fetch_program(const std::vector<std::string> &arguments, const std::vector<std::string> &variables,
                                 const std::string &directory);

// Whether somebody listens to what this program says. pi-agentctl may have been killed: then there is nothing left to do.
bool is_heard();

// --- Gets files from the registry over HTTPS. The one home of libcurl and of the check sums.

// How far a download is: bytes that came, and bytes that it has (0: not known).
using DownloadProgress = std::function<void(std::uint64_t got, std::uint64_t all)>;

class Downloader {
public:
    // `certificate_file`: in the place of the host's; empty for the host's.
    Downloader(const FetchOrder &order, std::string certificate_file);
    ~Downloader();
    Downloader(const Downloader &) = delete;
    Downloader &operator=(const Downloader &) = delete;

    // A text, at most `limit` bytes. Throws Failure(unavailable), which names the URL, the reason and what to do.
    std::string get_text(const std::string &url, std::size_t limit);
    // A new file `path` of at most `limit` bytes whose sha512 is `digest`; nothing of another one stays. Throws as above, and
    // SystemFailure.
    void get_file(const std::string &url, const std::string &path, std::size_t limit, const std::string &digest,
                  const DownloadProgress &progress);

private:
    const FetchOrder &order_;
    std::string certificate_file_;
};

// --- The steps of a fetch, in the directory that systemd made for it.

using TellFetch = std::function<void(const FetchLine &line)>;

// What lies in the directory fetched_tree at the end: the node, and what npm made. Throws Failure, in words for the administrator.
FetchLine fetch_agent(const FetchOrder &order, const TellFetch &tell);

} // namespace pi_agent
