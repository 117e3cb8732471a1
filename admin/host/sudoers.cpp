// The sudo rule, and which sudo reads it.
#include "admin/host/sudoers.hpp"

#include "admin/programs/program.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/base/version.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_load.hpp"
#include "common/seams/seams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fcntl.h>
#include <set>
#include <sstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr const char *file_name = "pi-agent";
constexpr const char *temporary_name = "pi-agent.new"; // sudo skips names with a dot
constexpr mode_t file_mode = 0440;
constexpr std::size_t sudoers_limit = std::size_t{16} << 20U; // as older versions wrote it: a line for each of a hundred thousand users
// sudo reads every line at every start: these take it 2 ms, and a hundred thousand lines 350 ms.
constexpr std::size_t most_lines = 500;
constexpr std::string_view everybody = "ALL, !%"; // and the agents' group

UniqueFd open_rules(const std::string &directory)
{
    return open_trusted(directory, O_RDONLY | O_DIRECTORY, "directory of sudo rules");
}

// The installed rule, if root owns it and others cannot write it.
struct Installed {
    std::string text;
    bool exact; // owner and mode are as they must be
};

std::optional<Installed> read_installed(FdRef directory, const std::string &path)
{
    struct stat status {};
    if (::fstatat(directory.get(), file_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return std::nullopt;
        throw_errno("cannot examine " + path);
    }
    if (!S_ISREG(status.st_mode)) throw Failure(ExitStatus::configuration, path + " is not a regular file; move it away");
    const bool exact = status.st_uid == 0 && status.st_gid == 0 && (status.st_mode & 07777U) == file_mode;
    return Installed{read_trusted_file(path, sudoers_limit, "sudo rule"), exact};
}

// Checks everything that sudo reads, and that it reads `path`.
void require_sudo_accepts(const std::string &path, SudoKind kind, const std::vector<std::string> &users)
{
    const auto result = run_program({visudo_of(kind), "-c"});
    if (result.status != 0)
        throw Failure(ExitStatus::configuration,
                      visudo_of(kind) + " -c refuses the sudo configuration, so the new rule was taken back: " + one_line(result.output));
    if (does_sudo_read(kind, path, result.output, users)) return;
    throw Failure(ExitStatus::configuration, "sudo does not read " + path + ", so the new rule was taken back; add '@includedir " +
                                                 path.substr(0, path.rfind('/')) + "' to " + main_sudoers_of(kind));
}

void put_back(FdRef directory, const std::optional<Installed> &former, const std::string &path)
{
    if (!former) return remove_root_file(directory, file_name, path);
    replace_root_file(directory, file_name, former->text, file_mode, path);
}

void replace(FdRef directory, const std::optional<Installed> &former, const std::string &text, const std::string &path, SudoKind kind,
             const std::vector<std::string> &users)
{
    const auto temporary_path = path.substr(0, path.rfind('/') + 1) + temporary_name;
    write_beside(directory, temporary_name, text, file_mode, temporary_path);
    const auto result = run_program({visudo_of(kind), "-c", "-f", temporary_path});
    if (result.status != 0) {
        ::unlinkat(directory.get(), temporary_name, 0); // best effort: sudo ignores the name
        throw Failure(ExitStatus::internal, visudo_of(kind) + " refuses the rule that was generated: " + one_line(result.output));
    }
    move_into_place(directory, temporary_name, file_name, path);
    try {
        require_sudo_accepts(path, kind, users);
    } catch (...) {
        put_back(directory, former, path);
        throw;
    }
}

// Users of users.d whom a group's line lets in already: sudo reads every line at each start, and there may be very many of these.
std::set<std::string> allowed_by_group(const Policy &policy, const std::string &policy_file, const MembersOf &members_of)
{
    std::set<std::string> of_files;
    for (const auto &entry : policy.users)
        if (!entry.is_group && user_of_file(entry.where.file, policy_file)) of_files.insert(entry.name);
    std::set<std::string> allowed;
    if (of_files.empty()) return allowed;
    for (const auto &entry : policy.users)
        if (entry.is_group)
            for (const auto &member : members_of(entry.name))
                if (of_files.contains(member)) allowed.insert(member);
    return allowed;
}

} // namespace

