// What is in the agent's home, against what the last sync left there; paths come directory by directory.
#pragma once

#include "common/base/fd.hpp"
#include "runner/as_agent/manifest.hpp"
#include "runner/plan/documents.hpp"

#include <string>
#include <sys/stat.h>

namespace pi_agent {

InsideFacts inside_facts(const struct stat &facts) noexcept;

// Keeps the directory of the last path open.
class LastDirectory {
public:
    explicit LastDirectory(FdRef top) : top_(top) {}

    // Opens it only to look; none when there is none, or a link on the way, with errno.
    [[nodiscard]] FdRef look(const std::string &path);
    // Opens it to remove what is in it; none as above.
    [[nodiscard]] FdRef find(const std::string &path);
    // Makes it.
    [[nodiscard]] FdRef make(const std::string &path);
    void forget() noexcept { known_ = false; }

private:
    void take(const std::string &path, UniqueFd fd);

    FdRef top_;
    std::string path_;
    UniqueFd fd_;
    int problem_ = 0;
    bool known_ = false;
};

// Only looks.
class InsideView {
public:
    explicit InsideView(FdRef home) : last_(home) {}

    // `known`: what the manifest has of this path, none when it has nothing.
    [[nodiscard]] InsideState state(const std::string &path, const ManifestEntry *known);
    [[nodiscard]] bool has_directory(const std::string &path) { return last_.look(path).get() >= 0; }
    // After something was removed.
    void forget() noexcept { last_.forget(); }

private:
    LastDirectory last_;
};

} // namespace pi_agent
