// One session's directory below /run/pi-agent/sessions: mount points only, on a small tmpfs that all sessions share.
#pragma once

#include "common/fd.hpp"
#include "common/identity.hpp"
#include "common/ids.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// /run/pi-agent, root's alone; made when it is missing.
UniqueFd open_runtime_directory();

extern const char *const sessions_directory; // /run/pi-agent/sessions
// Links of a session's directory that lead nowhere: their texts are the uid whose session it is, and the process id of its runner.
extern const char *const user_link;
extern const char *const runner_link;

// The directory of all sessions, on the tmpfs that they share and nowhere else; ENOENT before the first one since boot.
UniqueFd open_sessions();
// That of one; none when there is none (errno).
UniqueFd try_open_session(FdRef sessions, const std::string &id);

// 128 random bits in hex: part of unit names and paths, so its alphabet is fixed.
std::string make_session_id();
bool is_session_id(const std::string &text) noexcept;
std::string scope_name(const std::string &id);                        // pi-agent-run-ID.scope
std::optional<std::string> session_of_scope(const std::string &unit); // its ID, when it is such a name
std::string service_name(const std::string &id);                      // pi-agent-ID.service
std::string cleanup_name(const std::string &id);                      // pi-agent-cleanup-ID.service

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

// Unmounts and removes what a session left; finding nothing is fine. It never deletes a file: directories, links it made, mount points.
// `between` is called when nothing is mounted any more and the links are still there.
void remove_session(const AsRoot &root, const std::string &id, const std::function<void(FdRef session)> &between = {});

// Whether there is a directory of this session.
bool session_exists(const AsRoot &root, const std::string &id);

// The text of a link that make_link made in a session's directory; empty when there is none.
std::string read_session_link(FdRef session, const char *name);

} // namespace pi_agent
