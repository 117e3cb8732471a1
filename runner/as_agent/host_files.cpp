// Copying single files of /etc into a session.
#include "runner/as_agent/host_files.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/seams/fault_point.hpp"
#include "runner/wire/answer.hpp"
#include "runner/wire/whole_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

// What libraries and shells of /usr read. No keys, nobody's names, nothing of services.
constexpr std::array<const char *, 28> shown_files = {
    "bash.bashrc",    "debian_version", "gai.conf",    "gitattributes", "gitconfig",  "host.conf",    "hostname",
    "hosts",          "inputrc",        "ld.so.cache", "ld.so.conf",    "localtime",  "locale.alias", "locale.conf",
    "lsb-release",    "mime.types",     "networks",    "nsswitch.conf", "os-release", "profile",      "protocols",
    "redhat-release", "resolv.conf",    "rpc",         "services",      "shells",     "timezone",     "xattr.conf"};

constexpr std::uint64_t is_missing = 0;
constexpr std::uint64_t is_read = 1;
constexpr std::uint64_t is_too_large = 2;

// As the agent. What cannot be read is as good as not there.
void send_file(const std::string &name, FdRef channel)
{
    const std::string path = "/etc/" + name;
    const UniqueFd file = UniqueFd::adopt(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat facts {};
    if (!file || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        send_long_answer(channel, Encoder().number(is_missing).bytes());
        return;
    }
    if (facts.st_size < 0 || static_cast<std::size_t>(facts.st_size) > host_file_limit) {
        send_long_answer(channel, Encoder().number(is_too_large).bytes());
        return;
    }
    const std::unique_ptr<char, decltype(&std::free)> canonical(realpath(path.c_str(), nullptr), &std::free);
    const std::string target = canonical ? canonical.get() : path;
    send_long_answer(channel, Encoder().number(is_read).text(target).text(read_whole(file, host_file_limit, path)).bytes());
}

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

HostFilesReader::HostFilesReader(const AsRoot &root, const Account &agent, const HostView &view) : view_(view)
{
    if (view.view == View::host) return;
    child_.emplace(root, "reader of the host's /etc", agent, std::vector<int>{}, [](const AsUser & /*agent*/, FdRef channel) {
        fault_point("reading-etc");
        for (const char *name : shown_files)
            send_file(name, channel);
    });
}

std::vector<std::string> HostFilesReader::show(const SessionDirectory &session, const std::vector<std::string> &left_out)
{
    std::vector<std::string> notices;
    if (!child_) return notices;
    for (const char *name : shown_files) {
        const std::string bytes = child_->receive_long(child_patience_seconds);
        Decoder decoder(bytes);
        const std::uint64_t state = decoder.number();
        if (state == is_too_large)
            notices.push_back(std::string("not shown to the agent: /etc/") + name + " (larger than " +
                              std::to_string(host_file_limit >> 20U) + " MiB); the policy's view_paths can show it");
        if (state != is_read) continue;
        const std::string target = decoder.text();
        const std::string content = decoder.text();
        decoder.end();
        const std::string own = std::string("/etc/") + name;
        if (is_shown(view_, own) || view_.links.contains(own)) continue; // view_paths
        if (std::find(left_out.begin(), left_out.end(), name) != left_out.end()) continue;
        if (target != own && is_shown(view_, target) && !session.has("root" + own)) // programs look at where localtime leads
            session.make_link("root" + own, target);
        else
            write_whole(session.make_late_file("root" + own), content, "the session's " + own);
    }
    child_.reset();
    return notices;
}

void show_accounts(const SessionDirectory &session, const HostView &view, const Account &user, const Account &agent,
                   const std::string &agent_home, std::optional<Gid> by_group)
{
    if (view.view == View::host) return;
    std::vector<Account> accounts;
    std::vector<std::pair<std::string, Gid>> groups;
    const auto add_group = [&](Gid gid) { groups.emplace_back(group_name(gid).value_or(""), gid); };
    const auto add = [&](const Account &account) {
        accounts.push_back(account);
        add_group(account.gid);
    };
    for (const char *name : {"root", "nobody"})
        if (const auto account = find_account(std::string(name))) add(*account);
    add(agent);
    add(user);
    if (by_group) add_group(*by_group);
    const auto write = [&](const std::string &path, const std::string &text) {
        if (!is_shown(view, path) && !view.links.contains(path))
            write_whole(session.make_file("root" + path), text, "the session's " + path);
    };
    write("/etc/passwd", passwd_text(accounts, agent.name, agent_home));
    write("/etc/group", group_text(groups));
}

} // namespace pi_agent
