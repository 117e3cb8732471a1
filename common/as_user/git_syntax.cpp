// Names and values of git's settings, which of them make git run a program, and git's syntax as git reads it.
#include "common/as_user/git_syntax.hpp"

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

constexpr bool is_space(char byte) noexcept
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; // git's own idea: no form feed
}

constexpr bool is_letter(char byte) noexcept
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

constexpr bool is_key_byte(char byte) noexcept
{
    return is_letter(byte) || (byte >= '0' && byte <= '9') || byte == '-';
}

class Parser {
public:
    explicit Parser(std::string_view text) : text_(text)
    {
        if (text_.substr(0, 3) == "\xef\xbb\xbf") text_.remove_prefix(3);
    }

    GitSettings run()
    {
        while (!at_end_ && settings_.is_valid)
            settings_.is_valid = take_one();
        return std::move(settings_);
    }

private:
    // A line feed for the end of the text too, and for a carriage return with its line feed.
    char next()
    {
        if (text_.empty()) {
            at_end_ = true;
            return '\n';
        }
        if (text_.substr(0, 2) == "\r\n") text_.remove_prefix(1);
        const char byte = text_.front();
        text_.remove_prefix(1);
        return byte;
    }

    // One white space, comment, section or setting. False at a mistake.
    bool take_one()
    {
        const char byte = next();
        if (is_space(byte)) return true;
        if (byte == '#' || byte == ';') {
            while (next() != '\n') {
            }
            return true;
        }
        if (byte == '[') return take_section();
        return is_letter(byte) && take_setting(byte);
    }

    bool take_section()
    {
        section_.clear();
        for (;;) {
            const char byte = next();
            if (at_end_) return false;
            if (byte == ']') break;
            if (is_space(byte)) {
                if (!take_subsection(byte)) return false;
                break;
            }
            if (!is_key_byte(byte) && byte != '.') return false;
            section_ += lower_case(byte);
        }
        const bool is_named = !section_.empty();
        section_ += '.';
        return is_named;
    }

    bool take_subsection(char byte)
    {
        while (is_space(byte)) {
            if (byte == '\n') return false;
            byte = next();
        }
        if (byte != '"') return false;
        section_ += '.';
        for (byte = next(); byte != '"'; byte = next()) {
            if (byte == '\\') byte = next();
            if (byte == '\n') return false;
            section_ += byte;
        }
        return next() == ']';
    }

    bool take_setting(char byte)
    {
        GitSetting setting{section_, std::nullopt};
        for (; !at_end_ && is_key_byte(byte); byte = next())
            setting.name += lower_case(byte);
        while (byte == ' ' || byte == '\t')
            byte = next();
        if (byte != '\n') {
            if (byte != '=' || !take_value(setting.value.emplace())) return false;
        }
        settings_.list.push_back(std::move(setting));
        return true;
    }

    bool take_value(std::string &value)
    {
        bool quoted = false;
        bool comment = false;
        std::string spaces; // kept only where something follows
        for (;;) {
            char byte = next();
            if (byte == '\n') return !quoted;
            if (comment) continue;
            if (is_space(byte) && !quoted) {
                if (!value.empty()) spaces += byte;
                continue;
            }
            if (!quoted && (byte == ';' || byte == '#')) {
                comment = true;
                continue;
            }
            value += spaces;
            spaces.clear();
            if (byte == '"') {
                quoted = !quoted;
                continue;
            }
            if (byte == '\\') {
                byte = next();
                if (byte == '\n') continue; // goes on in the next line
                if (!unescape(byte)) return false;
            }
            value += byte;
        }
    }

    static bool unescape(char &byte)
    {
        const std::size_t named = std::string_view("tbn").find(byte);
        if (named == std::string_view::npos) return byte == '\\' || byte == '"';
        byte = "\t\b\n"[named];
        return true;
    }

    std::string_view text_;
    bool at_end_ = false;
    std::string section_; // with its dot
    GitSettings settings_;
};

} // namespace

std::string git_rule(std::string_view name)
{
    const std::size_t first = name.find('.');
    return first == std::string_view::npos ? "" : std::string(name.substr(0, first)).append(name.substr(name.rfind('.')));
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

GitSettings parse_git_settings(std::string_view text)
{
    return Parser(text).run();
}

std::optional<std::string> worktree_of_config(std::string_view text)
{
    std::optional<std::string> worktree;
    for (auto &setting : parse_git_settings(text).list)
        if (setting.name == "core.worktree") worktree = std::move(setting.value);
    if (worktree && worktree->empty()) return std::nullopt;
    return worktree;
}

std::vector<GitSetting> read_git_settings(std::string_view output)
{
    std::vector<GitSetting> settings;
    while (!output.empty()) {
        const std::size_t end = output.find('\0');
        if (end == std::string_view::npos) break; // cut off
        const std::string_view entry = output.substr(0, end);
        output.remove_prefix(end + 1);
        const std::size_t newline = entry.find('\n');
        GitSetting &one = settings.emplace_back(GitSetting{std::string(entry.substr(0, newline)), std::nullopt});
        if (newline != std::string_view::npos) one.value = entry.substr(newline + 1);
    }
    return settings;
}

} // namespace pi_agent
