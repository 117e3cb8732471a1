// Messages to the wrapper, notices that are sent only once, and which version used a home last.
#include "runner/root/session/to_wrapper.hpp"

#include "common/base/files.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_agent/writer.hpp"

namespace pi_agent {

// --- Messages to the wrapper, and notices that are sent only once.

namespace {

constexpr int wrapper_patience_seconds = 2;

bool send(FdRef wrapper, const RunnerMessage &message, Deadline deadline) noexcept
{
    try {
        send_packet(wrapper, encode(message), {}, deadline);
        return true;
    } catch (const std::exception &) { // best_effort: see the header
        return false;
    }
}

constexpr std::size_t marks_limit = 4096; // bytes: some two hundred places

std::string mark_of(const std::vector<std::string> &notices)
{
    std::string all;
    for (const auto &notice : notices)
        all += notice + '\n';
    return std::to_string(std::hash<std::string>()(all));
}

// A file that root owns, in a directory for root alone. It has no lock: two starts at the same time may both send a notice, and neither
// waits.
void rewrite(FdRef file, const std::string &name, const std::string &marks)
{
    if (lseek(file.get(), 0, SEEK_SET) != 0 || ftruncate(file.get(), 0) != 0) throw_errno("emptying " + name);
    write_whole(file, marks, name);
}

// Whether the notice was told before. A disk that is full costs its user a sentence once more, and no start.
bool is_remembered(const std::function<bool()> &is_told) noexcept
{
    try {
        return is_told();
    } catch (const Failure &) {
        return false;
    }
}

} // namespace

void ToWrapper::tell(const RunnerMessage &message) noexcept
{
    const int patience = !defence_is_on("wrapper-deadline") ? 600 : reads_ ? wrapper_patience_seconds : 0;
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

std::vector<std::string> untold(const StateDirectory &state, const char *about, std::vector<std::string> notices, bool always)
{
    const std::string name = std::string("meta/") + about;
    const bool is_told = is_remembered([&] {
        // A user who never had a notice has no such file.
        const UniqueFd file = open_meta_file(state, about, O_RDWR | (notices.empty() ? 0 : O_CREAT));
        const std::string mark = mark_of(notices);
        if (!file || read_whole(file, marks_limit, name) == mark) return bool(file);
        rewrite(file, name, mark);
        return false;
    });
    return is_told && !always ? std::vector<std::string>() : notices;
}

std::vector<std::string> untold_of(const StateDirectory &state, const char *about, const std::string &place,
                                   std::vector<std::string> notices, bool always)
{
    if (notices.empty()) return notices;
    const std::string name = std::string("meta/") + about;
    const bool is_told = is_remembered([&] {
        const UniqueFd file = open_meta_file(state, about);
        std::vector<std::string> named = notices;
        named.push_back(place);
        const std::string mark = mark_of(named) + '\n';
        std::string marks = read_whole(file, marks_limit, name);
        const std::size_t found = marks.find(mark);
        if (found != std::string::npos && (found == 0 || marks[found - 1] == '\n')) return true;
        marks += mark;
        while (marks.size() > marks_limit)
            marks.erase(0, marks.find('\n') + 1); // the oldest place
        rewrite(file, name, marks);
        return false;
    });
    return is_told && !always ? std::vector<std::string>() : notices;
}

// --- Which version used a home last.

namespace {

constexpr const char *stamp_name = "version"; // in meta
constexpr std::size_t stamp_limit = 256;

std::optional<std::string> stamp_text(const StateDirectory &state)
{
    if (defence_is_on("root-stamp")) return read_meta_file(state, stamp_name, stamp_limit);
    const UniqueFd copy = find_beneath(state.home, std::string(".local/state/") + version_copy, O_RDONLY);
    return copy ? std::optional(read_whole(copy, stamp_limit, version_copy)) : std::nullopt;
}

} // namespace

std::optional<Version> read_stamp(const StateDirectory &state)
{
    std::optional<std::string> text = stamp_text(state);
    if (!text) return std::nullopt;
    if (!text->empty() && text->back() == '\n') text->pop_back();
    if (const auto version = parse_version(*text)) return version;
    const std::string path = split_last(state.home_path).first + "/meta/" + stamp_name;
    throw Failure(FailureKind::agent_home, path + " must hold the version of pi-agent that last used the agent's home, but it holds \"" +
                                               escape_for_display(*text) +
                                               "\"; ask the administrator to write that version into it (e.g. 0.1.0), or to remove it: "
                                               "then the home counts as new and no migration hook runs");
}

void write_stamp(const StateDirectory &state, const Version &version)
{
    write_meta_file(state, stamp_name, to_string(version) + "\n");
}

} // namespace pi_agent
