// What a caller hands over, opened again as the caller: descriptors, working directory, roots, home, or a question.
#include "runner/as_user/project.hpp"

#include "common/as_user/user_paths.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "runner/plan/host_view.hpp"

#include <linux/openat2.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

namespace pi_agent {

namespace {

PlaceFacts place_facts(FdRef fd)
{
    struct statx facts {};
    if (statx(fd.get(), "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_INO | STATX_MNT_ID, &facts) != 0)
        throw_errno("examining the working directory");
    if ((facts.stx_mask & STATX_MNT_ID) == 0)
        throw Failure(ExitStatus::unavailable, "this kernel does not tell mount ids; pi-agent needs Linux 5.8 or newer");
    const std::uint64_t device = (static_cast<std::uint64_t>(facts.stx_dev_major) << 32U) | facts.stx_dev_minor;
    return PlaceFacts{device, facts.stx_ino, facts.stx_mnt_id};
}

UniqueFd reopen_cwd(FdRef claimed)
{
    const std::string path = path_of_directory(claimed);
    UniqueFd actual = open_resolved(FdRef(AT_FDCWD), path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (!actual)
        throw Failure(FailureKind::directory, "denied: the working directory " + escape_for_display(path) +
                                                  " cannot be opened by its path (" + SystemFailure(errno, "open").what() +
                                                  "); was it deleted or renamed? cd to it again");
    if (place_facts(claimed) != place_facts(actual) && defence_is_on("cwd-identity"))
        throw Failure(FailureKind::directory, "denied: the working directory is not the one that " + escape_for_display(path) +
                                                  " names on this host; cd to it again in an ordinary shell");
    struct stat searched {};
    if (fstatat(actual.get(), ".", &searched, 0) != 0 && defence_is_on("cwd-searchable"))
        throw Failure(FailureKind::directory, "denied: you may not enter " + escape_for_display(path));
    return actual;
}

constexpr int handover_patience_seconds = 10;

void send_event(FdRef channel, char tag, std::string_view bytes = {}, const std::vector<int> &fds = {})
{
    send_answer(channel, std::string(1, tag).append(bytes), fds);
}

// The runner's only order: the control socket of pi-agent-exec. False when the runner is gone.
bool obey(FdRef channel, std::array<UniqueFd, 3> &stdio, UniqueFd &connections)
{
    const std::optional<Packet> order = receive_packet(channel, in_seconds(0));
    if (!order || order->fds.size() != 1) return false;
    fault_point("handing-stdio");
    send_stdio(order->fds[0], stdio, connections, in_seconds(handover_patience_seconds));
    std::vector<int> for_root;
    for (const auto &fd : stdio)
        if (fd && !defence_is_on("root-holds-nothing")) for_root.push_back(fd.get());
    send_event(channel, handed_over_tag, {}, for_root);
    connections.reset();
    for (auto &fd : stdio)
        fd.reset(); // the agent's end of a pipe must be the last one; whatever this waits for, it is not root that waits
    return true;
}

// False when the wrapper is gone, or broke the protocol: only the request itself may come with descriptors.
bool relay(FdRef wrapper, FdRef channel)
{
    try {
        const std::optional<Packet> packet = receive_packet(wrapper, in_seconds(0));
        if (packet && packet->fds.empty() && packet->bytes.size() <= small_message_limit) {
            send_event(channel, message_tag, packet->bytes);
            return true;
        }
    } catch (const ProtocolError &) { // NOLINT(bugprone-empty-catch): told below
    }
    send_event(channel, gone_tag);
    return false;
}

constexpr std::array standard_names = {"standard input", "standard output", "standard error"};

bool is_harmless_device(const struct statx &facts) noexcept
{
    constexpr unsigned memory_major = 1; // null 3, zero 5, full 7: Linux, Documentation/admin-guide/devices.txt
    return facts.stx_rdev_major == memory_major && (facts.stx_rdev_minor == 3 || facts.stx_rdev_minor == 5 || facts.stx_rdev_minor == 7);
}

const char *what_is_wrong(FdRef fd)
{
    const int flags = fcntl(fd.get(), F_GETFL);
    if (flags < 0) throw_errno("examining a descriptor of the request");
    if ((flags & O_PATH) != 0) return "a path descriptor";
    struct statx facts {};
    // DONT_SYNC: a FUSE file system of the caller is not asked, so it cannot keep root waiting.
    if (statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &facts) != 0)
        throw_errno("examining a descriptor of the request");
    const auto kind = facts.stx_mode & S_IFMT;
    if (kind == S_IFIFO || kind == S_IFREG || kind == S_IFSOCK) return nullptr;
    if (kind == S_IFCHR) return is_harmless_device(facts) ? nullptr : "a terminal or another device";
    return kind == S_IFDIR ? "a directory" : kind == S_IFBLK ? "a block device" : "something unknown";
}

// What carries a session's ports: a descriptor of another kind could lead the session's first process to files, or to the host's network.
void require_local_socket(FdRef fd)
{
    int domain = 0;
    socklen_t length = sizeof domain;
    if ((getsockopt(fd.get(), SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 || domain != AF_UNIX) && defence_is_on("channel-of-ports"))
        throw Failure(FailureKind::streams, "denied: what carries the ports of the session is not a local socket");
}

using Inode = std::pair<dev_t, ino_t>;

std::optional<Inode> inode_of(FdRef directory, const std::string &path, int follow = AT_SYMLINK_NOFOLLOW)
{
    struct stat facts {};
    if (fstatat(directory.get(), path.c_str(), &facts, follow | AT_NO_AUTOMOUNT | (path.empty() ? AT_EMPTY_PATH : 0)) != 0)
        return std::nullopt;
    return Inode{facts.st_dev, facts.st_ino};
}

// What is never shown, and every directory above it up to the home: a directory with the inode of one of these holds it, by whatever path.
// Each comes with its path: what is masked in a cache may be there, and nowhere else.
std::multimap<Inode, std::string> hidden_inodes(FdRef home)
{
    std::set<std::string> paths{""};
    for (const auto &never : never_shown())
        for (std::size_t end = never.find('/');; end = never.find('/', end + 1)) {
            paths.insert(never.substr(0, end));
            if (end == std::string::npos) break;
        }
    std::multimap<Inode, std::string> inodes;
    for (const auto &path : paths)
        for (const int follow : {AT_SYMLINK_NOFOLLOW, 0}) // it may be a symlink to the real place
            if (const auto inode = inode_of(home, path, follow))
                inodes.emplace(*inode, path);
            else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != EACCES) // nobody is shown what the user may not see
                throw_errno("looking at ~/" + path);
    return inodes;
}

std::string problem_of_error(int error)
{
    if (error == ELOOP) return "a symlink is on the way; name the directory that it leads to";
    if (error == ENOTDIR) return "it is a symlink or not a directory; name the directory itself";
    return "it cannot be opened (" + std::string(SystemFailure(error, "open").what()) + ")";
}

class HomeFinder {
public:
    HomeFinder(FdRef home, OpenedHome &found) : home_(home), found_(found) {}

    void look_at(const std::vector<PolicyPath> &paths, bool is_cache)
    {
        for (const auto &path : paths) {
            if (path.path.starts_with('/')) continue;
            UniqueFd directory = find_beneath(home_, path.path, O_PATH | O_DIRECTORY);
            std::string problem = directory ? problem_of(directory, is_cache ? path.path : "") : problem_of_error(errno);
            if (!directory && !leads_anywhere(path.path)) continue; // also a link to nothing
            if (!problem.empty()) directory.reset();
            found_.directories.push_back({path.path, is_cache, std::move(directory), std::move(problem)});
        }
    }

    // Data of others, beside the projects.
    void look_at_shared(const std::vector<PolicyPath> &paths, const AccessRules &rules, const Account &user)
    {
        std::vector<std::optional<ResolvedRoot>> roots;
        for (const auto &path : paths) {
            if (!path.path.starts_with('/')) continue;
            if (roots.empty()) roots = resolve_roots(rules, user);
            auto found = resolve_shared_data({path.path, path.where, false, 0, {}, rules.roots.front().spec.state_dir}, user);
            auto *place = std::get_if<ResolvedRoot>(&found);
            const bool is_in_roots = place != nullptr && std::any_of(roots.begin(), roots.end(), [&](const auto &root) {
                                         return root && are_nested(root->path, place->path);
                                     });
            std::string problem = place == nullptr ? std::get<std::string>(found)
                                  : is_in_roots && defence_is_on("data-beside-roots")
                                      ? "it is in one of the roots, or holds one, and there the rules of that root hold"
                                      : problem_of(place->fd, "");
            UniqueFd directory = problem.empty() ? std::move(place->fd) : UniqueFd();
            found_.directories.push_back({path.path, false, std::move(directory), std::move(problem)});
        }
    }

    // By their texts: what they lead to may be on a file system that does not answer.
    void look_at_links(const AccessRules &rules, const Account &user)
    {
        constexpr std::size_t target_limit = 1024; // bytes
        const UniqueFd home = open_at(home_, ".", O_RDONLY | O_DIRECTORY);
        if (!home) return;
        for (const auto &name : names_in(home)) {
            const std::string text = read_link(home, name);
            if (text.empty() || text.size() > target_limit || found_.links.size() == home_links_limit) continue;
            const std::string target = resolved_by_text(text.front() == '/' ? text : found_.path + "/" + text);
            if (std::any_of(rules.roots.begin(), rules.roots.end(), [&](const GrantedRoot &root) {
                    return is_within(target, without_trailing_slashes(expand_root(root.spec.text, user)));
                }))
                found_.links[name] = target;
        }
    }

private:
    [[nodiscard]] bool leads_anywhere(const std::string &path) const
    {
        struct stat facts {};
        return fstatat(home_.get(), path.c_str(), &facts, AT_NO_AUTOMOUNT) == 0 || errno != ENOENT;
    }

    [[nodiscard]] std::string problem_of(FdRef directory, const std::string &cache)
    {
        if (!hidden_) hidden_ = hidden_inodes(home_); // most homes hold none of the listed paths, and need no look
        const auto inode = inode_of(directory, "");
        bool is_hidden = !inode;
        if (inode)
            for (auto [one, end] = hidden_->equal_range(*inode); one != end; ++one)
                is_hidden |= one->second != cache || masked_in(cache).empty();
        if (is_hidden && defence_is_on("hidden-inodes")) return "something is mounted there that holds, or is, what no session is shown";
        return "";
    }

    FdRef home_;
    std::optional<std::multimap<Inode, std::string>> hidden_;
    OpenedHome &found_;
};

// Mounts inside the root are hidden from the agent, so a directory there would not be seen.
UniqueFd enter(FdRef parent, const std::string &name)
{
    const std::uint64_t inside = defence_is_on("tmpdir-beneath") ? RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV : 0;
    return open_resolved(parent, name, O_PATH | O_DIRECTORY, inside); // search permission is enough
}

[[noreturn]] void refuse_component(const std::string &path)
{
    if (errno == ELOOP) refuse_tmpdir(path + " is a symlink, which could lead out of the root; name the directory itself");
    if (errno == ENOTDIR) refuse_tmpdir(path + " is not a directory; name another");
    if (errno == EXDEV)
        refuse_tmpdir(path + " is another file system, mounted inside the root, which the agent does not see; name another");
    if (errno == EACCES) refuse_tmpdir("you may not enter or write " + path + "; name another");
    throw_errno("making the temporary directory " + path);
}

} // namespace

OwnQuestion receive_question(FdRef wrapper)
{
    const std::optional<Packet> packet = receive_packet(wrapper, in_seconds(1)); // it is there: root has seen its beginning
    if (!packet) throw ProtocolError("the connection was closed before a question came");
    if (!packet->fds.empty()) throw ProtocolError("a question with a descriptor was refused");
    fault_point("question-read");
    return decode_question(packet->bytes);
}

// First the working directory, then each root in order, whether it is there or not, then what git says of the directory.
void open_as_caller(const Account &caller, const AccessRules &rules, FdRef claimed_cwd, FdRef channel)
{
    OpenedPlace cwd{reopen_cwd(claimed_cwd), {}};
    cwd.facts = place_facts(cwd.directory);
    send_answer(channel, cwd);
    for (auto &root : resolve_roots(rules, caller)) {
        OpenedPlace place{};
        if (root) {
            const struct stat facts = examine(root->fd, "examining a root");
            place = {std::move(root->fd), {facts.st_dev, facts.st_ino, 0}};
            place.facts.mount = place_facts(place.directory).mount;
        }
        send_answer(channel, place);
    }
    send_answer(channel, find_repository(cwd.directory));
}

void serve_caller(const Account &caller, const AccessRules &rules, const ToolchainsPolicy &toolchains, FdRef wrapper, FdRef channel)
{
    ReceivedRequest received = receive_request(wrapper, in_seconds(request_patience_seconds));
    fault_point("request-read");
    check_stdio(received.stdio, received.request.on_terminal);
    let_pipes_be_opened(received.stdio);
    if (received.connections) require_local_socket(received.connections);
    send_long_answer(channel, encode_request(received.request));
    open_as_caller(caller, rules, received.cwd, channel);
    received.cwd.reset();
    send_home(channel, find_home_directories(caller, toolchains, rules));
    StartUpMemory memory;
    for (bool listening = true;;) {
        std::array<pollfd, 2> waits{pollfd{channel.get(), POLLIN, 0}, pollfd{listening ? wrapper.get() : -1, POLLIN, 0}};
        if (poll(waits.data(), waits.size(), memory.patience(-1)) < 0 && errno != EINTR) throw_errno("waiting for the wrapper");
        memory.look();
        if (waits[0].revents != 0) {
            if (!obey(channel, received.stdio, received.connections)) return;
            memory.wait_begins();
        }
        if (waits[1].revents != 0) listening = relay(wrapper, channel);
    }
}

void check_stdio(const std::array<UniqueFd, 3> &stdio, const OnTerminal &on_terminal)
{
    if (!defence_is_on("stdio-rules")) return;
    for (std::size_t index = 0; index < stdio.size(); ++index) {
        if (on_terminal[index]) continue;
        if (const char *problem = what_is_wrong(stdio[index]))
            throw Failure(FailureKind::streams,
                          std::string("denied: ") + standard_names[index] + " is " + problem +
                              "; the agent gets only pipes, regular files, sockets, /dev/null, /dev/zero and /dev/full");
    }
}

void let_pipes_be_opened(const std::array<UniqueFd, 3> &stdio)
{
    const struct stat anonymous = examine(make_pipe().reading, "examining a pipe");
    for (std::size_t index = 0; index < stdio.size(); ++index) {
        struct statx facts {};
        if (!stdio[index] || statx(stdio[index].get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MODE, &facts) != 0)
            continue;
        // All anonymous pipes are on one file system of the kernel's; a named one belongs to whoever made it.
        if (!S_ISFIFO(facts.stx_mode) || makedev(facts.stx_dev_major, facts.stx_dev_minor) != anonymous.st_dev) continue;
        const mode_t way = index == 0 ? S_IROTH : S_IWOTH;
        fchmod(stdio[index].get(), (facts.stx_mode & 0777U) | way); // best_effort: another's pipe stays as it is
    }
}

OpenedHome find_home_directories(const Account &user, const ToolchainsPolicy &toolchains, const AccessRules &rules)
{
    OpenedHome found;
    const UniqueFd home = open_at(FdRef(AT_FDCWD), user.home, O_PATH | O_DIRECTORY);
    if (!home) return found; // whatever needs the home reports it
    found.path = kernel_path(home);
    HomeFinder finder(home, found);
    finder.look_at(toolchains.readable.paths, false);
    finder.look_at_shared(toolchains.readable.paths, rules, user);
    finder.look_at(toolchains.caches.paths, true);
    finder.look_at_links(rules, user);
    return found;
}

void make_user_tmpdir(const Account &caller, FdRef root, const std::string &place, unsigned mask)
{
    UniqueFd current = open_or_throw("opening the root", root, ".", O_PATH | O_DIRECTORY);
    const std::vector<std::string> components = path_components(place);
    std::string path;
    umask(0);
    for (std::size_t index = 0; index < components.size(); ++index) {
        path += (path.empty() ? "" : "/") + escape_for_display(components[index]);
        const mode_t mode = index + 1 == components.size() ? 0700 : 0777 & ~mask;
        if (mkdirat(current.get(), components[index].c_str(), mode) != 0 && errno != EEXIST) refuse_component(path);
        current = enter(current, components[index]);
        if (!current) refuse_component(path);
    }
    if (examine(current, "examining the temporary directory " + path).st_uid != caller.uid.value() && defence_is_on("tmpdir-owner"))
        refuse_tmpdir(path + " belongs to another user, who could interfere with the agent's files; name a directory of your own");
}

} // namespace pi_agent
