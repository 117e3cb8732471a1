// A session's placeholders, from its record to their removal.
#include "runner/placeholder_removal.hpp"

#include "common/account.hpp"
#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/fault_point.hpp"
#include "runner/beneath.hpp"
#include "runner/child.hpp"
#include "runner/placeholders.hpp"
#include "runner/record.hpp"
#include "runner/session_directory.hpp"
#include "runner/session_list.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace pi_agent {

namespace {

std::vector<std::string> recorded_paths(FdRef session)
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

void remove_as_user(const std::vector<std::string> &paths, FdRef channel)
{
    fault_point("unplacing");
    const UniqueFd top = UniqueFd::adopt(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!top) throw_errno("opening /");
    for (auto path = paths.rbegin(); path != paths.rend(); ++path)
        remove_placeholder(top, path->substr(1));
    send_answer(channel, "");
}

void remove_recorded(const AsRoot &root, FdRef session, Deadline deadline)
{
    const std::vector<std::string> paths = recorded_paths(session);
    if (paths.empty() || !defence_is_on("remove-placeholders")) return;
    const auto uid = session_user(session);
    const auto user = uid ? find_account(*uid) : std::nullopt;
    if (!user) throw Failure(ExitStatus::system_failure, "its user has no account any more");
    Child child(root, "remover of placeholders", *user, {},
                [&](const AsUser & /*user*/, FdRef channel) { remove_as_user(paths, channel); });
    if (!wait_for_input(child.channel(), deadline)) throw Failure(ExitStatus::system_failure, "that took too long");
    child.receive();
    const UniqueFd records = find_beneath(session, placeholders_directory, O_RDONLY | O_DIRECTORY);
    for (std::size_t index = 0; records && index < paths.size(); ++index)
        unlinkat(records.get(), std::to_string(index).c_str(), 0); // best_effort: what is removed already is removed again
}

} // namespace

const char *const placeholders_directory = "placeholders";

void remove_placeholders(const AsRoot &root, const std::string &id, FdRef session, Deadline deadline) noexcept
{
    try {
        remove_recorded(root, session, deadline);
    } catch (const std::exception &failure) { // the mount points go all the same
        record_problem(id, std::string("placeholders are left in the project: ") + failure.what());
    }
}

} // namespace pi_agent
