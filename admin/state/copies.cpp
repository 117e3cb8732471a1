// What is kept, copied: for its user, and to another place.
#include "admin/state/state.hpp"

#include "admin/text/terminal.hpp"
#include "runner/root/errand/errand.hpp"

#include <sys/sendfile.h>
#include <sys/xattr.h>

#include <filesystem>

namespace pi_agent {

namespace {

// --- Export: the reader sends each file's path and descriptor to the writer, over a channel that root holds no end of.

constexpr int depth_limit = 16;                      // the agent makes two
constexpr std::size_t export_file_limit = 200'000;   // files of one export
constexpr std::uint64_t export_limit = 256ULL << 20; // bytes of one file
constexpr int transfer_patience_seconds = 60;

// --- the agent's side ---

class Sending {
public:
    explicit Sending(FdRef transfer) : transfer_(transfer) {}

    // Returns how many entries it skipped: links, anything else that is not a file, and what is too large.
    std::uint64_t send_all(FdRef top)
    {
        send_directory(top, "", 0);
        send_packet(transfer_, "/", {}, in_seconds(transfer_patience_seconds)); // no name: the end
        return skipped_;
    }

private:
    void send_directory(FdRef directory, const std::string &above, int depth)
    {
        for (const auto &name : names_in(directory)) {
            const std::string path = above.empty() ? name : above + "/" + name;
            if (const auto child = find_beneath(directory, name, O_RDONLY | O_DIRECTORY)) {
                if (depth < depth_limit)
                    send_directory(child, path, depth + 1);
                else
                    ++skipped_;
            } else {
                send_file(directory, name, path);
            }
        }
    }

    void send_file(FdRef directory, const std::string &name, const std::string &path)
    {
        const auto file = find_beneath(directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        struct stat facts {};
        const bool fits = file && fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode) &&
                          static_cast<std::uint64_t>(facts.st_size) <= export_limit && path.size() < packet_limit / 2;
        if (!fits) return static_cast<void>(++skipped_);
        if (++sent_ > export_file_limit) throw Failure(ExitStatus::limit, "the agent has more session files than an export takes");
        send_packet(transfer_, path, {file.get()}, in_seconds(transfer_patience_seconds));
    }

