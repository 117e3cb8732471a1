// A journal of the test's own in a private /run: takes the entries that are sent, and a private place for logs beside it.
#pragma once

#include "support/private_run.hpp"

#include <array>
#include <filesystem>
#include <string>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

namespace pi_agent::test {

class FakeJournal {
public:
    FakeJournal()
    {
        std::filesystem::create_directories("/run/systemd/journal");
        socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        works_ = ::bind(socket_, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0;
    }
    FakeJournal(const FakeJournal &) = delete;
    FakeJournal &operator=(const FakeJournal &) = delete;
    FakeJournal(FakeJournal &&) = delete;
    FakeJournal &operator=(FakeJournal &&) = delete;
    ~FakeJournal()
    {
        ::close(socket_);
        std::filesystem::remove(path);
    }

    // What came since the last time, each entry as it was sent.
    std::vector<std::string> entries()
    {
        std::vector<std::string> found;
        std::array<char, 262'144> buffer{};
        for (;;) {
            const ssize_t length = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (length < 0) break;
            found.emplace_back(buffer.data(), static_cast<std::size_t>(length));
        }
        if (!works_) found.emplace_back("the test's journal could not be made");
        return found;
    }
    // The only one; what else came is said.
    std::string entry()
    {
        const auto all = entries();
        return all.size() == 1 ? all[0] : std::to_string(all.size()) + " entries";
    }

private:
    static inline const std::string path = "/run/systemd/journal/socket";
    int socket_ = -1;
    bool works_ = false;
};

// As in_private_run, with an empty /var/log too.
inline std::string in_private_logs(const std::function<std::string()> &task)
{
    return in_private_run([&]() -> std::string {
        if (::mount("none", "/var/log", "tmpfs", 0, "mode=0755") != 0) return no_private_run;
        return task();
    });
}

} // namespace pi_agent::test
