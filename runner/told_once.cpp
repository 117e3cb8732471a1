// A number in the user's meta stands for what was told.
#include "runner/told_once.hpp"

#include "common/error.hpp"
#include "runner/whole_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <unistd.h>

namespace pi_agent {

namespace {

std::string mark_of(const std::vector<std::string> &notices)
{
    std::string all;
    for (const auto &notice : notices)
        all += notice + '\n';
    return std::to_string(std::hash<std::string>()(all));
}

} // namespace

// Nobody locks the file: of two starts at once each may tell the same, and neither waits. root's own, in a directory of root's alone.
std::vector<std::string> untold(const StateDirectory &state, const char *about, std::vector<std::string> notices, bool always)
{
    const int create = notices.empty() ? 0 : O_CREAT; // who never had anything to be told has no such file
    const UniqueFd file = UniqueFd::adopt(openat(state.meta.get(), about, O_RDWR | create | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file && notices.empty() && errno == ENOENT) return notices;
    if (!file) throw_errno(std::string("opening meta/") + about + " of " + state.home_path);
    const std::string mark = mark_of(notices);
    if (read_whole(file, 64, std::string("meta/") + about) == mark && !always) return {};
    if (lseek(file.get(), 0, SEEK_SET) != 0 || ftruncate(file.get(), 0) != 0) throw_errno(std::string("emptying meta/") + about);
    write_whole(file, mark, std::string("meta/") + about);
    return notices;
}

} // namespace pi_agent
