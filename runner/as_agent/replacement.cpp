// Copies what the reader hands over and the defaults, and replaces files in the agent's home.
#include "runner/as_agent/writer.hpp"

#include "common/base/files.hpp"
#include "runner/as_agent/home.hpp"

#include <cstdio>
#include <cstring>

namespace pi_agent {

namespace {

constexpr std::uint64_t small_size = 64UL * 1024; // copied by hand: cheaper than to start a copy in the kernel
constexpr std::size_t copy_step = 8UL * 1024 * 1024;
constexpr int copy_attempts = 3;

// The writer is alone in the staging directory, under the user's lock.
std::string next_name()
{
    static unsigned number = 0;
    return std::to_string(++number);
}

// A file that grows meanwhile is noticed afterwards. A file whose file system reports less than it delivers does not keep us here.
void copy_by_hand(FdRef from, FdRef to, std::uint64_t size, FdRef channel)
{
    static std::vector<char> buffer(small_size);
    for (std::uint64_t done = 0; done < size || !defence_is_on("copied-size");) {
        const ssize_t count = read(from.get(), buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw_errno("reading a config file");
        if (count == 0) return;
        write_whole(to, std::string_view(buffer.data(), static_cast<std::size_t>(count)), "a config file in the agent's home");
        done += static_cast<std::uint64_t>(count);
        if (done > small_size) send_progress(channel);
    }
}

void copy_bytes(FdRef from, FdRef to, std::uint64_t size, FdRef channel)
{
    if (size <= small_size) return copy_by_hand(from, to, size, channel);
    for (std::uint64_t done = 0;;) { // no more than it had when it was opened: it may grow for as long as it is read
        const std::size_t step = defence_is_on("copied-size") ? std::min<std::uint64_t>(copy_step, size - done) : copy_step;
        const ssize_t count = step == 0 ? 0 : copy_file_range(from.get(), nullptr, to.get(), nullptr, step, 0);
        if (count == 0) return;
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) break;
        done += static_cast<std::uint64_t>(count);
        send_progress(channel);
    }
    if (errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS) throw_errno("copying a config file");
    copy_by_hand(from, to, size, channel); // between file systems that cannot copy by themselves, e.g. from a FUSE mount
}

[[noreturn]] void refuse_split_state()
{
    throw Failure(FailureKind::agent_home, "the agent's home is on another file system than the state directory above it; ask the "
                                           "administrator to mount the whole directory users/NAME");
}

// Replaces `name`, whatever it is. A directory that is not empty is set aside, and its new name returned.
std::string move_into_place(FdRef staging, const std::string &temporary, FdRef directory, const std::string &name)
{
    std::string kept;
    if (renameat(staging.get(), temporary.c_str(), directory.get(), name.c_str()) == 0) return kept;
    if (errno == EXDEV) refuse_split_state();
    if (errno == EBUSY)
        throw Failure(FailureKind::busy, escape_for_display(name) + " in the agent's home is locked by another session (settings_lock) and "
                                                                    "has changed since; end your other sessions, then try again");
    if (errno != EISDIR && errno != ENOTEMPTY && errno != EEXIST) throw_errno("replacing " + escape_for_display(name));
    if (unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR) != 0) kept = set_aside(directory, name);
    if (renameat(staging.get(), temporary.c_str(), directory.get(), name.c_str()) != 0)
        throw_errno("replacing " + escape_for_display(name));
    return kept;
}

// As cp(1) makes a file, through any link.
bool write_in_place(FdRef from, FdRef directory, const std::string &name)
{
    const UniqueFd file = open_at(directory, name, O_WRONLY | O_CREAT, 0600);
    off_t begin = 0;
    return file && copy_file_range(from.get(), &begin, file.get(), nullptr, copy_step, 0) >= 0;
}

constexpr int defaults_depth_limit = 64;

std::string shown_default(const std::string &path)
{
    return std::string("the default file ") + build::defaults_path + "/" + escape_for_display(path);
}

// Walks both trees side by side. Where everything already exists, it looks only at names and kinds.
class Seeding {
public:
    Seeding(FdRef staging, FdRef channel) : staging_(staging), channel_(channel) {}

