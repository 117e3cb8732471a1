// Sends one datagram an entry (systemd.io, native journal protocol). It does not use sd_journal_sendv(3): without a journal that reports
// success, and if the journal hangs it waits for ever. Its library would also cost every start of `pi` more than the rest of the wrapper
// does.
#include "common/record/record_event.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

namespace pi_agent {

namespace {

constexpr std::string_view socket_path = "/run/systemd/journal/socket";

// A newline in a value would begin another field, so such a value goes with its length.
void append(std::string &entry, const JournalField &field)
{
    if (field.value.find('\n') == std::string::npos) {
        entry += field.name + "=" + field.value + "\n";
        return;
    }
    entry += field.name + "\n";
    for (unsigned shift = 0; shift < 64; shift += 8)
        entry += static_cast<char>((std::uint64_t{field.value.size()} >> shift) & 0xFFU);
    entry += field.value + "\n";
}

} // namespace

std::string encode_journal_entry(const std::vector<JournalField> &fields)
{
    std::string entry;
    for (const auto &field : fields)
        append(entry, field);
    return entry;
}

// A journal with much to do has a full queue for a while (unix(7): of net.unix.max_dgram_qlen entries).
bool send_to_journal(const std::vector<JournalField> &fields, int patience_milliseconds) noexcept
{
    try {
        const std::string entry = encode_journal_entry(fields);
        const UniqueFd socket = UniqueFd::adopt(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
        const timeval patience{patience_milliseconds / 1000, static_cast<suseconds_t>(patience_milliseconds % 1000) * 1000};
        if (!socket || setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0) return false;
        const auto *to = reinterpret_cast<const sockaddr *>(&address);
        return sendto(socket.get(), entry.data(), entry.size(), MSG_NOSIGNAL, to, sizeof address) >= 0;
    } catch (const std::exception &) { // no memory for it
        return false;
    }
}

} // namespace pi_agent