std::string sudoers_text(const Policy &policy, const std::string &policy_file, const std::string &runner, SudoKind kind,
                         const MembersOf &members_of)
{
    if (runner.front() != '/' || !is_made_of(runner, "/-_."))
        throw Failure(ExitStatus::internal, "the runner's path " + escape_for_display(runner) + " needs quoting in sudoers");
    std::string text = fmt::format("# Generated by pi-agentctl apply from {0}.\n"
                                   "# Changes made here are lost: change the policy and run it again.\n"
                                   "# What other rules say of the environment and of terminals does not reach the runner.\n"
                                   "Defaults!{1} env_reset, !env_keep, !env_check, !use_pty\n",
                                   escape_for_display(policy_file), runner);
    // Lines of their own: sudo-rs does not know these settings, has no such features, and would leave out the line above with them.
    // Without a PAM session to close, sudo becomes the runner instead of waiting for it (sudoers(5), pam_session). PAM still decides who
    // may start it.
    if (kind != SudoKind::rs)
        text += fmt::format("Defaults!{} !setenv, !requiretty, !log_input, !log_output, !pam_session, !pam_setcred\n", runner);
    // A sudo that follows every program of the runner waits for ever, deaf to signals (seen with 1.9.13 and 1.9.16). The other settings end
    // sessions, or start the runner elsewhere, as half root, unable to start programs, or under limits that it cannot lift.
    if (kind == SudoKind::original)
        text += fmt::format("Defaults!{0} !log_subcmds, !intercept, !command_timeout, !noexec, !runcwd, !stay_setuid\n"
                            "Defaults!{0} !rlimit_as, !rlimit_cpu, !rlimit_data, !rlimit_fsize, !rlimit_locks, !rlimit_memlock, "
                            "!rlimit_nofile, !rlimit_nproc, !rlimit_rss, !rlimit_stack\n",
                            runner);
    // By number if the name means something else to sudo.
    const auto who = [](const UserEntry &entry) -> std::string {
        if (is_plain_name(entry.name) || !defence_is_on("numbers-in-sudoers")) return (entry.is_group ? "%" : "") + entry.name;
        if (entry.is_group) {
            const auto gid = find_group(entry.name);
            return gid ? "%#" + std::to_string(gid->value()) : "";
        }
        const auto user = find_account(entry.name);
        return user ? "#" + std::to_string(user->uid.value()) : "";
    };
    const std::set<std::string> by_group = allowed_by_group(policy, policy_file, members_of);
    std::vector<std::string> names;
    for (const auto &entry : policy.users)
        if (std::string name = who(entry); !name.empty() && (entry.is_group || !by_group.contains(entry.name)))
            names.push_back(std::move(name));
    if (names.size() > most_lines) {
        text += fmt::format(
            "# One line for everybody but agents, because the policy would need more than {}, which sudo reads at every start.\n"
            "# The runner reads the policy, and refuses everybody whom that does not authorise.\n",
            most_lines);
        names = {defence_is_on("agents-out-of-rule") ? std::string(everybody) + policy.agent.group : "ALL"};
    }
    for (const auto &name : names)
        text += fmt::format("{} ALL=(root) NOPASSWD: {} \"\"\n", name, runner); // the empty string: no arguments at all
    return text;
}

void require_valid_rule(const std::string &text, SudoKind kind)
{
    const auto visudo = visudo_of(kind);
    // The first versions of sudo-rs take "-" for a name.
    const auto result = run_program({visudo, "-c", "-f", kind == SudoKind::rs ? "/dev/stdin" : "-"}, text);
    if (result.status != 0)
        throw Failure(ExitStatus::internal, visudo + " refuses the rule that was generated: " + one_line(result.output));
}

