// What a child that is the caller opened: project and home.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/fd.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// --- What the child that is the caller has opened of a project, on its way to its parent: facts and descriptors.

// Which directory of this host it is. The working directory's device is that of statx(2), a root's that of stat(2).
struct PlaceFacts {
    std::uint64_t device;
    std::uint64_t inode;
    std::uint64_t mount;
    friend bool operator==(const PlaceFacts &, const PlaceFacts &) = default;
};

struct OpenedPlace {
    UniqueFd directory; // O_PATH
    PlaceFacts facts;
};

// A directory of git's that a repository's `.git` file names (gitrepository-layout(5)).
struct GitDirectory {
    UniqueFd directory;  // O_PATH; none where it cannot be opened
    std::uint64_t mount; // that it lies in; root asks no file system of the user's, which need not answer
    std::string told;    // as the file names it
    std::string problem; // why it is not to be believed; empty where it names the repository in turn
};

struct Repository {
    UniqueFd top;                        // O_PATH: the nearest directory, from the working directory up, that has an entry `.git`
    std::uint64_t mount;                 // that it lies in
    std::vector<GitDirectory> elsewhere; // of a worktree, a submodule or a separate git directory: its own, then the common one
};

// By the child.
void send_place(FdRef channel, FdRef directory, const PlaceFacts &facts);
void send_repository(FdRef channel, const std::optional<Repository> &repository);

// By its parent. Both throw ProtocolError for another number of descriptors, or more than there can be.
OpenedPlace decode_place(Packet packet);
std::optional<Repository> decode_repository(Packet packet);

// --- What is shown of a user's home, on its way from the child that opened it.

// One that is there.
struct HomeDirectory {
    std::string path;    // relative to the user's home
    bool is_cache;       // else it is read-only inside
    UniqueFd directory;  // O_PATH
    std::string problem; // why it is not shown; empty where it is
};

struct OpenedHome {
    std::string path;                       // of the home, canonical; empty where it cannot be opened
    std::vector<HomeDirectory> directories; // in the order of the policy, first what is readable; what is missing is left out
};

// By the child.
void send_home(FdRef channel, const OpenedHome &home);
// By its parent; `next` is called for each packet. Throws ProtocolError for another number of descriptors, or more than there can be.
OpenedHome receive_home(const std::function<Packet()> &next);

} // namespace pi_agent
