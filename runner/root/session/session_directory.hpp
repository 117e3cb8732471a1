// One session's directory below /run/pi-agent/sessions: mount points only, on a small tmpfs that all sessions share.
#pragma once

#include "common/base/fd.hpp"
#include "common/base/ids.hpp"
#include "common/host/identity.hpp"
#include "runner/wire/answer.hpp"

#include <functional>
#include <string>
#include <vector>

namespace pi_agent {

// An id that nobody can guess (runner/wire/answer.hpp).
std::string make_session_id();

// /run/pi-agent, root's alone; made when it is missing.
UniqueFd open_runtime_directory();

extern const char *const sessions_directory; // /run/pi-agent/sessions
// Links of a session's directory that lead nowhere: their texts are the uid whose session it is, and the process id of its runner.
extern const char *const user_link;
extern const char *const runner_link;

// In a session's directory: links whose texts are the paths of its placeholders, above before below.
constexpr const char *placeholders_directory = "placeholders";

// The directory of all sessions, on the tmpfs that they share and nowhere else; ENOENT before the first one since boot.
UniqueFd open_sessions();
// That of one; none when there is none. Throws SystemFailure where it cannot be opened for another reason.
UniqueFd try_open_session(FdRef sessions, const std::string &id);

// The directory of one session. Locked until unlock() or this one's end, so that a sweep can tell it from an orphan's.
class SessionDirectory {
public:
    static SessionDirectory create(const AsRoot &root, const std::string &id, Uid user);
    [[nodiscard]] const std::string &path() const noexcept { return path_; }
    [[nodiscard]] FdRef fd() const noexcept { return fd_; }
    // Makes the directories of `relative` (root-owned, 0755) and returns the last one, for mounting on.
    UniqueFd make_directory(const std::string &relative) const; // NOLINT(modernize-use-nodiscard): often only the directory is wanted
    // A new, empty file, readable by all; O_RDWR.
    [[nodiscard]] UniqueFd make_file(const std::string &name) const;
    // The same where it may be there already, empty, because what builds the sandbox shows each file by itself.
    [[nodiscard]] UniqueFd make_late_file(const std::string &name) const;
    [[nodiscard]] bool has(const std::string &name) const;
    void make_link(const std::string &relative, const std::string &target) const;
    // The session is over: it is not counted any more, and whoever removes it need not wait.
    void unlock() const;

private:
    std::string path_;
    UniqueFd fd_;
};

// What else a session left, found by the links of its directory. False when some of that stays, for whoever comes next and finds the links.
using RemoveRest = std::function<bool(FdRef session)>;

// Unmounts and removes what a session left; finding nothing is fine. It never deletes a file: directories, links it made, mount points.
// `rest` is called when nothing is mounted any more and the links are still there; they stay where it says so.
void remove_session(const AsRoot &root, const std::string &id, const RemoveRest &rest = {});
// The same, and the directory stays with its links and its record.
void unmount_session(const AsRoot &root, const std::string &id, const RemoveRest &rest);

// Whether there is a directory of this session. Throws SystemFailure where that cannot be told.
bool session_exists(const AsRoot &root, const std::string &id);

// The text of a link that make_link made in a session's directory; empty when there is none. Throws SystemFailure as above.
std::string read_session_link(FdRef session, const char *name);

} // namespace pi_agent
