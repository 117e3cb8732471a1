// Lists and lines of a session's /etc.
#include "runner/plan/etc_files.hpp"

#include "common/base/build_settings.hpp"

#include <algorithm>
#include <array>

namespace pi_agent {

namespace {

// What libraries and shells of /usr read. No keys, nobody's names, nothing of services.
constexpr std::array<const char *, 28> shown_files = {
    "bash.bashrc",    "debian_version", "gai.conf",    "gitattributes", "gitconfig",  "host.conf",    "hostname",
    "hosts",          "inputrc",        "ld.so.cache", "ld.so.conf",    "localtime",  "locale.alias", "locale.conf",
    "lsb-release",    "mime.types",     "networks",    "nsswitch.conf", "os-release", "profile",      "protocols",
    "redhat-release", "resolv.conf",    "rpc",         "services",      "shells",     "timezone",     "xattr.conf"};

bool fits_a_line(const std::string &text)
{
    return !text.empty() &&
           std::none_of(text.begin(), text.end(), [](char byte) { return byte == ':' || static_cast<unsigned char>(byte) < ' '; });
}

} // namespace

std::vector<std::string> shown_etc_files()
{
    return {shown_files.begin(), shown_files.end()};
}

std::string passwd_text(const std::vector<Account> &accounts, const std::string &agent_name, const std::string &agent_home)
{
    std::string text;
    for (const auto &account : accounts) {
        const bool is_agent = account.name == agent_name;
        const std::string &home = is_agent ? agent_home : account.home;
        if (!fits_a_line(account.name) || !fits_a_line(home)) continue;
        text += account.name + ":x:" + std::to_string(account.uid.value()) + ":" + std::to_string(account.gid.value()) + "::" + home + ":" +
                (is_agent ? build::shell_path : "/usr/sbin/nologin") + "\n";
    }
    return text;
}

std::string group_text(const std::vector<std::pair<std::string, Gid>> &groups)
{
    std::string text;
    std::vector<gid_t> written;
    for (const auto &[name, gid] : groups) {
        if (!fits_a_line(name) || std::find(written.begin(), written.end(), gid.value()) != written.end()) continue;
        text += name + ":x:" + std::to_string(gid.value()) + ":\n";
        written.push_back(gid.value());
    }
    return text;
}

} // namespace pi_agent
