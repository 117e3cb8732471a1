// A session's placeholders, from its record to their removal.
#include "runner/root/confined/placeholder_removal.hpp"

#include "common/base/error.hpp"
#include "common/host/account.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_user/git_paths.hpp"
#include "runner/root/session/record.hpp"
#include "runner/root/session/session_directory.hpp"
#include "runner/root/session/session_list.hpp"
#include "runner/wire/answer.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <utility>

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
    while (!wait_for_input(channel, in_seconds(60))) { // a sandbox may take as long to end as it likes; with the runner this process ends
    }
    const std::optional<Packet> order = receive_packet(channel, in_seconds(1));
    if (!order) return; // the runner is gone; who cleans up after it does this, too
    fault_point("unplacing");
    const UniqueFd top = open_or_throw("opening /", "/", O_PATH | O_DIRECTORY);
    for (auto path = paths.rbegin(); path != paths.rend(); ++path)
        remove_placeholder(top, path->substr(1));
    send_answer(channel, "");
}

void record_failure(const std::string &id, const std::exception &failure)
{
    record_problem(id, std::string("placeholders are left in the project: ") + failure.what());
}

} // namespace

void PlaceholderRemoval::begin() noexcept
{
    if (std::exchange(begun_, true)) return;
    try {
        start_process();
    } catch (const std::exception &failure) { // the mount points go all the same
        record_failure(id_, failure);
    }
}

void PlaceholderRemoval::start_process()
{
    paths_ = recorded_paths(session_);
    if (paths_.empty() || !defence_is_on("remove-placeholders")) return;
    const auto uid = session_user(session_);
    const auto user = uid ? find_account(*uid) : std::nullopt;
    if (!user) throw Failure(ExitStatus::system_failure, "its user has no account any more");
    child_.emplace(root_, "remover of placeholders", *user, std::vector<int>{},
                   [&](const AsUser & /*user*/, FdRef channel) { remove_as_user(paths_, channel); });
}

void PlaceholderRemoval::finish(Deadline deadline) noexcept
{
    begin();
    try {
        if (child_) remove(deadline);
    } catch (const std::exception &failure) {
        record_failure(id_, failure);
    }
}

void PlaceholderRemoval::remove(Deadline deadline)
{
    send_packet(child_->channel(), "R", {}, deadline);
    if (!wait_for_input(child_->channel(), deadline)) throw Failure(ExitStatus::system_failure, "that took too long");
    child_->receive();
    const UniqueFd records = find_beneath(session_, placeholders_directory, O_RDONLY | O_DIRECTORY);
    for (std::size_t index = 0; records && index < paths_.size(); ++index)
        unlinkat(records.get(), std::to_string(index).c_str(), 0); // best_effort: what is removed already is removed again
}

void remove_placeholders(const AsRoot &root, const std::string &id, FdRef session, Deadline deadline) noexcept
{
    PlaceholderRemoval(root, id, session).finish(deadline);
}

} // namespace pi_agent
