// Records which session uses which placeholder in a project: a session of the same repository takes an existing one for its own.
#include "runner/root/session/session_directory.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "runner/root/session/state_directory.hpp"

#include <fcntl.h>

namespace pi_agent {

UniqueFd lock_placeholders(Uid user, Deadline deadline)
{
    const UniqueFd parent = open_runtime_directory();
    const std::string name = "placeholders-" + std::to_string(user.value());
    UniqueFd lock = open_or_throw("opening the lock of placeholders", parent, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    return lock_until(lock, deadline, "the placeholders") ? std::move(lock) : UniqueFd();
}

std::set<std::string> placeholders_of_others(const std::string &id)
{
    std::set<std::string> paths;
    const UniqueFd sessions = open_sessions();
    for (const auto &name : names_in(sessions)) {
        const UniqueFd session = is_session_id(name) && name != id ? try_open_session(sessions, name) : UniqueFd();
        if (!session) continue;
        for (auto &path : recorded_placeholders(session))
            paths.insert(std::move(path));
    }
    return paths;
}

std::vector<std::string> recorded_placeholders(FdRef session)
{
    const UniqueFd records = find_beneath(session, placeholders_directory, O_RDONLY | O_DIRECTORY);
    if (!records) return {};
    std::vector<std::string> paths;
    for (;;) {
        std::string path = read_session_link(records, std::to_string(paths.size()).c_str());
        if (path.empty()) return paths;
        paths.push_back(std::move(path));
    }
}

} // namespace pi_agent
