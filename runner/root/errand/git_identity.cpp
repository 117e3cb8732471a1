// Having git asked, and showing the answer to the agent's git as the system's configuration.
#include "runner/root/errand/user_files.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_user/git_identity.hpp"
#include "runner/wire/answer.hpp"

#include <array>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr const char *file_inside = "/run/pi-agent/gitconfig";
// In git's order the lowest: the agent's ~/.gitconfig and the repository's settings win over it. GIT_AUTHOR_NAME and GIT_CONFIG_COUNT win
// over both.
constexpr const char *variable = "GIT_CONFIG_SYSTEM";

void read_identity(const AsUser &user, const Account &account, const OpenedProject &project, const AgentPlaces &agents, Deadline deadline,
                   FdRef channel)
{
    fault_point("reading-git-id");
    const UniqueFd here = find_beneath(project.shown.directory, project.below, O_PATH | O_DIRECTORY);
    if (!here || fchdir(here.get()) != 0) throw_errno("entering the working directory");
    send_answer(channel, encode_fields(find_git_identity(user, UserPaths(agents), account.home, project.shown.path(), deadline)));
}

} // namespace

void name_git_config(EnvironmentInput &environment)
{
    environment.defaults[variable] = {file_inside, "settings for git in a session, git_identity among them"};
}

GitIdentityReader::GitIdentityReader(const AsRoot &root, const Account &user, const OpenedProject &project, const AgentPlaces &agents,
                                     bool wanted)
{
    if (!wanted) return;
    const Deadline deadline = in_seconds(defence_is_on("git-deadline") ? git_patience_seconds : 600);
    deadline_ = deadline + std::chrono::seconds(1); // the child gives up first, and says why
    try {
        child_.emplace(
            root, "reader of the git identity", user, std::vector<int>{project.shown.directory.get()},
            [&, deadline](const AsUser &self, FdRef channel) { read_identity(self, user, project, agents, deadline, channel); },
            Descendants::end_with_it);
    } catch (const SystemFailure &failure) { // no reason to refuse a session
        problem_ = failure.what();
    }
}

// Looks at least once: the config sync may have taken longer than git was given, and the answer is there.
bool GitIdentityReader::wait(const SessionWatch &watch) const
{
    for (;;) {
        const auto [receiver, wrapper, termination] = watch.waits();
        std::array<pollfd, 4> waits{pollfd{child_->channel().get(), POLLIN, 0}, receiver, wrapper, termination};
        const int ready = poll(waits.data(), waits.size(), milliseconds_left(deadline_));
        if (ready < 0 && errno != EINTR) throw_errno("waiting for the reader of the git identity");
        if (ready > 0) watch.obey(&waits[1]);
        if (ready > 0 && waits[0].revents != 0) return true;
        if (Clock::now() >= deadline_) return false;
    }
}

FoundIdentity GitIdentityReader::receive(const SessionWatch &watch)
{
    if (!wait(watch)) return FoundIdentity{{}, "its files were not read in time"};
    try {
        return decode_fields<FoundIdentity>(child_->receive().bytes);
    } catch (const Failure &failure) { // no reason to refuse a session
        return FoundIdentity{{}, failure.what()};
    }
}

std::vector<std::string> GitIdentityReader::show(const SessionDirectory &session, const SessionWatch &watch, RepositoryConfig config)
{
    const FoundIdentity found = child_ ? receive(watch) : FoundIdentity{{}, problem_};
    child_.reset();
    session.make_directory("run/pi-agent");
    write_whole(session.make_file("run/pi-agent/gitconfig"), git_config_text("/etc/gitconfig", found.identity, config), file_inside);
    std::vector<std::string> notices;
    for (const auto &notice : found.notices)
        notices.push_back("git: " + notice);
    if (!found.problem.empty())
        notices.push_back("git: the agent's commits do not carry your name and address: " + found.problem +
                          "; it can still commit with a user.name and user.email of its own");
    return notices;
}

} // namespace pi_agent
