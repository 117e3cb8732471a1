// Root's own files and directories: read, replaced in one step, and locked.
#include "admin/host/host_things.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <sys/file.h>

namespace pi_agent {

namespace {

void sync_directory(FdRef directory, const std::string &path)
{
    if (::fsync(directory.get()) != 0) throw_errno("cannot write the directory of " + path + " to disk");
}

void set_owner_and_mode(FdRef directory, const std::string &path, mode_t mode)
{
    if (::fchown(directory.get(), 0, 0) != 0 || ::fchmod(directory.get(), mode) != 0) throw_errno("cannot set owner and mode of " + path);
}

UniqueFd open_below(FdRef parent, const std::string &name)
{
    return open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

UniqueFd take(const std::string &path, const std::string &held)
{
    UniqueFd lock = open_or_throw("cannot open " + path, FdRef(AT_FDCWD), path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
        spdlog::debug("locked {}", path);
        return lock;
    }
    if (errno == EWOULDBLOCK) throw Failure(FailureKind::busy, held);
    throw_errno("cannot lock " + path);
}

constexpr const char *last_name = "last.json";
constexpr const char *previous_name = "previous.json";
constexpr int note_version = 1;
constexpr std::size_t note_limit = std::size_t{256} << 20U; // bytes: a rule and two policies of a hundred thousand users
constexpr mode_t policy_mode = 0644;
constexpr mode_t note_mode = 0600;

std::map<std::string, std::string> by_name(const PolicyFiles &files)
{
    std::map<std::string, std::string> map;
    for (const auto &file : files)
        map[file.name] = file.text;
    return map;
}

std::string to_text(const PolicyFiles &files)
{
    return nlohmann::json{{"version", note_version}, {"files", files}}.dump(1) + "\n";
}

bool is_policy_file(const std::string &path)
{
    if (path == policy_path || user_of_file(path, policy_path)) return true;
    const auto [directory, name] = split_last(path);
    return directory == directory_of_parts(policy_path) && name.ends_with(".yaml") && name.front() != '.';
}

std::optional<PolicyFiles> read_kept(const char *name)
{
    const auto text = read_note(name);
    if (!text) return std::nullopt;
    PolicyFiles files;
    parse_note(name, *text, "; remove it", NoteVersion::first, [&](const nlohmann::json &json) { json.at("files").get_to(files); });
    return files;
}

UniqueFd open_applied_directory()
{
    return open_trusted(applied_directory, O_RDONLY | O_DIRECTORY, "directory of applied policies");
}

std::string draft_of(const std::string &file)
{
    return split_last(file).second + ".new";
}

} // namespace

void write_beside(FdRef directory, const std::string &name, const std::string &text, mode_t mode, const std::string &path)
{
    if (::unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT) throw_errno("cannot remove " + path);
    const auto fd = open_or_throw("cannot create " + path, directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0400);
    try {
        write_whole(fd, text, path);
        if (::fchown(fd.get(), 0, 0) != 0 || ::fchmod(fd.get(), mode) != 0) throw_errno("cannot set owner and mode of " + path);
        if (::fsync(fd.get()) != 0) throw_errno("cannot write " + path + " to disk");
    } catch (const std::exception &) {
        ::unlinkat(directory.get(), name.c_str(), 0); // best_effort: half a file is useless, and the failure is reported
        throw;
    }
}

void move_into_place(FdRef directory, const std::string &name, const std::string &final_name, const std::string &path)
{
    if (::renameat(directory.get(), name.c_str(), directory.get(), final_name.c_str()) != 0) throw_errno("cannot install " + path);
    sync_directory(directory, path);
    spdlog::debug("wrote {}", path);
}

void replace_root_file(FdRef directory, const std::string &name, const std::string &text, mode_t mode, const std::string &path)
{
    write_beside(directory, name + ".new", text, mode, path + ".new");
    move_into_place(directory, name + ".new", name, path);
}

void remove_root_file(FdRef directory, const std::string &name, const std::string &path)
{
    if (::unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT) throw_errno("cannot remove " + path);
    sync_directory(directory, path);
    spdlog::debug("removed {}", path);
}

void make_state_directories(const AsRoot &root, const Policy &policy, Changes &changes)
{
    const auto &state = policy.agent.state_dir;
    make_root_directory(root, state, 0711, changes);
    make_root_directory(root, state + "/users", 0711, changes);
    make_root_directory(root, state + "/sessions", 0700, changes);
}

void make_root_directory(const AsRoot & /*root*/, const std::string &path, mode_t mode, Changes &changes)
{
    const auto name = path.substr(path.rfind('/') + 1);
    const auto order = fmt::format("create the directory {} (root {:04o})", path, mode);
    const auto open_parent = [&] { return open_trusted(parent_of(path), O_PATH | O_DIRECTORY, "state directory"); };
    const auto parent = changes.dry_run() ? if_there(open_parent) : open_parent();
    if (!parent) return changes.make(order, [] {});
    if (const auto directory = open_below(parent, name)) {
        const struct stat status = examine(directory, "cannot examine " + path);
        if (status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
            // Whoever could write here may have left something, and taking it over would make that trusted.
            throw Failure(
                FailureKind::untrusted,
                fmt::format(
                    "{} belongs to uid {} with mode {:04o}, so others than root can write to it; move it away and run the command again",
                    path, status.st_uid, status.st_mode & 07777U));
        }
        if (status.st_gid == 0 && (status.st_mode & 07777U) == mode) return;
        changes.make(fmt::format("set the directory {} to root:root {:04o}", path, mode),
                     [&] { set_owner_and_mode(directory, path, mode); });
        return;
    }
    if (errno == ENOTDIR || errno == ELOOP)
        throw Failure(ExitStatus::configuration, path + " is a symlink or not a directory; move it away");
    if (errno != ENOENT) throw_errno("cannot open the directory " + path);
    changes.make(order, [&] {
        if (::mkdirat(parent.get(), name.c_str(), 0700) != 0) throw_errno("cannot create " + path);
        const auto directory = open_below(parent, name);
        if (!directory) throw_errno("cannot open " + path);
        set_owner_and_mode(directory, path, mode);
    });
}

UniqueFd take_apply_lock(const AsRoot & /*root*/)
{
    return take("/run/pi-agentctl.lock", "another 'pi-agentctl apply' is running; wait for it");
}

UniqueFd take_edit_lock(const AsRoot & /*root*/)
{
    return take("/run/pi-agentctl-edit.lock", "somebody is editing the policy: another 'pi-agentctl edit' is running; wait for it");
}

UniqueFd take_agents_lock(const AsRoot & /*root*/)
{
    return take("/run/pi-agentctl-agents.lock", "another 'pi-agentctl agent install' is running; wait for it");
}

// --- Replaces the policy's files, and keeps applied ones as JSON: one file for each policy, however many files it has.

const char *const applied_directory = "/var/lib/pi-agent/applied";

std::string policy_file_named(const std::string &name)
{
    const std::string directory = split_last(policy_path).first;
    const bool is_below = name.starts_with("policy.d/") || name.starts_with("users.d/");
    const bool is_path = name.find('/') != std::string::npos;
    auto path = is_below                                 ? directory + "/" + name
                : is_path                                ? name
                : name == split_last(policy_path).second ? std::string(policy_path)
                                                         : directory_of_parts(policy_path) + "/" + name;
    if (is_policy_file(path)) return path;
    throw Failure(ExitStatus::usage, escape_for_display(name) + " is not read as a part of the policy; name " + policy_path +
                                         ", the name of a file in " + directory_of_parts(policy_path) +
                                         ", which ends with '.yaml', or users.d/NAME.yaml with the name of a user");
}

UniqueFd open_policy_directory(const AsRoot & /*root*/, const std::string &path)
{
    const auto directory = split_last(path).first;
    if (directory == directory_of_parts(policy_path) || directory == directory_of_users(policy_path)) make_policy_directory(directory);
    return open_trusted(directory, O_RDONLY | O_DIRECTORY, "directory of the policy");
}

void make_policy_directory(const std::string &directory)
{
    const auto [above, below] = split_last(directory);
    const auto parent = open_trusted(above, O_RDONLY | O_DIRECTORY, "directory of the policy");
    const bool is_new = ::mkdirat(parent.get(), below.c_str(), 0700) == 0;
    if (!is_new && errno != EEXIST) throw_errno("cannot create " + directory);
    // Users read the policy, whatever root's umask is.
    if (is_new && ::fchmodat(parent.get(), below.c_str(), 0755, 0) != 0) throw_errno("cannot set the mode of " + directory);
}

std::optional<std::string> read_note(const char *name)
{
    return if_there([&] { return std::optional(read_trusted_file(path_of_applied(name), note_limit, "note of apply")); });
}

void write_note(const char *name, const std::optional<std::string> &text)
{
    if (text) return replace_root_file(open_applied_directory(), name, *text, note_mode, path_of_applied(name));
    if (const auto directory = if_there(open_applied_directory)) remove_root_file(directory, name, path_of_applied(name));
}

void parse_note(const char *name, const std::string &text, const char *remedy, NoteVersion version,
                const std::function<void(const nlohmann::json &json)> &take)
{
    const auto path = path_of_applied(name);
    try {
        const auto json = nlohmann::json::parse(text);
        if (version == NoteVersion::first && json.at("version") != note_version)
            throw Failure(ExitStatus::configuration, path + " was written by another version of pi-agent");
        take(json);
    } catch (const nlohmann::json::exception &) {
        throw Failure(ExitStatus::configuration, path + " is damaged" + remedy);
    }
}

void to_json(nlohmann::json &json, const PolicySource &file)
{
    json = {{"name", file.name}, {"text", file.text}};
}

void from_json(const nlohmann::json &json, PolicySource &file)
{
    file = {json.at("name"), json.at("text")};
    if (!is_policy_file(file.name))
        throw Failure(ExitStatus::configuration,
                      std::string("the content of ") + applied_directory + " belongs to another policy: " + escape_for_display(file.name));
}

bool are_same(const PolicyFiles &one, const PolicyFiles &other)
{
    return by_name(one) == by_name(other);
}

std::string difference_of(const PolicyFiles &before, const PolicyFiles &after)
{
    const auto old_files = by_name(before);
    const auto new_files = by_name(after);
    std::string text;
    for (const auto &[name, old_text] : old_files) {
        const auto found = new_files.find(name);
        text += found == new_files.end() ? text_diff(name, old_text, "/dev/null", "") : text_diff(name, old_text, name, found->second);
    }
    for (const auto &[name, new_text] : new_files)
        if (!old_files.contains(name)) text += text_diff("/dev/null", "", name, new_text);
    return text;
}

bool says_accounts(const PolicyFiles &files)
{
    return read_policy_as_far_as_possible(files).policy.agent.accounts != Accounts::unspecified;
}

void install_policy_files(const AsRoot &root, const PolicyFiles &installed, const PolicyFiles &wanted, Changes &changes)
{
    const auto old_files = by_name(installed);
    const auto new_files = by_name(wanted);
    std::vector<PolicySource> changed;
    std::ranges::copy_if(wanted, std::back_inserter(changed), [&](const PolicySource &file) {
        const auto found = old_files.find(file.name);
        return found == old_files.end() || found->second != file.text;
    });
    // Writes all of them beside their places. If one cannot be written, none stays.
    if (!changes.dry_run()) {
        try {
            for (const auto &file : changed)
                write_beside(open_policy_directory(root, file.name), draft_of(file.name), file.text, policy_mode, file.name + ".new");
        } catch (const std::exception &) {
            for (const auto &file : changed)
                ::unlinkat(open_policy_directory(root, file.name).get(), draft_of(file.name).c_str(), 0); // best_effort: the failure counts
            throw;
        }
    }
    for (const auto &file : changed)
        changes.make("write " + escape_for_display(file.name), [&] {
            move_into_place(open_policy_directory(root, file.name), draft_of(file.name), split_last(file.name).second, file.name);
        });
    for (const auto &[name, text] : old_files) {
        if (new_files.contains(name)) continue;
        changes.make("remove " + escape_for_display(name), [&file = name] {
            const auto [directory, own_name] = split_last(file);
            remove_root_file(open_trusted(directory, O_RDONLY | O_DIRECTORY, "directory of the policy"), own_name, file);
        });
    }
}

AppliedPolicies read_applied(const AsRoot & /*root*/)
{
    return {read_kept(last_name), read_kept(previous_name)};
}

void make_applied_directory(const AsRoot &root, const std::string &state_dir, Changes &changes)
{
    if (const auto parent = split_last(applied_directory).first; state_dir != parent) make_root_directory(root, parent, 0711, changes);
    make_root_directory(root, applied_directory, 0700, changes);
}

void keep_applied(const AsRoot &root, const PolicyFiles &files)
{
    std::optional<PolicyFiles> last;
    try {
        last = read_applied(root).last;
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): what is damaged is replaced
    }
    if (last && are_same(*last, files)) {
        if (::utimensat(open_applied_directory().get(), last_name, nullptr, AT_SYMLINK_NOFOLLOW) != 0) // last_apply() tells that time
            throw_errno("noting the time in " + path_of_applied(last_name));
        return;
    }
    if (last) write_note(previous_name, to_text(*last));
    write_note(last_name, to_text(files));
}

std::optional<std::uint64_t> time_of_file(const std::string &path)
{
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
    return static_cast<std::uint64_t>(facts.st_mtim.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(facts.st_mtim.tv_nsec) / 1'000;
}

std::optional<std::uint64_t> last_apply(const AsRoot & /*root*/)
{
    return time_of_file(path_of_applied(last_name));
}

void forget_applied(const AsRoot & /*root*/, Changes &changes)
{
    const auto directory = if_there(open_applied_directory);
    if (!directory) return;
    changes.make(std::string("remove ") + applied_directory + ", with the policies that were applied", [&] {
        const auto [parent, own] = split_last(applied_directory);
        for (const std::string file : {last_name, previous_name, hidden_name, unfinished_apply_name, command_note, state_note})
            for (const auto &kept : {file, file + ".new"}) // the second one is there after a failed write
                remove_root_file(directory, kept, path_of_applied(kept));
        const auto holder = open_trusted(parent, O_RDONLY | O_DIRECTORY, "state directory");
        if (::unlinkat(holder.get(), own.c_str(), AT_REMOVEDIR) != 0) throw_errno(std::string("cannot remove ") + applied_directory);
        const auto [top, last] = split_last(parent);
        const auto above_all = open_trusted(top, O_RDONLY | O_DIRECTORY, "parent of the state directory");
        ::unlinkat(above_all.get(), last.c_str(), AT_REMOVEDIR); // best_effort: removed only if it is empty, because the state is elsewhere
    });
}

} // namespace pi_agent
