// The reading half of the config sync.
#include "runner/reader.hpp"

#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/escape.hpp"
#include "runner/child.hpp"
#include "runner/sync_messages.hpp"

#include <algorithm>
#include <array>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <vector>

namespace pi_agent {

namespace {

constexpr std::size_t depth_limit = 128;
constexpr std::size_t entry_limit = 200'000;
constexpr std::size_t notice_limit = 20;
constexpr off_t file_limit = off_t{256} << 20U;
constexpr off_t total_limit = off_t{2} << 30U;
constexpr int transfer_patience_seconds = 300; // the writer may be busy with a large file; the runner watches both

// pi-contract: what the agent owns inside, and what never leaves the host. Top-level names of the config directory.
constexpr std::array agent_owned = {
    std::string_view("sessions"),   std::string_view("bin"),          std::string_view("git"),
    std::string_view("npm"),        std::string_view("tmp"),          std::string_view("models-store.json"),
    std::string_view("trust.json"), std::string_view("crashes.json"), std::string_view("mcp-auth.json"),
};

bool ends_with(std::string_view text, std::string_view ending) noexcept
{
    return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

bool is_left_out(std::string_view path)
{
    const bool top_level = path.find('/') == std::string_view::npos;
    if (!top_level) return false;
    return std::find(agent_owned.begin(), agent_owned.end(), path) != agent_owned.end() || ends_with(path, ".lock") ||
           ends_with(path, ".log") || path.substr(0, 17) == "mcp-auth-refresh-";
}

// A writer that has ended told the runner why, and the runner ends us: a word of ours about the closed channel would only hide that.
void send_to_writer(FdRef transfer, const SyncMessage &message, const std::vector<int> &fds)
{
    try {
        send_packet(transfer, encode(message), fds, in_seconds(transfer_patience_seconds));
    } catch (const SystemFailure &failure) {
        if (failure.error_number() != EPIPE && failure.error_number() != ECONNRESET) throw;
        for (;;)
            pause();
    }
}

struct Directory {
    dev_t device;
    ino_t inode;
};

class Walk {
public:
    Walk(std::string top, FdRef transfer, FdRef channel) : top_(std::move(top)), transfer_(transfer), channel_(channel) {}

    void send_settings(FdRef directory)
    {
        UniqueFd file;
        const UniqueFd place = UniqueFd::adopt(openat(directory.get(), "settings.json", O_PATH | O_CLOEXEC));
        if (place) {
            struct stat facts {};
            if (fstat(place.get(), &facts) != 0) throw_errno("examining " + top_ + "/settings.json");
            if (S_ISREG(facts.st_mode) && !is_kernels(place)) file = reopen(place);
            if (!file)
                throw Failure(ExitStatus::configuration,
                              escape_for_display(top_) + "/settings.json is not a file that you can read; correct it, nothing was changed");
        } else if (const int problem = errno;
                   problem != ENOENT || faccessat(directory.get(), "settings.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
            throw Failure(ExitStatus::configuration,
                          std::string(SystemFailure(problem, "opening " + escape_for_display(top_) + "/settings.json").what()) +
                              "; correct it, nothing was changed");
        }
        send(SyncMessage{SyncStep::settings, top_ + "/settings.json", 0, 0, 0, 0}, file);
    }

    void enter(UniqueFd fd, const std::string &path)
    {
        struct stat facts {};
        if (fstat(fd.get(), &facts) != 0) throw_errno("examining " + shown(path));
        const bool loop = std::any_of(above_.begin(), above_.end(),
                                      [&](const Directory &d) { return d.device == facts.st_dev && d.inode == facts.st_ino; });
        if (loop) return skip(path, "a link back to a directory above it");
        if (above_.size() >= depth_limit) return skip(path, "nested too deep");
        above_.push_back(Directory{facts.st_dev, facts.st_ino});
        const std::unique_ptr<DIR, int (*)(DIR *)> stream(fdopendir(fd.release()), closedir);
        if (!stream) throw_errno("reading " + shown(path));
        for (;;) {
            errno = 0;
            const dirent *entry = readdir(stream.get());
            if (entry == nullptr) {
                if (errno != 0) skip(path, SystemFailure(errno, "reading").what());
                break;
            }
            const std::string name = entry->d_name;
            if (name != "." && name != "..") visit(FdRef(dirfd(stream.get())), name, path.empty() ? name : path + "/" + name);
        }
        above_.pop_back();
    }

    void finish()
    {
        if (skipped_ > notice_limit) send_answer(channel_, "and " + std::to_string(skipped_ - notice_limit) + " more");
        send(SyncMessage{SyncStep::end, "", 0, 0, 0, 0}, UniqueFd());
    }

private:
    [[nodiscard]] std::string shown(const std::string &path) const { return escape_for_display(path.empty() ? top_ : top_ + "/" + path); }

    // O_PATH first and a look at the type: opening a FIFO would wait, opening a device may act.
    static UniqueFd reopen(FdRef place)
    {
        return UniqueFd::adopt(
            open(("/proc/self/fd/" + std::to_string(place.get())).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    }

    // The reader is a fork of root's process: its memory map in /proc is root's.
    static bool is_kernels(FdRef place)
    {
        struct statfs facts {};
        if (!defence_is_on("kernels-files")) return false;
        return fstatfs(place.get(), &facts) != 0 || facts.f_type == PROC_SUPER_MAGIC || facts.f_type == SYSFS_MAGIC;
    }

    void visit(FdRef parent, const std::string &name, const std::string &path)
    {
        if (is_left_out(path) || path == "settings.json") return;
        if (++entries_ > entry_limit)
            throw Failure(ExitStatus::configuration, escape_for_display(top_) + " holds more than " + std::to_string(entry_limit) +
                                                         " entries; is it really the config directory?");
        if (entries_ % 64 == 0) send_progress(channel_);
        const UniqueFd place = UniqueFd::adopt(openat(parent.get(), name.c_str(), O_PATH | O_CLOEXEC));
        if (!place) return skip(path, errno == ELOOP ? "a loop of links" : SystemFailure(errno, "opening").what());
        struct stat facts {};
        if (fstat(place.get(), &facts) != 0) return skip(path, SystemFailure(errno, "examining").what());
        if (!S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode)) return skip(path, "neither a file nor a directory");
        if (is_kernels(place)) return skip(path, "a file of the kernel's");
        if (S_ISREG(facts.st_mode) && facts.st_size > file_limit && defence_is_on("file-limit")) return skip(path, "larger than 256 MiB");
        if (S_ISREG(facts.st_mode) && (total_ += facts.st_size) > total_limit)
            throw Failure(ExitStatus::configuration,
                          escape_for_display(top_) + " holds more than 2 GiB; is it really the config directory?");
        UniqueFd fd = reopen(place);
        if (!fd) return skip(path, SystemFailure(errno, "opening").what());
        SyncMessage message{SyncStep::directory,   path,
                            facts.st_mode & 0777,  facts.st_mtim.tv_sec,
                            facts.st_mtim.tv_nsec, static_cast<std::uint64_t>(facts.st_size)};
        if (S_ISDIR(facts.st_mode)) {
            send(message, UniqueFd());
            enter(std::move(fd), path);
            return;
        }
        message.step = path == "auth.json" ? SyncStep::seed : SyncStep::file;
        send(message, fd);
    }

    void skip(const std::string &path, const std::string &reason)
    {
        if (++skipped_ <= notice_limit) send_answer(channel_, "config: skipped " + shown(path) + ": " + reason);
    }

    void send(const SyncMessage &message, const UniqueFd &fd)
    {
        send_to_writer(transfer_, message, fd ? std::vector<int>{fd.get()} : std::vector<int>{});
    }

    std::string top_;
    FdRef transfer_;
    FdRef channel_;
    std::vector<Directory> above_;
    std::size_t entries_ = 0;
    off_t total_ = 0;
    std::size_t skipped_ = 0;
};

// The first component of a path that is a link to nothing, or "". Such a link is a mistake; nothing at all is a new user. Keeps no errno
// but ENOENT, with which the path was found missing.
std::string find_dangling_link(const std::string &path)
{
    std::string found;
    for (std::size_t end = path.find('/', 1); found.empty(); end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        const bool leads_nowhere = access(part.c_str(), F_OK) != 0 && errno == ENOENT;
        if (leads_nowhere && faccessat(AT_FDCWD, part.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) found = part;
        if (leads_nowhere || end == std::string::npos) break;
    }
    errno = ENOENT;
    return found;
}

} // namespace

void read_config(const AsUser & /*user*/, const std::string &config_directory, FdRef transfer, FdRef channel)
{
    Walk walk(config_directory, transfer, channel);
    UniqueFd top = UniqueFd::adopt(open(config_directory.c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));
    const std::string dangling = !top && errno == ENOENT ? find_dangling_link(config_directory) : "";
    if (!dangling.empty())
        throw Failure(ExitStatus::configuration,
                      "your config directory cannot be used: " + escape_for_display(config_directory) +
                          " is dangling: " + escape_for_display(dangling) +
                          " is a link to what is not there (a file system that is not mounted?); mount it, or correct the link");
    if (!top && errno != ENOENT)
        throw Failure(ExitStatus::configuration,
                      "your config directory cannot be used: " +
                          std::string(SystemFailure(errno, "opening " + escape_for_display(config_directory)).what()) +
                          "; make it a directory that you can read, or ask the administrator to set users.*.config");
    if (top) {
        walk.send_settings(top);
        walk.enter(std::move(top), "");
    } else {
        send_to_writer(transfer, SyncMessage{SyncStep::settings, "", 0, 0, 0, 0}, {});
    }
    walk.finish();
    send_answer(channel, "");
}

} // namespace pi_agent
