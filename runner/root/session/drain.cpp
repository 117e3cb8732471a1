// The file that keeps sessions from starting, and the locks by which root's own tries of the sandbox still start.
#include "runner/root/session/drain.hpp"

#include "common/base/files.hpp"
#include "runner/root/session/session_directory.hpp"

#include <cstdio>

namespace pi_agent {

namespace {

constexpr const char *drain_name = "drain";   // in /run/pi-agent
constexpr const char *probes_name = "probes"; // never written; each try locks the byte of its user
constexpr std::size_t drain_limit = 4096;
constexpr std::uint64_t microseconds_of_a_second = 1'000'000;

UniqueFd open_probes()
{
    return open_or_throw("opening the file of tries", open_runtime_directory(), probes_name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
}

struct flock byte_of(Uid user, short type)
{
    static_assert(sizeof(off_t) == 8, "each user's byte is their own");
    struct flock byte {};
    byte.l_type = type;
    byte.l_whence = SEEK_SET;
    byte.l_start = static_cast<off_t>(user.value());
    byte.l_len = 1;
    return byte;
}

} // namespace

std::optional<Drain> find_drain(const AsRoot & /*root*/)
{
    const std::string what = "looking whether this host is drained";
    const UniqueFd file = open_if_there(what, open_runtime_directory(), drain_name, O_RDONLY | O_NOFOLLOW);
    if (!file) return std::nullopt;
    const auto changed = examine(file, what).st_mtim;
    return Drain{read_whole(file, drain_limit, drain_name), static_cast<std::uint64_t>(changed.tv_sec) * microseconds_of_a_second +
                                                                static_cast<std::uint64_t>(changed.tv_nsec) / 1000};
}

void begin_drain(const AsRoot & /*root*/, const std::string &message)
{
    replace_runtime_file(drain_name, message, "draining this host");
}

bool end_drain(const AsRoot & /*root*/)
{
    const UniqueFd directory = open_runtime_directory();
    const bool was = unlinkat(directory.get(), drain_name, 0) == 0;
    if (!was) require_gone("ending the drain of this host");
    return was;
}

UniqueFd let_canary_start(const AsRoot & /*root*/, Uid user)
{
    UniqueFd probes = open_probes();
    struct flock byte = byte_of(user, F_RDLCK); // shared: several may try as one user
    if (fcntl(probes.get(), F_OFD_SETLK, &byte) != 0) throw_errno("telling starts of a try of the sandbox");
    return probes;
}

bool may_canary_start(const AsRoot & /*root*/, Uid user)
{
    struct flock byte = byte_of(user, F_WRLCK);
    if (fcntl(open_probes().get(), F_OFD_GETLK, &byte) != 0) throw_errno("looking for a try of the sandbox");
    return byte.l_type != F_UNLCK;
}

} // namespace pi_agent