    // `path`: where `from` is beneath the defaults; "", or with a slash at its end.
    void directory(FdRef from, FdRef into, const std::string &path, int depth)
    {
        if (depth > defaults_depth_limit)
            throw Failure(ExitStatus::configuration,
                          shown_default(path) + " is nested too deep; ask the administrator to install pi-agent again");
        for (const auto &name : names_in(from)) {
            struct stat facts {};
            if (fstatat(from.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) throw_errno("examining " + shown_default(path + name));
            if (S_ISDIR(facts.st_mode)) {
                if (mkdirat(into.get(), name.c_str(), 0700) != 0 && errno != EEXIST && errno != EACCES)
                    throw_errno("creating " + escape_for_display(path + name) + " in the agent's home");
                const UniqueFd inner = find_beneath(into, name, O_PATH | O_DIRECTORY);
                if (inner) directory(open_beneath(from, name, O_RDONLY | O_DIRECTORY), inner, path + name + "/", depth + 1);
            } else if (S_ISREG(facts.st_mode)) {
                file(from, into, name, path);
            } else {
                throw Failure(ExitStatus::configuration,
                              shown_default(path + name) +
                                  " is neither a file nor a directory; ask the administrator to install pi-agent again");
            }
        }
    }

private:
    void file(FdRef from, FdRef into, const std::string &name, const std::string &path)
    {
        struct stat facts {};
        const int flags = defence_is_on("seed-new") ? AT_SYMLINK_NOFOLLOW : 0;
        // The agent closed this directory, and there may be anything in it.
        if (fstatat(into.get(), name.c_str(), &facts, flags) == 0 || errno != ENOENT) return;
        const UniqueFd source = find_beneath(from, name, O_RDONLY | O_NONBLOCK);
        if (!source || fstat(source.get(), &facts) != 0) throw_errno("opening " + shown_default(path + name) + " as the agent's account");
        Replacement fresh(staging_, (facts.st_mode & S_IXUSR) != 0 ? 0700 : 0600);
        HostFacts copied = facts_of(facts);
        fresh.copy_from(source, copied, channel_);
        fresh.commit_new(into, name);
        send_progress(channel_);
    }

    FdRef staging_;
    FdRef channel_;
};

// Opens or makes .local/state; none where the agent has something else instead of one of these directories.
UniqueFd make_state_home(FdRef home)
{
    UniqueFd current = open_beneath(home, "", O_RDONLY | O_DIRECTORY);
    for (const char *name : {".local", "state"}) {
        if (mkdirat(current.get(), name, 0700) != 0 && errno != EEXIST)
            throw_errno(std::string("creating ") + name + " in the agent's home");
        current = find_own_directory_beneath(current, name);
        if (!current) break;
    }
    return current;
}

bool holds_text(FdRef directory, const char *name, const std::string &text)
{
    const UniqueFd file = find_beneath(directory, name, O_RDONLY | O_NONBLOCK);
    struct stat facts {};
    if (!file || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
    return static_cast<std::size_t>(facts.st_size) == text.size() && read_whole(file, version_copy_limit, name) == text;
}

} // namespace

Replacement::Replacement(FdRef staging, mode_t mode) : staging_(staging), temporary_(next_name())
{
    fd_ = open_or_throw("creating a config file in the agent's state", staging_, temporary_, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
}

Replacement::~Replacement()
{
    if (!committed_) unlinkat(staging_.get(), temporary_.c_str(), 0); // best_effort: the failure that led here is what counts
}

void Replacement::copy_from(FdRef source, HostFacts &facts, FdRef channel)
{
    for (int attempt = 0; attempt < copy_attempts; ++attempt) {
        copy_bytes(source, fd_, facts.size, channel);
        const struct stat now = examine(source, "examining a config file");
        const HostFacts after = facts_of(now);
        if (after == facts) return;
        facts = after; // it was written meanwhile: start again from the beginning
        const bool rewound = lseek(source.get(), 0, SEEK_SET) == 0 && lseek(fd_.get(), 0, SEEK_SET) == 0;
        if (!rewound || (attempt + 1 < copy_attempts && ftruncate(fd_.get(), 0) != 0)) throw_errno("copying a config file again");
    }
    facts.changed = 0; // as it is, and again at the next start
}

void Replacement::set_modified(std::int64_t nanoseconds)
{
    constexpr std::int64_t second = 1'000'000'000;
    const std::int64_t fraction = ((nanoseconds % second) + second) % second; // before 1970 too
    const timespec when{(nanoseconds - fraction) / second, fraction};
    const std::array<timespec, 2> times{when, when};
    futimens(fd_.get(), times.data()); // best_effort: the time is a courtesy, and this file system may not have it
}

void Replacement::make_durable()
{
    if (fdatasync(fd_.get()) != 0) throw_errno("writing a file in the agent's home to disk");
}

std::string Replacement::commit(FdRef directory, const std::string &name)
{
    if (!defence_is_on("new-file") && write_in_place(fd_, directory, name)) return "";
    std::string kept = move_into_place(staging_, temporary_, directory, name);
    committed_ = true;
    return kept;
}

std::string put_link(FdRef staging, const std::string &target, FdRef directory, const std::string &name)
{
    const std::string temporary = next_name();
    if (symlinkat(target.c_str(), staging.get(), temporary.c_str()) != 0) throw_errno("creating a link in the agent's state");
    return move_into_place(staging, temporary, directory, name);
}

bool Replacement::commit_new(FdRef directory, const std::string &name)
{
    if (!defence_is_on("seed-new")) return write_in_place(fd_, directory, name);
    // A second name instead of a rename: that fails where there is one, also on network file systems. The first goes with this object.
    if (linkat(staging_.get(), temporary_.c_str(), directory.get(), name.c_str(), 0) == 0) return true;
    if (errno == EEXIST || errno == EACCES) return false;
    if (errno == EXDEV) refuse_split_state();
    throw_errno("creating " + escape_for_display(name) + " in the agent's home");
}

void seed_defaults(const AsUser & /*agent*/, FdRef home, FdRef staging, FdRef defaults, FdRef channel)
{
    umask(077);
    remove_content_beneath(staging); // left by a start that was killed
    Seeding(staging, channel).directory(defaults, home, "", 0);
}

bool have_same_bytes(FdRef one, FdRef other, const std::function<void()> &step)
{
    constexpr std::size_t piece = 64UL * 1024;
    constexpr off_t step_size = off_t{8} << 20U;
    static std::string first(piece, '\0');
    static std::string second(piece, '\0');
    for (off_t offset = 0;;) {
        const ssize_t count = pread(one.get(), first.data(), piece, offset);
        const ssize_t other_count = pread(other.get(), second.data(), piece, offset);
        if (count < 0 || other_count < 0) throw_errno("comparing a config file");
        if (count != other_count || std::memcmp(first.data(), second.data(), static_cast<std::size_t>(count)) != 0) return false;
        if (count == 0) return true;
        offset += count;
        if (offset % step_size == 0) step();
    }
}

void copy_version(const AsUser & /*agent*/, FdRef home, FdRef staging, const Version &version)
{
    const std::string text = to_string(version) + "\n";
    const UniqueFd directory = make_state_home(home);
    if (!directory || holds_text(directory, version_copy, text)) return;
    Replacement file(staging, 0600);
    write_whole(file.fd(), text, version_copy);
    file.commit(directory, version_copy);
}

} // namespace pi_agent
