// The settings of git that run programs, as data (git-config(1), gitattributes(5), git-submodule(1), git-lfs-config(5)).
#include "common/base/git_settings.hpp"

#include <algorithm>
#include <array>

namespace pi_agent {

namespace {

// Section and key; what is between, if anything, does not matter.
struct Rule {
    std::string_view section;
    std::string_view key;
};

constexpr std::array always = {
    Rule{"browser", "cmd"},
    Rule{"browser", "path"},
    Rule{"core", "alternaterefscommand"},
    Rule{"core", "askpass"},
    Rule{"core", "attributesfile"},
    Rule{"core", "editor"},
    Rule{"core", "gitproxy"},
    Rule{"core", "hookspath"},
    Rule{"core", "pager"},
    Rule{"core", "sshcommand"},
    Rule{"core", "virtualfilesystem"},
    Rule{"core", "worktree"},
    Rule{"credential", "helper"},
    Rule{"diff", "command"},
    Rule{"diff", "external"},
    Rule{"diff", "textconv"},
    Rule{"difftool", "cmd"},
    Rule{"difftool", "path"},
    Rule{"filter", "clean"},
    Rule{"filter", "process"},
    Rule{"filter", "smudge"},
    Rule{"gc", "recentobjectshook"},
    Rule{"gpg", "defaultkeycommand"},
    Rule{"gpg", "program"},
    Rule{"guitool", "cmd"},
    Rule{"hook", "command"},
    Rule{"imap", "tunnel"},
    Rule{"include", "path"},
    Rule{"includeif", "path"},
    Rule{"init", "templatedir"},
    Rule{"instaweb", "httpd"},
    Rule{"instaweb", "modulepath"},
    Rule{"interactive", "difffilter"},
    Rule{"lfs", "clean"},
    Rule{"lfs", "path"},
    Rule{"lfs", "smudge"},
    Rule{"man", "cmd"},
    Rule{"man", "path"},
    Rule{"merge", "driver"},
    Rule{"mergetool", "cmd"},
    Rule{"mergetool", "path"},
    Rule{"protocol", "allow"},
    Rule{"remote", "proxy"},
    Rule{"remote", "receivepack"},
    Rule{"remote", "uploadpack"},
    Rule{"remote", "vcs"},
    Rule{"sendemail", "cccmd"},
    Rule{"sendemail", "headercmd"},
    Rule{"sendemail", "sendmailcmd"},
    Rule{"sendemail", "smtpserver"},
    Rule{"sendemail", "tocmd"},
    Rule{"sequence", "editor"},
    Rule{"svn", "authors-prog"},
    Rule{"svn-remote", "authors-prog"},
    Rule{"tar", "command"},
    Rule{"trailer", "cmd"},
    Rule{"trailer", "command"},
    Rule{"uploadpack", "packobjectshook"},
};

// An address TRANSPORT::ADDRESS names a program git-remote-TRANSPORT; `ext::` runs the address itself.
constexpr std::array addresses = {
    Rule{"branch", "pushremote"}, Rule{"branch", "remote"}, Rule{"remote", "pushdefault"},
    Rule{"remote", "pushurl"},    Rule{"remote", "url"},    Rule{"submodule", "url"},
};

// Programs unless they are a truth value, which only switches git's own on or off.
constexpr std::array unless_truth = {Rule{"core", "fsmonitor"}};

template <std::size_t Count>
bool is_in(const std::array<Rule, Count> &rules, std::string_view section, std::string_view key)
{
    return std::any_of(rules.begin(), rules.end(), [&](const Rule &rule) { return rule.section == section && rule.key == key; });
}

bool is_truth_value(const std::optional<std::string> &value)
{
    if (!value) return true;
    std::string text = *value;
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    const bool number = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    return number || text == "true" || text == "yes" || text == "on" || text == "false" || text == "no" || text == "off";
}

bool has_transport(std::string_view address)
{
    return address.find("::") != std::string_view::npos;
}

} // namespace

bool runs_code(const GitSetting &setting)
{
    const std::string_view name = setting.name;
    const std::size_t first = name.find('.');
    const std::size_t last = name.rfind('.');
    if (first == std::string_view::npos) return false;
    const std::string_view section = name.substr(0, first);
    const std::string_view key = name.substr(last + 1);
    const std::string_view between = last > first ? name.substr(first + 1, last - first - 1) : std::string_view();
    const std::string_view value = setting.value ? std::string_view(*setting.value) : std::string_view();

    // An alias without `!` can begin with -c and name a program too.
    if (section == "alias" || is_in(always, section, key)) return true;
    if (is_in(unless_truth, section, key) || section == "pager") return !is_truth_value(setting.value);
    if (is_in(addresses, section, key)) return has_transport(value);
    if (section == "url") return has_transport(between);
    return section == "submodule" && key == "update" && value.substr(0, 1) == "!";
}

} // namespace pi_agent
