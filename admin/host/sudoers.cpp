// The sudo rule, and which sudo reads it.
#include "admin/host/sudoers.hpp"

#include "admin/host/root_files.hpp"
#include "admin/programs/program.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fcntl.h>
#include <optional>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr const char *file_name = "pi-agent";
constexpr const char *temporary_name = "pi-agent.new"; // sudo skips names with a dot
constexpr mode_t file_mode = 0440;
constexpr std::size_t sudoers_limit = std::size_t{16} << 20U; // a line for each of a hundred thousand users

bool is_plain_path(const std::string &path)
{
    return path.front() == '/' && std::all_of(path.begin(), path.end(), [](char byte) {
               const bool letter = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
               return letter || (byte >= '0' && byte <= '9') || byte == '/' || byte == '-' || byte == '_' || byte == '.';
           });
}

// What is installed now, when root owns it and others cannot write it.
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
    if (result.status != 0) {
        throw Failure(ExitStatus::configuration,
                      visudo_of(kind) + " -c refuses the sudo configuration, so the new rule was taken back: " + one_line(result.output));
    }
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

// Users of users.d whom the line of a group lets in: sudo reads every line at each start, and of these there may be very many.
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
    if (!is_plain_path(runner))
        throw Failure(ExitStatus::internal, "the runner's path " + escape_for_display(runner) + " needs quoting in sudoers");
    std::string text = fmt::format("# Generated by pi-agentctl apply from {0}.\n"
                                   "# Changes made here are lost: change the policy and run it again.\n"
                                   "# What other rules say of the environment and of terminals does not reach the runner.\n"
                                   "Defaults!{1} env_reset, !env_keep, !env_check, !use_pty\n",
                                   escape_for_display(policy_file), runner);
    // A line of their own: sudo-rs does not know these, has nothing of the kind, and would leave out the line above with them. Without a
    // PAM session to close, sudo becomes the runner instead of waiting for it (sudoers(5), pam_session). Who may is still PAM's to say.
    if (kind == SudoKind::original)
        text += fmt::format("Defaults!{} !setenv, !requiretty, !log_input, !log_output, !pam_session, !pam_setcred\n", runner);
    // The empty string means: no arguments at all.
    const std::set<std::string> by_group = allowed_by_group(policy, policy_file, members_of);
    for (const auto &entry : policy.users)
        if (entry.is_group || !by_group.contains(entry.name))
            text += fmt::format("{}{} ALL=(root) NOPASSWD: {} \"\"\n", entry.is_group ? "%" : "", entry.name, runner);
    return text;
}

void install_sudoers(const AsRoot & /*root*/, const std::string &directory, const std::string &text, SudoKind kind,
                     const std::vector<std::string> &users, Changes &changes)
{
    const auto path = directory + "/" + file_name;
    const auto directory_fd = open_trusted(directory, O_RDONLY | O_DIRECTORY, "directory of sudo rules");
    const auto former = read_installed(directory_fd, path);
    if (former && former->exact && former->text == text) return;
    changes.make(
        "install the sudo rule " + path, [&] { replace(directory_fd, former, text, path, kind, users); },
        text_diff(former ? path : "/dev/null", former ? former->text : "", path, text));
}

std::optional<std::string> read_sudoers(const AsRoot & /*root*/, const std::string &directory)
{
    const auto directory_fd = open_trusted(directory, O_RDONLY | O_DIRECTORY, "directory of sudo rules");
    const auto installed = read_installed(directory_fd, directory + "/" + file_name);
    return installed ? std::optional(installed->text) : std::nullopt;
}

void put_back_sudoers(const AsRoot & /*root*/, const std::string &directory, const std::optional<std::string> &former)
{
    const auto directory_fd = open_trusted(directory, O_RDONLY | O_DIRECTORY, "directory of sudo rules");
    put_back(directory_fd, former ? std::optional(Installed{*former, true}) : std::nullopt, directory + "/" + file_name);
}

bool lets_start(const std::string &text, const Account &user)
{
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::string who = line.substr(0, line.find(' '));
        if (who == user.name) return true;
        const auto group = who.starts_with('%') ? find_group(who.substr(1)) : std::nullopt;
        if (group && std::find(user.groups.begin(), user.groups.end(), group->value()) != user.groups.end()) return true;
    }
    return false;
}

void remove_sudoers(const AsRoot & /*root*/, const std::string &directory, Changes &changes)
{
    const auto path = directory + "/" + file_name;
    const auto directory_fd = open_trusted(directory, O_RDONLY | O_DIRECTORY, "directory of sudo rules");
    struct stat status {};
    if (::fstatat(directory_fd.get(), file_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return;
        throw_errno("cannot examine " + path);
    }
    changes.make("remove the sudo rule " + path + ": nobody can start pi now", [&] { remove_root_file(directory_fd, file_name, path); });
}

namespace {

constexpr const char *rs_file = "/etc/sudoers-rs"; // instead of the usual one, where it exists
constexpr const char *usual_file = "/etc/sudoers";

} // namespace

SudoKind sudo_kind_of(const std::string &version)
{
    return version.rfind("sudo-rs ", 0) == 0 ? SudoKind::rs : SudoKind::original;
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
    return kind == SudoKind::rs && ::access(rs_file, F_OK) == 0 ? rs_file : usual_file;
}

bool does_sudo_read(SudoKind kind, const std::string &path, const std::string &checked, const std::vector<std::string> &users)
{
    if (kind == SudoKind::original) return checked.find(path + ":") != std::string::npos;
    return users.empty() || std::any_of(users.begin(), users.end(), [](const std::string &user) {
               const auto allowed = run_program({build::sudo_path, "-n", "-l", "-U", user});
               return allowed.status == 0 && allowed.output.find(build::runner_path) != std::string::npos;
           });
}

} // namespace pi_agent
