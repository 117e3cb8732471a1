// Has the key read, and writes it into the session.
#include "runner/root/errand/ssh_files.hpp"

#include "common/base/error.hpp"
#include "common/base/whole_file.hpp"
#include "common/seams/fault_point.hpp"
#include "runner/as_user/ssh_key.hpp"
#include "runner/root/errand/errand.hpp"

#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr const char *directory_inside = "run/pi-agent/ssh";
// ssh_config(5). Nobody can be asked, no other key is tried, and a host that the user does not know is refused.
constexpr const char *config = "Host *\n"
                               "    IdentityFile /run/pi-agent/ssh/key\n"
                               "    IdentitiesOnly yes\n"
                               "    IdentityAgent none\n"
                               "    BatchMode yes\n"
                               "    StrictHostKeyChecking yes\n"
                               "    UserKnownHostsFile /run/pi-agent/ssh/known_hosts\n"
                               "    GlobalKnownHostsFile none\n"
                               "    UpdateHostKeys no\n"
                               "    ForwardAgent no\n";

void write_file(const SessionDirectory &session, const std::string &name, const std::string &content)
{
    const std::string path = std::string(directory_inside) + "/" + name;
    write_whole(session.make_file(path), content, "/" + path);
}

} // namespace

SshFiles ask_ssh_files(const AsRoot &root, const Account &user, const AccessRules &rules, const AgentPlaces &agents)
{
    if (!rules.ssh_key) return {};
    try {
        return ask<SshFiles>(root, {"reader of the ssh key", user}, [&](const AsUser &) {
            fault_point("reading-ssh");
            return read_ssh_files(UserPaths(agents), *rules.ssh_key, user.home);
        });
    } catch (const Failure &failure) { // no reason to refuse a session
        return without_ssh_key(*rules.ssh_key, failure.what());
    }
}

void show_ssh_files(const AsRoot & /*root*/, const SessionDirectory &session, const Account &agent, const SshFiles &files)
{
    if (files.key.empty()) return;
    session.make_directory(directory_inside);
    write_file(session, "known_hosts", files.known_hosts);
    write_file(session, "config", config);
    // Root's, so that the agent cannot change it, and for the agent's group to read. Before there is anything in it.
    const UniqueFd key = session.make_file(std::string(directory_inside) + "/key");
    if (fchown(key.get(), 0, agent.gid.value()) != 0 || fchmod(key.get(), 0440) != 0) throw_errno("closing the copy of an ssh key");
    write_whole(key, files.key, "/run/pi-agent/ssh/key");
}

void name_ssh_command(EnvironmentInput &environment)
{
    environment.defaults["GIT_SSH_COMMAND"] = {"ssh -F /run/pi-agent/ssh/config", "users.NAME.ssh"};
}

} // namespace pi_agent
