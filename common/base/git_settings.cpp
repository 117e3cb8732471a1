// Names and values of git's settings, and which settings make git run a program.
#include "common/base/git_settings.hpp"

#include "common/base/text.hpp"

namespace pi_agent {

namespace {

// The settings that run programs, as data: sections and keys; what is between, if anything, does not matter (git-config(1),
// gitattributes(5), git-submodule(1), git-lfs-config(5)).
constexpr std::string_view always =
    "browser.cmd browser.path core.alternaterefscommand core.askpass core.attributesfile core.editor core.gitproxy core.hookspath "
    "core.pager core.sshcommand core.virtualfilesystem core.worktree credential.helper diff.command diff.external diff.textconv "
    "difftool.cmd difftool.path filter.clean filter.process filter.smudge gc.recentobjectshook gpg.defaultkeycommand gpg.program "
    "guitool.cmd hook.command imap.tunnel include.path includeif.path init.templatedir instaweb.httpd instaweb.modulepath "
    "interactive.difffilter lfs.clean lfs.path lfs.smudge man.cmd man.path merge.driver mergetool.cmd mergetool.path protocol.allow "
    "remote.proxy remote.receivepack remote.uploadpack remote.vcs sendemail.cccmd sendemail.headercmd sendemail.sendmailcmd "
    "sendemail.smtpserver sendemail.tocmd sequence.editor svn.authors-prog svn-remote.authors-prog tar.command trailer.cmd trailer.command "
    "uploadpack.packobjectshook";

// An address TRANSPORT::ADDRESS names a program git-remote-TRANSPORT; `ext::` runs the address itself.
constexpr std::string_view addresses = "branch.pushremote branch.remote remote.pushdefault remote.pushurl remote.url submodule.url";

bool has_transport(std::string_view address)
{
    return address.find("::") != std::string_view::npos;
}

} // namespace

std::string git_rule(std::string_view name)
{
    const std::size_t first = name.find('.');
    if (first == std::string_view::npos) return "";
    return std::string(name.substr(0, first)).append(name.substr(name.rfind('.')));
}

std::string_view git_subsection(std::string_view name)
{
    const std::size_t first = name.find('.');
    const std::size_t last = name.rfind('.');
    return last > first ? name.substr(first + 1, last - first - 1) : std::string_view();
}

std::optional<bool> git_truth(const std::optional<std::string> &value)
{
    if (!value) return true;
    const std::string text = lower_case(*value);
    if (text.find_first_not_of("0123456789") == std::string::npos) return text.find_first_not_of('0') != std::string::npos;
    if (has_word("true yes on", text)) return true;
    return has_word("false no off", text) ? std::optional(false) : std::nullopt;
}

bool runs_code(const GitSetting &setting)
{
    const std::string_view name = setting.name;
    const std::size_t first = name.find('.');
    if (first == std::string_view::npos) return false;
    const std::string_view section = name.substr(0, first);
    const std::string rule = git_rule(name);
    const std::string_view value = setting.value ? std::string_view(*setting.value) : std::string_view();

    // An alias without `!` can begin with -c and name a program too.
    if (section == "alias" || has_word(always, rule)) return true;
    // Programs unless they are a truth value, which only switches git's own on or off.
    if (rule == "core.fsmonitor" || section == "pager") return !git_truth(setting.value);
    if (has_word(addresses, rule)) return has_transport(value);
    if (section == "url") return has_transport(git_subsection(name));
    return rule == "submodule.update" && value.substr(0, 1) == "!";
}

} // namespace pi_agent
