// Changes modes of directories for a session, from outside of its sandbox.
#include "runner/as_agent/directory_modes.hpp"

#include "common/seams/seams.hpp"
#include "runner/filter/seccomp_filter.hpp"
#include "runner/wire/launch_record.hpp"

namespace pi_agent {

namespace {

// Takes a descriptor: a name can lead elsewhere between the look and the change, while a descriptor stays with its directory.
int change_mode(FdRef object, mode_t mode, bool directories_alone)
{
    struct stat facts {};
    if (fstat(object.get(), &facts) != 0) return errno;
    if (!S_ISDIR(facts.st_mode) && directories_alone) return EPERM;
    // By this name, because the descriptor may be one for the place alone (O_PATH), which fchmod(2) refuses.
    const std::string name = "/proc/self/fd/" + std::to_string(object.get());
    return chmod(name.c_str(), mode) == 0 ? 0 : errno;
}

} // namespace

Account agent_with_groups_of(const Account &agent, const Account &user)
{
    Account both = agent;
    for (const gid_t group : user.groups)
        if (group != user.gid.value() && std::find(both.groups.begin(), both.groups.end(), group) == both.groups.end())
            both.groups.push_back(group);
    return both;
}

void serve_directory_modes(const AsUser & /*agent*/, FdRef channel)
{
    const bool directories_alone = defence_is_on("set-gid-directories-alone");
    install_mode_call_filter();
    while (const std::optional<Packet> asked = receive_packet(channel, Deadline::max())) {
        const auto request = decode_fields<ModeRequest>(asked->bytes);
        if (asked->fds.size() != 1) throw ProtocolError("a mode was asked for, and no directory came");
        send_packet(channel, encode(ModeAnswer{change_mode(asked->fds.front(), request.mode, directories_alone)}), {}, Deadline::max());
    }
}

} // namespace pi_agent
