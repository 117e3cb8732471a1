// Gets files from the registry over HTTPS. The one home of libcurl and of the check sums.
#pragma once

#include "common/agents/fetch_order.hpp"

namespace pi_agent {

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

} // namespace pi_agent
