// Files of a session's own: its view of /proc, small files, frames for mounts, and its terminal.
#include "runner/root/view/root_tree.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace pi_agent {

namespace {

// The list of systemd 257 (src/core/namespace.c, protect_kernel_tunables_proc_table). Not all of /proc: a process has settings of its own
// there.
constexpr std::array<const char *, 12> read_only_files = {
    "/proc/acpi",          "/proc/apm",  "/proc/asound", "/proc/bus",           "/proc/fs",          "/proc/irq", "/proc/mtrr",
    "/proc/latency_stats", "/proc/scsi", "/proc/sys",    "/proc/sysrq-trigger", "/proc/timer_stats",
};
constexpr std::array<const char *, 2> unreadable = {"/proc/kallsyms", "/proc/kcore"};

// Only the kernel makes names in /proc. None where this kernel does not have the file.
UniqueFd find_kernel_file(const char *path)
{
    return if_there([&] { return open_or_throw(std::string("opening ") + path, path, O_PATH | O_NOFOLLOW); });
}

} // namespace

std::vector<LateMount> protect_kernel_files(const AsRoot &root)
{
    std::vector<LateMount> late;
    if (!defence_is_on("kernel-files")) return late;
    const MountAttributes attributes{true, nullptr};
    for (const char *path : read_only_files)
        if (const UniqueFd file = find_kernel_file(path)) late.push_back({clone_mount(root, file, Submounts::leave_out, attributes), path});
    const UniqueFd device = open_or_throw("opening /dev/null", "/dev/null", O_PATH | O_NOFOLLOW);
    for (const char *path : unreadable) // a device node in a mount with nodev: opening it is EACCES (mount(8))
        if (find_kernel_file(path)) late.push_back({clone_mount(root, device, Submounts::leave_out, attributes), path});
    return late;
}

void show_box_notes(const SessionDirectory &session, const BoxFacts &facts)
{
    write_whole(session.make_late_file("root/AGENTS.md"), box_notes(facts), "the notes about the sandbox");
}

void show_accounts(const SessionDirectory &session, const HostView &view, const Account &user, const Account &agent,
                   const std::string &agent_home, const std::vector<Gid> &further)
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
    for (const gid_t group : agent.groups)
        add_group(Gid(group));
    std::for_each(further.begin(), further.end(), add_group);
    const auto write = [&](const std::string &path, const std::string &text) {
        if (!is_shown(view, path) && !view.links.contains(path))
            write_whole(session.make_file("root" + path), text, "the session's " + path);
    };
    write("/etc/passwd", passwd_text(accounts, agent.name, agent_home));
    write("/etc/group", group_text(groups));
}

UniqueFd make_frame(const AsRoot &root, const SessionDirectory &session, const std::string &name, const std::vector<std::string> &places)
{
    for (const auto &place : places)
        session.make_directory(name + "/" + place);
    const UniqueFd directory = session.make_directory(name);
    DetachedMount frame = clone_mount(root, directory, Submounts::leave_out, MountAttributes{true, nullptr});
    attach(root, frame, directory);
    return std::move(frame.fd);
}

UniqueFd give_terminal(const AsRoot & /*root*/, FdRef devpts, const Account &agent, const Request &request, FdRef wrapper)
{
    constexpr int terminal_patience_seconds = 5;
    if (!has_any(request.on_terminal)) return UniqueFd();
    const UniqueFd master = open_or_throw("opening the session's terminal", devpts, "ptmx", O_RDWR | O_NOCTTY);
    const int unlocked = 0;
    if (ioctl(master.get(), TIOCSPTLCK, &unlocked) != 0) throw_errno("unlocking the session's terminal");
    // Opens it by descriptor, not by name (ioctl_tty(2), TIOCGPTPEER).
    UniqueFd slave = UniqueFd::adopt(ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!slave) throw_errno("opening the agent's end of the session's terminal");
    if (fchown(slave.get(), agent.uid.value(), agent.gid.value()) != 0) throw_errno("giving the session's terminal to the agent");
    const winsize size{request.window.rows, request.window.columns, request.window.x_pixels, request.window.y_pixels};
    if (ioctl(master.get(), TIOCSWINSZ, &size) != 0) throw_errno("setting the session's window size");
    send_packet(wrapper, encode(RunnerMessage(TerminalOpened{})), {master.get()}, in_seconds(terminal_patience_seconds));
    return slave;
}

} // namespace pi_agent
