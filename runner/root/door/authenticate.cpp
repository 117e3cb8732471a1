// Who is calling: sudo's word and the socket's creator must agree.
#include "runner/root/door/authenticate.hpp"

#include "common/base/error.hpp"
#include "common/seams/defence.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <sys/socket.h>

namespace pi_agent {

namespace {

template <typename Value>
Value socket_option(FdRef channel, int option)
{
    Value value{};
    socklen_t length = sizeof value;
    if (getsockopt(channel.get(), SOL_SOCKET, option, &value, &length) != 0 || length != sizeof value)
        throw Failure(ExitStatus::denied, "denied: standard input is not the wrapper's socket; this program is run by `pi`, not by hand");
    return value;
}

} // namespace

std::optional<Uid> parse_uid(const std::string &text) noexcept
{
    if (!defence_is_on("strict-uid")) return Uid(static_cast<uid_t>(std::strtoul(text.c_str(), nullptr, 10)));
    const bool digits =
        !text.empty() && text.size() <= 10 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || (text.size() > 1 && text[0] == '0')) return std::nullopt;
    std::uint64_t value = 0;
    for (const char digit : text)
        value = value * 10 + static_cast<std::uint64_t>(digit - '0');
    if (value >= std::numeric_limits<uid_t>::max()) return std::nullopt;
    return Uid(static_cast<uid_t>(value));
}

Account authenticate(const AsRoot & /*root*/, FdRef channel, const std::optional<std::string> &sudo_uid)
{
    const bool seqpacket = socket_option<int>(channel, SO_DOMAIN) == AF_UNIX && socket_option<int>(channel, SO_TYPE) == SOCK_SEQPACKET;
    if (!seqpacket && defence_is_on("channel-type"))
        throw Failure(ExitStatus::denied,
                      "denied: standard input is a socket, but not the wrapper's; this program is run by `pi`, not by hand");
    const auto peer = socket_option<ucred>(channel, SO_PEERCRED);
    if (!sudo_uid) throw Failure(ExitStatus::denied, "denied: not called through sudo; type `pi` as the user it is for");
    const std::optional<Uid> caller = parse_uid(*sudo_uid);
    if (!caller) throw Failure(ExitStatus::denied, "denied: SUDO_UID is not a user id");
    if (caller->value() == 0) throw Failure(ExitStatus::denied, "denied: root does not run the agent; type `pi` as an ordinary user");
    if (peer.uid != caller->value() && defence_is_on("peer-credentials"))
        throw Failure(ExitStatus::denied, "denied: the socket on standard input was made by uid " + std::to_string(peer.uid) +
                                              ", but sudo was called by uid " + *sudo_uid);
    std::optional<Account> account = find_account(*caller);
    if (!account) throw Failure(ExitStatus::denied, "denied: uid " + *sudo_uid + " is not in the user database");
    return *account;
}

} // namespace pi_agent