    FdRef transfer_;
    std::size_t sent_ = 0;
    std::uint64_t skipped_ = 0;
};

// --- the user's side ---

// In the child that is the user whose sessions are copied.
std::string name_of_this_user()
{
    const int reason = errno; // asking for the account changes it, and throw_errno() says it afterwards
    const auto account = find_account(Uid(::geteuid()));
    errno = reason;
    return account ? escape_for_display(account->name) : "the user";
}

// No link is followed on the way: in a root the user's agent may have made it, and what is written here comes from the agent, too.
UniqueFd open_without_links(FdRef from, const std::string &name, int flags, const std::string &path)
{
    auto found = find_beneath(from, name, flags | O_DIRECTORY);
    const bool is_other = !found && (errno == ELOOP || errno == EXDEV || errno == ENOTDIR);
    if (is_other)
        throw Failure(ExitStatus::usage,
                      escape_for_display(path) +
                          " is not a directory, or is behind a symlink, which the agent may have made; name a directory by its real path");
    if (!found) throw_errno(name_of_this_user() + " cannot open " + escape_for_display(path));
    return found;
}

UniqueFd make_export_directory(const std::string &path)
{
    const std::string shown = escape_for_display(path);
    const auto top = open_or_throw("opening /", "/", O_PATH | O_DIRECTORY);
    const auto [above, name] = split_last(path.substr(1));
    const auto parent = open_without_links(top, above, O_PATH, path);
    if (mkdirat(parent.get(), name.c_str(), 0700) != 0 && errno != EEXIST) throw_errno(name_of_this_user() + " cannot create " + shown);
    auto directory = open_without_links(parent, name, O_RDONLY, path);
    if (!names_in(directory).empty()) throw Failure(ExitStatus::usage, shown + " is not empty; name a new directory");
    return directory;
}

std::uint64_t copy_file(FdRef from, FdRef directory, const std::string &name, FdRef channel)
{
    const auto to = open_or_throw("creating " + escape_for_display(name), directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    constexpr std::size_t piece = std::size_t{8} << 20U;
    for (std::uint64_t size = 0;;) {
        const auto count = sendfile(to.get(), from.get(), nullptr, piece);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw_errno("writing " + escape_for_display(name));
        if (count == 0) return size;
        size += static_cast<std::uint64_t>(count);
        if (size > export_limit)
            throw Failure(FailureKind::changed_meanwhile, escape_for_display(name) + " grew while it was copied; run the command again");
        send_progress(channel);
    }
}

void receive_all(FdRef transfer, const std::string &path, FdRef channel)
{
    const auto top = make_export_directory(path);
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
    for (;;) {
        // Says that it is alive while the reader looks for the next one.
        for (int second = 0; second < transfer_patience_seconds && !wait_for_input(transfer, in_seconds(1)); ++second)
            send_progress(channel);
        const auto packet = receive_packet(transfer, in_seconds(1));
        if (!packet) throw Failure(ExitStatus::limit, "the process that reads the agent's sessions ended early; run the command again");
        if (packet->bytes == "/") break;
        // Anything can come from the agent's account. It takes only a path of names, each of one component, none of which leads up.
        if (packet->fds.size() != 1 || has_odd_component(packet->bytes) || packet->bytes.find('\0') != std::string::npos)
            throw ProtocolError("the reader sent something else than a file");
        const auto [above, name] = split_last(packet->bytes);
        bytes += copy_file(packet->fds.front(), ensure_directory_beneath(top, above), name, channel);
        ++files;
    }
    send_answer(channel, Encoder().number(files).number(bytes).bytes());
}

struct Exported {
    std::uint64_t files, bytes, skipped;
};

// Opened by a child with the agent's rights: a link there leads nowhere that the agent may not go.
UniqueFd open_sessions_of_agent(const AsRoot &root, const UserState &state)
{
    const std::string place = std::string(agent_directory) + "/sessions";
    Child child(root, "look at the home of " + state.agent.name, state.agent, {state.home.get()},
                [&](const AsUser & /*agent*/, FdRef channel) {
                    const auto found = find_beneath(state.home, place, O_RDONLY | O_DIRECTORY);
                    send_answer(channel, found ? "y" : "n", found ? std::vector<int>{found.get()} : std::vector<int>{});
                });
    auto answer = child.receive();
    if (answer.fds.size() != 1) throw NothingToDo("the agent of " + escape_for_display(state.user) + " has no sessions to export");
    return std::move(answer.fds.front());
}

// --- Copies and compares trees by descriptors. Agents wrote them, so nothing in them is believed: neither names, nor links, nor depth.

constexpr int deepest_home = 256;                           // three descriptors each; a path of usual length has fewer names
constexpr std::size_t names_limit = std::size_t{64} << 10U; // of attributes, the kernel's own
constexpr std::size_t piece_size = std::size_t{1} << 20U;

[[noreturn]] void refuse_in_home(const std::string &path, const std::string &problem)
{
    throw Failure(ExitStatus::configuration, escape_for_display(path) + " " + problem);
}

// Times, in the order of futimens(2).
std::array<timespec, 2> times_of(const struct stat &facts)
{
    return {facts.st_atim, facts.st_mtim};
}

std::vector<std::string> attribute_names(FdRef file, const std::string &path)
{
    std::vector<char> buffer(names_limit);
    const ssize_t size = ::flistxattr(file.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == ENOTSUP) return {};
    if (size < 0) throw_errno("listing the attributes of " + escape_for_display(path));
    std::vector<std::string> names;
    for (const auto name : split({buffer.data(), static_cast<std::size_t>(size)}, '\0'))
        // What others than root give meaning to. Labels belong to the place, and capabilities would be root's gift.
        if (name.starts_with("user.") || name.starts_with("system.posix_acl_")) names.emplace_back(name);
    return names;
}

// Calls `step` with each part of the file that is not a hole.
void for_each_part(FdRef file, off_t size, const std::string &path, const std::function<void(off_t begin, off_t end)> &step)
{
    for (off_t at = 0; at < size;) {
        const off_t begin = ::lseek(file.get(), at, SEEK_DATA);
        if (begin < 0 && errno == ENXIO) return; // nothing but a hole is left
        if (begin < 0) throw_errno("looking for holes in " + escape_for_display(path));
        const off_t end = ::lseek(file.get(), begin, SEEK_HOLE);
        if (end < 0) throw_errno("looking for holes in " + escape_for_display(path));
        step(begin, end);
        at = end;
    }
}

// The same entry that was examined, opened to read. A name may lead to another one by now.
UniqueFd open_same(FdRef parent, const std::string &name, const struct stat &expected, int flags, const std::string &path)
{
    auto entry = open_or_throw("opening " + escape_for_display(path), parent, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!is_same_file(examine(entry, "examining " + escape_for_display(path)), expected))
        refuse_in_home(path, "changed while it was copied: something still writes there");
    return entry;
}

class HomesCopy {
public:
    HomesCopy(FdRef from, FdRef to) : device_(examine(from, "examining the agents' homes").st_dev), top_(to) {}

    // `below` is the path from the top.
    void copy_directory(FdRef from, FdRef to, const std::string &path, const std::string &below, int depth)
    {
        if (depth > deepest_home) refuse_in_home(path, "nests too deep; remove it, or empty that home (pi-agentctl state reset)");
        for (const auto &name : names_in(from)) {
            const std::string entry_path = path + "/" + name;
            const auto entry = open_or_throw("opening " + escape_for_display(entry_path), from, name, O_PATH | O_NOFOLLOW);
            const struct stat facts = examine(entry, "examining " + escape_for_display(entry_path));
            if (facts.st_dev != device_ && defence_is_on("move-one-file-system"))
                refuse_in_home(entry_path, "is a file system of its own; unmount it first, and mount it at its new place afterwards");
            const std::string shown = escape_for_display(entry_path);
            const std::string entry_below = join_path(below, name);
            if (S_ISDIR(facts.st_mode)) {
                const auto inner = open_same(from, name, facts, O_RDONLY | O_DIRECTORY, entry_path);
                if (::mkdirat(to.get(), name.c_str(), 0700) != 0) throw_errno("creating the copy of " + shown);
                const auto made = open_or_throw("opening the copy of " + shown, to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
                copy_directory(inner, made, entry_path, entry_below, depth + 1);
                give(inner, made, facts, entry_path);
                continue;
            }
            // Of a file with several names the first is copied, and the others are made names of that copy.
            const auto first = facts.st_nlink < 2 ? links_.end() : links_.find({facts.st_dev, facts.st_ino});
            if (first == links_.end()) {
                if (facts.st_nlink > 1) links_.emplace(std::pair(facts.st_dev, facts.st_ino), entry_below);
                copy_entry(from, to, name, entry, facts, entry_path);
            } else if (::linkat(top_.get(), first->second.c_str(), to.get(), name.c_str(), 0) != 0) {
                if (errno == ENAMETOOLONG)
                    refuse_in_home(
                        entry_path,
                        "is another name of a file whose path is too long; remove it, or empty that home (pi-agentctl state reset)");
                throw_errno("creating the copy of " + shown);
            }
        }
    }

private:
    static void copy_entry(FdRef from, FdRef to, const std::string &name, FdRef entry, const struct stat &facts, const std::string &path)
    {
        if (S_ISREG(facts.st_mode)) {
            const auto file = open_same(from, name, facts, O_RDONLY, path);
            const auto made =
                open_or_throw("creating the copy of " + escape_for_display(path), to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
            for_each_part(file, facts.st_size, path, [&](off_t begin, off_t end) {
                if (::lseek(made.get(), begin, SEEK_SET) < 0) throw_errno("writing " + escape_for_display(path) + " at the new place");
                while (begin < end) {
                    const ssize_t count = ::sendfile(made.get(), file.get(), &begin, static_cast<std::size_t>(end - begin));
                    if (count < 0 && errno == EINTR) continue;
                    if (count < 0) throw_errno("writing " + escape_for_display(path) + " at the new place");
                    if (count == 0) refuse_in_home(path, "became shorter while it was copied: something still writes there");
                }
            });
            if (::ftruncate(made.get(), facts.st_size) != 0) throw_errno("writing " + escape_for_display(path) + " at the new place");
            return give(file, made, facts, path);
        }
        const int failed = S_ISLNK(facts.st_mode) ? ::symlinkat(read_link(entry, "").c_str(), to.get(), name.c_str())
                           : S_ISFIFO(facts.st_mode) || S_ISSOCK(facts.st_mode)
                               ? ::mknodat(to.get(), name.c_str(), facts.st_mode, 0)
                               : (refuse_in_home(path, "is a device, which no agent can have made; look at it, and remove it"), -1);
        const auto times = times_of(facts);
        if (failed != 0 || ::fchownat(to.get(), name.c_str(), facts.st_uid, facts.st_gid, AT_SYMLINK_NOFOLLOW) != 0 ||
            (!S_ISLNK(facts.st_mode) && ::fchmodat(to.get(), name.c_str(), facts.st_mode & 07777U, 0) != 0) ||
            ::utimensat(to.get(), name.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) != 0)
            throw_errno("creating the copy of " + escape_for_display(path));
    }

    // The owner before the mode, because a change of owner takes bits away.
    static void give(FdRef from, FdRef to, const struct stat &facts, const std::string &path)
    {
        const auto times = times_of(facts);
        if (::fchown(to.get(), facts.st_uid, facts.st_gid) != 0 || ::fchmod(to.get(), facts.st_mode & 07777U) != 0)
            throw_errno("setting owner and mode of the copy of " + escape_for_display(path));
        for (const auto &name : attribute_names(from, path)) {
            std::vector<char> value(names_limit);
            const ssize_t size = ::fgetxattr(from.get(), name.c_str(), value.data(), value.size());
            if (size < 0) throw_errno("reading an attribute of " + escape_for_display(path));
            if (::fsetxattr(to.get(), name.c_str(), value.data(), static_cast<std::size_t>(size), 0) != 0)
                throw_errno("writing an attribute or access list of " + escape_for_display(path) + " at the new place");
        }
        if (::futimens(to.get(), times.data()) != 0) throw_errno("setting the times of the copy of " + escape_for_display(path));
    }

    dev_t device_;
    FdRef top_;
    std::map<std::pair<dev_t, ino_t>, std::string> links_; // the copy of a file with several names
};

bool have_same_parts(FdRef from, FdRef to, off_t size, const std::string &path)
{
    bool are_same = true;
    std::vector<char> one(piece_size);
    std::vector<char> other(piece_size);
    for_each_part(from, size, path, [&](off_t begin, off_t end) {
        while (are_same && begin < end) {
            const auto length = std::min(piece_size, static_cast<std::size_t>(end - begin));
            const ssize_t count = ::pread(from.get(), one.data(), length, begin);
            if (count < 0) throw_errno("reading " + escape_for_display(path));
            are_same = count > 0 && ::pread(to.get(), other.data(), static_cast<std::size_t>(count), begin) == count &&
                       std::equal(one.begin(), one.begin() + count, other.begin());
            begin += count;
        }
    });
    return are_same;
}

std::vector<std::string> sorted_names(FdRef directory)
{
    auto names = names_in(directory);
    std::ranges::sort(names);
    return names;
}

} // namespace

void run_state_export(const std::string &user, const std::string &directory, std::ostream &out)
{
    const auto root = claim_root("state export", "reads as the agent's account and writes as the user, so only root can run it");
    const auto state = find_state(root, load_policy(policy_path).agent.state_dir, user);
    const auto account = find_account(user);
    if (!account || account->uid == Uid(0))
        throw Failure(ExitStatus::configuration,
                      escape_for_display(user) + " is not a user of this host any more, so nobody can own the copy");
    const std::string path = without_trailing_slashes(std::filesystem::absolute(directory).lexically_normal().string());
    if (path == "/") throw Failure(ExitStatus::usage, "the export needs an empty directory of its own; name a new one");
    const auto sessions = open_sessions_of_agent(root, state);
    auto [sending, receiving] = make_channel();
    Child reader(root, "reader of the agent's sessions", state.agent, {sessions.get(), sending.get()},
                 [&, to = FdRef(sending)](const AsUser & /*agent*/, FdRef channel) {
                     send_answer(channel, Encoder().number(Sending(to).send_all(sessions)).bytes());
                 });
    sending.reset();
    Child writer(root, "writer of the export", *account, {receiving.get()},
                 [&, from = FdRef(receiving)](const AsUser & /*user*/, FdRef channel) { receive_all(from, path, channel); });
    receiving.reset();
    const auto written = writer.receive();
    Decoder decoder(written.bytes);
    Exported exported{decoder.number(), decoder.number(), 0};
    exported.skipped = Decoder(reader.receive().bytes).number();
    out << exported.files << " files, " << to_size(exported.bytes) << ", copied to " << escape_for_display(path) << ", of "
        << escape_for_display(user) << '\n';
    if (exported.skipped > 0)
        out << exported.skipped << " entries left out: links, other things than files, or larger than " << to_size(export_limit) << '\n';
}

void copy_tree(const AsRoot & /*root*/, FdRef from, FdRef to, const std::string &path)
{
    HomesCopy(from, to).copy_directory(from, to, path, "", 0);
}

void require_same_tree(FdRef from, FdRef to, const std::string &path)
{
    const auto differs = [](const std::string &entry) { refuse_in_home(entry, "is not the same at the new place; something changed it"); };
    const auto names = sorted_names(from);
    if (names != sorted_names(to)) differs(path);
    for (const auto &name : names) {
        const std::string entry_path = path + "/" + name;
        const std::string shown = escape_for_display(entry_path);
        auto one = open_or_throw("opening " + shown, from, name, O_PATH | O_NOFOLLOW);
        auto other = open_or_throw("opening the copy of " + shown, to, name, O_PATH | O_NOFOLLOW);
        const struct stat facts = examine(one, "examining " + shown);
        const struct stat copied = examine(other, "examining the copy of " + shown);
        const bool has_size = S_ISREG(facts.st_mode) || S_ISLNK(facts.st_mode);
        if (!(facts.st_mode == copied.st_mode && facts.st_uid == copied.st_uid && facts.st_gid == copied.st_gid &&
              (!has_size || facts.st_size == copied.st_size) && facts.st_mtim.tv_sec == copied.st_mtim.tv_sec))
            differs(entry_path);
        if (S_ISDIR(facts.st_mode)) {
            one.reset(); // a tree as deep as the copy allows must not take more descriptors than there are
            other.reset();
            require_same_tree(open_same(from, name, facts, O_RDONLY | O_DIRECTORY, entry_path),
                              open_same(to, name, copied, O_RDONLY | O_DIRECTORY, entry_path), entry_path);
        } else if (S_ISLNK(facts.st_mode)) {
            if (read_link(one, "") != read_link(other, "")) differs(entry_path);
        } else if (S_ISREG(facts.st_mode)) {
            const auto file = open_same(from, name, facts, O_RDONLY, entry_path);
            if (!have_same_parts(file, open_same(to, name, copied, O_RDONLY, entry_path), facts.st_size, entry_path)) differs(entry_path);
        }
    }
}

} // namespace pi_agent