void install_sudoers(const AsRoot & /*root*/, const std::string &directory, const std::string &text, SudoKind kind,
                     const std::vector<std::string> &users, Changes &changes)
{
    const auto path = directory + "/" + file_name;
    const auto directory_fd = open_rules(directory);
    const auto former = read_installed(directory_fd, path);
    if (former && former->exact && former->text == text) return;
    changes.make(
        "install the sudo rule " + path, [&] { replace(directory_fd, former, text, path, kind, users); },
        text_diff(former ? path : "/dev/null", former ? former->text : "", path, text));
}

std::optional<std::string> read_sudoers(const AsRoot & /*root*/, const std::string &directory)
{
    const auto installed = read_installed(open_rules(directory), directory + "/" + file_name);
    return installed ? std::optional(installed->text) : std::nullopt;
}

void put_back_sudoers(const AsRoot & /*root*/, const std::string &directory, const std::optional<std::string> &former)
{
    put_back(open_rules(directory), former ? std::optional(Installed{*former, true}) : std::nullopt, directory + "/" + file_name);
}

bool lets_start(const std::string &text, const Account &user)
{
    const auto is_member = [&user](const std::optional<Gid> &group) {
        return group && std::find(user.groups.begin(), user.groups.end(), group->value()) != user.groups.end();
    };
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(everybody)) {
            const auto group = line.substr(everybody.size());
            return !is_member(find_group(group.substr(0, group.find(' '))));
        }
        const std::string who = line.substr(0, line.find(' '));
        if (who == user.name || who == "#" + std::to_string(user.uid.value())) return true;
        const auto number = who.starts_with("%#") ? to_number<gid_t>(std::string_view(who).substr(2)) : std::nullopt;
        const auto group = number ? std::optional(Gid(*number)) : who.starts_with('%') ? find_group(who.substr(1)) : std::nullopt;
        if (is_member(group)) return true;
    }
    return false;
}

void remove_sudoers(const AsRoot & /*root*/, const std::string &directory, Changes &changes)
{
    const auto path = directory + "/" + file_name;
    const auto directory_fd = open_rules(directory);
    if (!has_name(directory_fd, file_name, "cannot examine " + path)) return;
    changes.make("remove the sudo rule " + path + ": nobody can start pi now", [&] { remove_root_file(directory_fd, file_name, path); });
}

SudoKind sudo_kind_of(const std::string &version)
{
    constexpr std::string_view before = "Sudo version "; // 1.9.13p3
    if (version.starts_with("sudo-rs ")) return SudoKind::rs;
    if (!version.starts_with(before)) return SudoKind::original;
    const std::string_view number = std::string_view(version).substr(before.size());
    const auto parsed = parse_version(number.substr(0, number.find_first_not_of("0123456789.")));
    return parsed && *parsed < Version{1, 9, 8} ? SudoKind::older : SudoKind::original;
}

SudoKind installed_sudo_kind()
{
    if (::access(build::sudo_path, X_OK) != 0) return SudoKind::original;
    return sudo_kind_of(run_program({build::sudo_path, "--version"}).output);
}

std::string visudo_of(SudoKind kind)
{
    // Debian and Ubuntu call it so; where sudo-rs is the only one, it has the usual name.
    return kind == SudoKind::rs && has_program("visudo-rs") ? "visudo-rs" : "visudo";
}

std::string main_sudoers_of(SudoKind kind)
{
    constexpr const char *rs_file = "/etc/sudoers-rs"; // instead of the usual one, where it exists
    return kind == SudoKind::rs && ::access(rs_file, F_OK) == 0 ? rs_file : "/etc/sudoers";
}

bool does_sudo_read(SudoKind kind, const std::string &path, const std::string &checked, const std::vector<std::string> &users)
{
    if (kind != SudoKind::rs) return checked.find(path + ":") != std::string::npos;
    return users.empty() || std::any_of(users.begin(), users.end(), [](const std::string &user) {
               const auto allowed = run_program({build::sudo_path, "-n", "-l", "-U", user});
               return allowed.status == 0 && allowed.output.find(build::runner_path) != std::string::npos;
           });
}

} // namespace pi_agent
