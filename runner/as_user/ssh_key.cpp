// Reading the key as the user, and writing it into the session.
#include "runner/as_user/ssh_key.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/seams/defence.hpp"
#include "common/seams/fault_point.hpp"
#include "runner/as_user/host_file.hpp"
#include "runner/root/errand/child.hpp"
#include "runner/wire/answer.hpp"
#include "runner/wire/whole_file.hpp"

#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr const char *directory_inside = "run/pi-agent/ssh";
constexpr const char *system_known_hosts = "/etc/ssh/ssh_known_hosts";
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

// OpenSSH's own format says in its beginning how it is encrypted; the older one in a header.
bool has_passphrase(std::string_view key)
{
    const std::string_view begin = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
    const std::string_view unencrypted = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"; // base64 of "openssh-key-v1", and a cipher called "none"
    const std::size_t place = key.find(begin);
    if (place != std::string_view::npos) return key.substr(place + begin.size(), unencrypted.size()) != unencrypted;
    return key.find("ENCRYPTED") != std::string_view::npos;
}

std::string read_key(const UserPaths &paths, const std::string &path)
{
    const HostFile file = open_host_file(paths, path);
    if (!file.fd) throw Failure(ExitStatus::configuration, file.problem);
    std::string key = read_whole(file.fd, ssh_key_limit, "it");
    if (key.find("PRIVATE KEY-----") == std::string::npos)
        throw Failure(ExitStatus::configuration, "it holds no private key in PEM or OpenSSH format");
    if (has_passphrase(key))
        throw Failure(ExitStatus::configuration,
                      "it has a passphrase, which nobody can be asked for; make a key of its own for the agent: ssh-keygen -N ''");
    return key;
}

// A user without such a file knows no hosts.
std::string read_known_hosts(const UserPaths &paths, const std::string &path, std::vector<std::string> &notices)
{
    if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) return "";
    try {
        const HostFile file = open_host_file(paths, path);
        if (!file.fd) throw Failure(ExitStatus::configuration, file.problem);
        std::string hosts = read_whole(file.fd, known_hosts_limit, "it");
        if (!hosts.empty() && hosts.back() != '\n') hosts += '\n';
        return hosts;
    } catch (const Failure &failure) {
        notices.push_back("ssh: the agent's git does not know the hosts of " + escape_for_display(path) + ": " +
                          escape_for_display(failure.what()));
        return "";
    }
}

SshFiles decode_ssh_files(std::string_view bytes)
{
    Decoder decoder(bytes);
    SshFiles files{decoder.text(), decoder.text(), decoder.texts(3)};
    decoder.end();
    if (files.key.size() > ssh_key_limit || files.known_hosts.size() > 2 * known_hosts_limit + 2)
        throw ProtocolError("the key of the user's is not what was asked for");
    return files;
}

SshFiles without_key(const std::string &key, const std::string &problem)
{
    return {"", "", {"ssh: the agent's git cannot use the key " + escape_for_display(key) + ": " + escape_for_display(problem)}};
}

void write_file(const SessionDirectory &session, const std::string &name, const std::string &content)
{
    const std::string path = std::string(directory_inside) + "/" + name;
    write_whole(session.make_file(path), content, "/" + path);
}

} // namespace

SshFiles read_ssh_files(const UserPaths &paths, const std::string &key, const std::string &home)
{
    SshFiles files;
    try {
        files.key = read_key(paths, key);
    } catch (const Failure &failure) {
        return without_key(key, failure.what());
    }
    files.known_hosts =
        read_known_hosts(paths, home + "/.ssh/known_hosts", files.notices) + read_known_hosts(paths, system_known_hosts, files.notices);
    return files;
}

SshFiles ask_ssh_files(const AsRoot &root, const Account &user, const AccessRules &rules, const AgentPlaces &agents)
{
    if (!rules.ssh_key) return {};
    try {
        Child child(root, "reader of the ssh key", user, {}, [&](const AsUser &, FdRef channel) {
            fault_point("reading-ssh");
            const SshFiles files = read_ssh_files(UserPaths(agents), *rules.ssh_key, user.home);
            send_long_answer(channel, Encoder().text(files.key).text(files.known_hosts).texts(files.notices).bytes());
        });
        return decode_ssh_files(child.receive_long(child_patience_seconds));
    } catch (const Failure &failure) { // no reason to refuse a session
        return without_key(*rules.ssh_key, failure.what());
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
