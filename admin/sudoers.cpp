// Writing /etc/sudoers.d/pi-agent without ever leaving sudo with a file that it cannot read.
#include "admin/sudoers.hpp"

#include "admin/program.hpp"
#include "common/error.hpp"
#include "common/escape.hpp"
#include "common/trusted_file.hpp"

#include <algorithm>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr const char *file_name = "pi-agent";
constexpr const char *temporary_name = "pi-agent.new"; // sudo skips names with a dot
constexpr mode_t file_mode = 0440;
constexpr std::size_t file_limit = std::size_t{1} << 20U;

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
    return Installed{read_trusted_file(path, file_limit, "sudo rule"), exact};
}

void write_all(FdRef fd, std::string_view text, const std::string &path)
{
    while (!text.empty()) {
        const auto count = ::write(fd.get(), text.data(), text.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw_errno("cannot write " + path);
        text.remove_prefix(static_cast<std::size_t>(count));
    }
}

void write_temporary(FdRef directory, const std::string &text, const std::string &path)
{
    if (::unlinkat(directory.get(), temporary_name, 0) != 0 && errno != ENOENT) throw_errno("cannot remove " + path);
    const auto fd = UniqueFd::adopt(::openat(directory.get(), temporary_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400));
    if (!fd) throw_errno("cannot create " + path);
    write_all(fd, text, path);
    if (::fchown(fd.get(), 0, 0) != 0 || ::fchmod(fd.get(), file_mode) != 0) throw_errno("cannot set owner and mode of " + path);
    if (::fsync(fd.get()) != 0) throw_errno("cannot write " + path + " to disk");
}

void sync_directory(FdRef directory)
{
    if (::fsync(directory.get()) != 0) throw_errno("cannot write a directory of sudo rules to disk");
}

void move_into_place(FdRef directory, const std::string &path)
{
    if (::renameat(directory.get(), temporary_name, directory.get(), file_name) != 0) throw_errno("cannot install " + path);
    sync_directory(directory);
}

void remove_installed(FdRef directory, const std::string &path)
{
    if (::unlinkat(directory.get(), file_name, 0) != 0 && errno != ENOENT) throw_errno("cannot remove " + path);
    sync_directory(directory);
}

// Checks everything that sudo reads, and that it reads `path`.
void require_sudo_accepts(const std::string &path)
{
    const auto result = run_program({"visudo", "-c"});
    if (result.status != 0) {
        throw Failure(ExitStatus::configuration,
                      "visudo -c refuses the sudo configuration, so the new rule was taken back: " + one_line(result.output));
    }
    if (result.output.find(path + ":") != std::string::npos) return;
    throw Failure(ExitStatus::configuration, "sudo does not read " + path + ", so the new rule was taken back; add '@includedir " +
                                                 path.substr(0, path.rfind('/')) + "' to /etc/sudoers");
}

void put_back(FdRef directory, const std::optional<Installed> &former, const std::string &path)
{
    if (!former) return remove_installed(directory, path);
    write_temporary(directory, former->text, path);
    move_into_place(directory, path);
}

void replace(FdRef directory, const std::optional<Installed> &former, const std::string &text, const std::string &path)
{
    const auto temporary_path = path.substr(0, path.rfind('/') + 1) + temporary_name;
    write_temporary(directory, text, temporary_path);
    const auto result = run_program({"visudo", "-c", "-f", temporary_path});
    if (result.status != 0) {
        ::unlinkat(directory.get(), temporary_name, 0); // best effort: sudo ignores the name
        throw Failure(ExitStatus::internal, "visudo refuses the rule that was generated: " + one_line(result.output));
    }
    move_into_place(directory, path);
    try {
        require_sudo_accepts(path);
    } catch (...) {
        put_back(directory, former, path);
        throw;
    }
}

} // namespace

std::string sudoers_text(const Policy &policy, const std::string &policy_file, const std::string &runner)
{
    if (!is_plain_path(runner))
        throw Failure(ExitStatus::internal, "the runner's path " + escape_for_display(runner) + " needs quoting in sudoers");
    std::string text = fmt::format("# Generated by pi-agentctl apply from {}.\n"
                                   "# Changes made here are lost: change the policy and run it again.\n"
                                   "# What other rules say of the environment and of terminals does not reach the runner.\n"
                                   "Defaults!{} env_reset, !setenv, !requiretty, !use_pty, !log_input, !log_output\n",
                                   escape_for_display(policy_file), runner);
    // The empty string means: no arguments at all.
    for (const auto &entry : policy.users)
        text += fmt::format("{}{} ALL=(root) NOPASSWD: {} \"\"\n", entry.is_group ? "%" : "", entry.name, runner);
    return text;
}

void install_sudoers(const AsRoot & /*root*/, const std::string &directory, const std::string &text, Changes &changes)
{
    const auto path = directory + "/" + file_name;
    const auto directory_fd = open_trusted(directory, O_RDONLY | O_DIRECTORY, "directory of sudo rules");
    const auto former = read_installed(directory_fd, path);
    if (former && former->exact && former->text == text) return;
    changes.make("install the sudo rule " + path, [&] { replace(directory_fd, former, text, path); });
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
    changes.make("remove the sudo rule " + path + ": nobody can start pi now", [&] { remove_installed(directory_fd, path); });
}

} // namespace pi_agent
