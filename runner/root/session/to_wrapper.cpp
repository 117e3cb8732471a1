// What is told to the wrapper, and what is told once.
#include "runner/root/session/to_wrapper.hpp"

#include "common/base/channel.hpp"
#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/seams/seams.hpp"

#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int wrapper_patience_seconds = 2;

bool send(FdRef wrapper, const RunnerMessage &message, Deadline deadline) noexcept
{
    try {
        send_packet(wrapper, encode(message), {}, deadline);
        return true;
    } catch (const std::exception &) { // best_effort: said in the header
        return false;
    }
}

} // namespace

void ToWrapper::tell(const RunnerMessage &message) noexcept
{
    const bool bounded = defence_is_on("wrapper-deadline");
    const int patience = !bounded ? 600 : reads_ ? wrapper_patience_seconds : 0;
    reads_ = send(wrapper_, message, in_seconds(patience));
}

void ToWrapper::tell_all(const std::vector<std::string> &notices) noexcept
{
    for (const auto &text : notices)
        tell(Notice{text});
}

bool ToWrapper::tell_at_once(const RunnerMessage &message) noexcept
{
    return send(wrapper_, message, Clock::now());
}

namespace {

constexpr std::size_t told_limit = 4096; // bytes: some two hundred places

std::string mark_of(const std::vector<std::string> &notices)
{
    std::string all;
    for (const auto &notice : notices)
        all += notice + '\n';
    return std::to_string(std::hash<std::string>()(all));
}

// A file of root's own, in a directory of root's alone. Nobody locks it: of two starts at once each may tell the same, and neither waits.
class ToldFile {
public:
    ToldFile(const StateDirectory &state, const char *about, int create)
        : name_(std::string("meta/") + about), fd_(open_at(state.meta, about, O_RDWR | create | O_NOFOLLOW, 0600))
    {
        const bool is_absent = create == 0 && errno == ENOENT;
        if (!fd_ && !is_absent) throw_errno("opening " + name_ + " of " + state.home_path);
    }
    explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
    [[nodiscard]] std::string read() const { return read_whole(fd_, told_limit, name_); }
    void write(const std::string &marks) const
    {
        if (lseek(fd_.get(), 0, SEEK_SET) != 0 || ftruncate(fd_.get(), 0) != 0) throw_errno("emptying " + name_);
        write_whole(fd_, marks, name_);
    }

private:
    std::string name_;
    UniqueFd fd_;
};

} // namespace

std::vector<std::string> untold(const StateDirectory &state, const char *about, std::vector<std::string> notices, bool always)
{
    const ToldFile file(state, about, notices.empty() ? 0 : O_CREAT); // who never had anything to be told has no such file
    if (!file) return notices;
    const std::string mark = mark_of(notices);
    if (file.read() == mark && !always) return {};
    file.write(mark);
    return notices;
}

std::vector<std::string> untold_of(const StateDirectory &state, const char *about, const std::string &place,
                                   std::vector<std::string> notices, bool always)
{
    if (notices.empty()) return notices;
    const ToldFile file(state, about, O_CREAT);
    std::vector<std::string> named = notices;
    named.push_back(place);
    const std::string mark = mark_of(named) + '\n';
    std::string marks = file.read();
    const std::size_t found = marks.find(mark);
    if (found != std::string::npos && (found == 0 || marks[found - 1] == '\n')) return always ? notices : std::vector<std::string>();
    marks += mark;
    while (marks.size() > told_limit)
        marks.erase(0, marks.find('\n') + 1); // the place that was told of first
    file.write(marks);
    return notices;
}

} // namespace pi_agent
