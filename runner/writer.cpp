// The writing half of the config sync.
#include "runner/writer.hpp"

#include "common/error.hpp"
#include "common/escape.hpp"
#include "runner/beneath.hpp"
#include "runner/child.hpp"
#include "runner/json_merge.hpp"
#include "runner/sync_messages.hpp"

#include <array>
#include <fcntl.h>
#include <optional>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

const char *const agent_directory = ".pi/agent";

namespace {

constexpr std::size_t settings_limit = 4 * 1024 * 1024;
constexpr std::size_t copy_step = 8 * 1024 * 1024;
constexpr int reader_patience_seconds = 300; // the runner watches both and stops them earlier

std::string random_name()
{
    std::array<unsigned char, 12> bytes{};
    if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) throw_errno("getting random bytes");
    std::string name = ".pi-agent-new-";
    for (const unsigned char byte : bytes) {
        name += "0123456789abcdef"[byte >> 4U];
        name += "0123456789abcdef"[byte & 15U];
    }
    return name;
}

// A new file that takes the place of `name` in one step, or vanishes again.
class Replacement {
public:
    Replacement(FdRef directory, std::string name) : directory_(directory), name_(std::move(name)), temporary_(random_name())
    {
        fd_ = UniqueFd::adopt(openat(directory_.get(), temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!fd_) throw_errno("creating a file in the agent's home");
    }
    Replacement(const Replacement &) = delete;
    Replacement &operator=(const Replacement &) = delete;
    Replacement(Replacement &&) = delete;
    Replacement &operator=(Replacement &&) = delete;
    ~Replacement()
    {
        if (!committed_) unlinkat(directory_.get(), temporary_.c_str(), 0); // best_effort: the failure that led here is what counts
    }

    [[nodiscard]] FdRef fd() const noexcept { return fd_; }

    void commit()
    {
        if (renameat(directory_.get(), temporary_.c_str(), directory_.get(), name_.c_str()) != 0) {
            if (errno != EISDIR && errno != ENOTEMPTY && errno != EEXIST) throw_errno("replacing " + escape_for_display(name_));
            remove_beneath(directory_, name_);
            if (renameat(directory_.get(), temporary_.c_str(), directory_.get(), name_.c_str()) != 0)
                throw_errno("replacing " + escape_for_display(name_));
        }
        committed_ = true;
    }

private:
    FdRef directory_;
    std::string name_;
    std::string temporary_;
    UniqueFd fd_;
    bool committed_ = false;
};

void write_all(FdRef fd, std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t written = write(fd.get(), bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw_errno("writing in the agent's home");
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

std::string read_bounded(FdRef fd, std::size_t limit, const std::string &name)
{
    std::string text;
    std::array<char, 65'536> buffer{};
    for (;;) {
        const ssize_t count = read(fd.get(), buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw_errno("reading " + name);
        if (count == 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(count));
        if (text.size() > limit) throw Failure(ExitStatus::configuration, name + " is larger than " + std::to_string(limit) + " bytes");
    }
}

void copy_file(FdRef from, FdRef to, FdRef channel)
{
    for (;;) {
        const ssize_t count = copy_file_range(from.get(), nullptr, to.get(), nullptr, copy_step, 0);
        if (count == 0) return;
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) break;
        send_progress(channel);
    }
    if (errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS) throw_errno("copying a config file");
    // Between file systems that cannot copy by themselves, e.g. from a FUSE mount.
    std::array<char, 262'144> buffer{};
    for (;;) {
        const ssize_t count = read(from.get(), buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw_errno("reading a config file");
        if (count == 0) return;
        write_all(to, std::string_view(buffer.data(), static_cast<std::size_t>(count)));
        send_progress(channel);
    }
}

class Writer {
public:
    Writer(FdRef home, FdRef channel) : top_(ensure_directory_beneath(home, agent_directory)), channel_(channel) {}

    void write_settings(const UniqueFd &host, const std::string &host_path, const std::string &managed)
    {
        nlohmann::json settings = nlohmann::json::object();
        const std::string name = host_path.empty() ? "your settings.json" : escape_for_display(host_path);
        if (host) settings = parse_json_object(read_bounded(host, settings_limit, name), name);
        settings = merge_managed(std::move(settings), parse_json_object(managed, "the managed settings"));
        const std::string text = settings.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
        if (current_text("settings.json") == text) return;
        Replacement file(top_, "settings.json");
        write_all(file.fd(), text);
        file.commit();
    }

    void make_directory(const SyncMessage &message) { ensure_directory_beneath(top_, message.path); }

    void write_file(const SyncMessage &message, const UniqueFd &source)
    {
        const auto [directory_path, name] = split_last(message.path);
        const UniqueFd directory = ensure_directory_beneath(top_, directory_path);
        struct stat present {};
        const bool exists = fstatat(directory.get(), name.c_str(), &present, AT_SYMLINK_NOFOLLOW) == 0;
        if (exists && message.step == SyncStep::seed) return;
        if (exists && S_ISREG(present.st_mode) && static_cast<std::uint64_t>(present.st_size) == message.size &&
            present.st_mtim.tv_sec == message.modified_seconds && present.st_mtim.tv_nsec == message.modified_nanoseconds)
            return;
        Replacement file(directory, name);
        copy_file(source, file.fd(), channel_);
        // Only the owner's bits: the home is private, and setuid bits never travel.
        if (fchmod(file.fd().get(), static_cast<mode_t>((message.mode & 0700U) | 0600U)) != 0) throw_errno("setting a config file's mode");
        const timespec when{message.modified_seconds, message.modified_nanoseconds};
        const std::array<timespec, 2> times{when, when};
        if (futimens(file.fd().get(), times.data()) != 0) throw_errno("setting a config file's time");
        file.commit();
    }

private:
    std::optional<std::string> current_text(const std::string &name)
    {
        const UniqueFd fd = UniqueFd::adopt(openat(top_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        struct stat facts {};
        if (!fd || fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
        if (static_cast<std::size_t>(facts.st_size) > settings_limit) return std::nullopt;
        return read_bounded(fd, 2 * settings_limit, "the agent's settings.json");
    }

    UniqueFd top_;
    FdRef channel_;
};

bool is_plain_relative(const std::string &path)
{
    if (path.empty() || path.front() == '/' || path.size() > 4096 || path.find('\0') != std::string::npos) return false;
    std::size_t start = 0;
    while (start <= path.size()) {
        const std::size_t slash = std::min(path.find('/', start), path.size());
        const std::string component = path.substr(start, slash - start);
        if (component.empty() || component == "." || component == "..") return false;
        start = slash + 1;
    }
    return true;
}

} // namespace

void write_config(const AsUser & /*agent*/, FdRef home, const std::string &managed, FdRef transfer, FdRef channel)
{
    umask(077);
    std::optional<Writer> writer;
    std::size_t count = 0;
    for (;;) {
        std::optional<Packet> packet = receive_packet(transfer, in_seconds(reader_patience_seconds));
        // The reader died: it says why itself, and what was written so far is whole.
        if (!packet) throw Failure(ExitStatus::system_failure, "the reader of the config ended before it was done");
        const SyncMessage message = decode_sync_message(packet->bytes);
        const UniqueFd source = packet->fds.empty() ? UniqueFd() : std::move(packet->fds[0]);
        if (++count % 64 == 0) send_progress(channel);
        if (message.step == SyncStep::end) break;
        if (message.step == SyncStep::settings) {
            writer.emplace(home, channel);
            writer->write_settings(source, message.path, managed);
            continue;
        }
        if (!writer || !is_plain_relative(message.path)) throw ProtocolError("the reader of the config broke the protocol");
        if (message.step == SyncStep::directory) {
            writer->make_directory(message);
        } else if (source) {
            writer->write_file(message, source);
        }
    }
    if (!writer) throw ProtocolError("the reader of the config broke the protocol");
    send_answer(channel, "");
}

} // namespace pi_agent
