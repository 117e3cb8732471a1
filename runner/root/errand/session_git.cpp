// Has a child, as the caller, ask git; writes git's configuration for the session.
#include "runner/root/errand/session_git.hpp"

#include "common/host/beneath.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_user/git_identity.hpp"

namespace pi_agent {

namespace {

constexpr const char *config_inside = "/run/pi-agent/gitconfig";
// The lowest in git's order: the agent's ~/.gitconfig and the repository's settings win over it. GIT_AUTHOR_NAME and GIT_CONFIG_COUNT win
// over both.
constexpr const char *config_variable = "GIT_CONFIG_SYSTEM";

// A file that cannot be read asks for nothing: git inside cannot read it either.
RepositorySettings settings_of_repository(const OpenedProject &project)
{
    if (!project.repository) return {};
    const GuardedTree tree{project.shown.directory, project.shown.path()};
    try {
        if (project.git_directories.empty()) return read_repository_settings(tree, *project.repository, project.below, nullptr);
        const ShownTree &shared = project.git_directories.back();
        const GuardedTree git_directory{shared.directory, shared.path()};
        return read_repository_settings(tree, *project.repository, project.below, &git_directory);
    } catch (const Failure &) {
        return {};
    }
}

// As git looks at it (safe.directory in git-config(1)). In the child, with the caller's rights.
bool owns_repository(const Account &account, const OpenedProject &project)
{
    if (!project.repository) return false;
    const UniqueFd top = find_beneath(project.shown.directory, *project.repository, O_PATH | O_DIRECTORY);
    const UniqueFd git = top ? find_beneath(top, ".git", O_PATH) : UniqueFd();
    const auto is_own = [&](const UniqueFd &fd) { return fd && examine(fd, "looking at the repository").st_uid == account.uid.value(); };
    return is_own(top) && is_own(git);
}

void read_identity(const AsUser &user, const Account &account, const OpenedProject &project, const AgentPlaces &agents, Deadline deadline,
                   FdRef channel)
{
    fault_point("reading-git-id");
    const UniqueFd here = find_beneath(project.shown.directory, project.below, O_PATH | O_DIRECTORY);
    if (!here || fchdir(here.get()) != 0) throw_errno("entering the working directory");
    FoundIdentity found =
        find_git_identity(user, UserPaths(agents), account.home, project.shown.path(), deadline, settings_of_repository(project));
    found.owns_repository = owns_repository(account, project);
    send_long_answer(channel, encode(found));
}

// Replaces all files there: the directory belongs to this session alone.
void write_copies(const SessionDirectory &session, const std::map<std::string, std::string> &files)
{
    if (files.empty()) return;
    session.make_directory("run/pi-agent/git");
    for (const auto &[name, content] : files) {
        const std::string copy = copied_git_file(name);
        if (copy.empty()) throw ProtocolError("git's answer names a file that was not asked for");
        session.write_file(git_file_inside(copy).substr(1), content);
    }
}

const char *words_for(GitSigning signing)
{
    if (signing == GitSigning::repositorys) return "this repository's settings sign commits";
    return signing == GitSigning::users ? "your git signs commits" : "";
}

} // namespace

void name_git_config(EnvironmentInput &environment)
{
    environment.defaults[config_variable] = {config_inside, "settings for git in a session, git_identity among them"};
}

void leave_commits_unsigned(EnvironmentInput &environment)
{
    add_git_settings(environment, {{"commit.gpgSign", "false"}, {"tag.gpgSign", "false"}, {"tag.forceSignAnnotated", "false"}},
                     "the repository signs commits, and the session has no key");
}

GitIdentityReader::GitIdentityReader(const AsRoot &root, const Account &user, const OpenedProject &project, const AgentPlaces &agents,
                                     bool wanted)
{
    if (!wanted) return;
    const Deadline deadline = in_seconds(defence_is_on("git-deadline") ? git_patience_seconds : 600);
    deadline_ = deadline + std::chrono::seconds(1); // the child gives up first, and says why
    std::vector<int> keep{project.shown.directory.get()};
    for (const auto &other : project.git_directories)
        keep.push_back(other.directory.get());
    try {
        child_.emplace(
            root, "reader of the git identity", user, keep,
            [&, deadline](const AsUser &self, FdRef channel) { read_identity(self, user, project, agents, deadline, channel); },
            Descendants::end_with_it);
    } catch (const SystemFailure &failure) { // not a reason to refuse a session
        problem_ = failure.what();
    }
}

FoundIdentity GitIdentityReader::receive(const SessionWatch &watch)
{
    for (;;) { // looks at least once: the config sync may have taken longer than git's deadline, and the answer is there
        const auto [receiver, wrapper, termination] = watch.waits();
        std::array<pollfd, 4> waits{pollfd{child_->channel().get(), POLLIN, 0}, receiver, wrapper, termination};
        const int ready = poll(waits.data(), waits.size(), milliseconds_left(deadline_));
        if (ready < 0 && errno != EINTR) throw_errno("waiting for the reader of the git identity");
        if (ready > 0) watch.obey(&waits[1]);
        if (ready > 0 && waits[0].revents != 0) break;
        if (Clock::now() >= deadline_) return FoundIdentity{{}, "its files were not read in time"};
    }
    try {
        return decode_fields<FoundIdentity>(child_->receive_long(git_patience_seconds));
    } catch (const Failure &failure) { // not a reason to refuse a session
        return FoundIdentity{{}, failure.what()};
    }
}

GitNotices GitIdentityReader::show(const SessionDirectory &session, const SessionWatch &watch, RepositoryConfig config, bool has_key,
                                   const std::string &repository)
{
    FoundIdentity found = child_ ? receive(watch) : FoundIdentity{{}, problem_};
    if (has_key)
        found.signing = GitSigning::none; // so the session leaves nothing unsigned
    else
        found.identity.signs_commits = found.identity.signs_tags = false;
    child_.reset();
    if (!repository.empty() && found.owns_repository) found.identity.safe_directories.push_back(repository);
    session.make_directory("run/pi-agent");
    session.write_file("run/pi-agent/gitconfig", git_config_text("/etc/gitconfig", found.identity, config));
    write_copies(session, found.identity.files);
    GitNotices notices;
    notices.unsigned_for = found.signing;
    for (const auto &notice : found.notices)
        notices.always.push_back("git: " + notice);
    for (const auto &notice : found.once)
        notices.once.push_back("git: " + notice);
    if (found.signing != GitSigning::none)
        notices.once.push_back(std::string("git: ") + words_for(found.signing) +
                               ", and a session has no key of yours: the agent's commits are not signed; sign them outside before you push "
                               "(git rebase --exec 'git commit --amend --no-edit --gpg-sign' UPSTREAM)");
    if (!found.problem.empty())
        notices.always.push_back("git: the agent's commits do not carry your name and address: " + found.problem +
                                 "; it can still commit with a user.name and user.email of its own");
    return notices;
}

} // namespace pi_agent
