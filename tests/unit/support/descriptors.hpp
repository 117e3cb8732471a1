// Descriptors for tests: raw packets as a hostile peer would send them, and a count that shows leaks.
#pragma once

#include "common/base/channel.hpp"

#include <array>
#include <cstring>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <vector>

namespace pi_agent::test {

inline std::size_t count_open_descriptors()
{
    const std::filesystem::directory_iterator list("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(list), end(list)));
}

inline UniqueFd open_path(const std::string &path, int flags = O_RDONLY)
{
    UniqueFd fd = UniqueFd::adopt(::open(path.c_str(), flags | O_CLOEXEC, 0600));
    REQUIRE_MESSAGE(fd.is_open(), path);
    return fd;
}

inline ino_t inode_of(FdRef fd)
{
    struct stat facts {};
    REQUIRE(::fstat(fd.get(), &facts) == 0);
    return facts.st_ino;
}

// Sends one packet with no check of our own.
inline void send_raw(FdRef channel, const std::string &bytes, const std::vector<int> &fds = {})
{
    constexpr std::size_t most = 64;
    REQUIRE(fds.size() <= most);
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * most)> control{};
    std::string copy = bytes;
    iovec part{copy.data(), copy.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
        cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
        std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
    }
    REQUIRE(::sendmsg(channel.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

} // namespace pi_agent::test
