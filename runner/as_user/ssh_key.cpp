// Reading the key as the user.
#include "runner/as_user/ssh_key.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/base/whole_file.hpp"
#include "runner/as_user/host_file.hpp"

#include <string_view>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr const char *system_known_hosts = "/etc/ssh/ssh_known_hosts";
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

} // namespace

SshFiles read_ssh_files(const UserPaths &paths, const std::string &key, const std::string &home)
{
    SshFiles files;
    try {
        files.key = read_key(paths, key);
    } catch (const Failure &failure) {
        return without_ssh_key(key, failure.what());
    }
    files.known_hosts =
        read_known_hosts(paths, home + "/.ssh/known_hosts", files.notices) + read_known_hosts(paths, system_known_hosts, files.notices);
    return files;
}

} // namespace pi_agent
