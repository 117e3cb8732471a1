// Asking git as the user, and showing the answer to the agent's git as the system's configuration.
#include "runner/git_identity.hpp"

#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/escape.hpp"
#include "common/fault_point.hpp"
#include "common/policy_paths.hpp"
#include "runner/beneath.hpp"
#include "runner/host_program.hpp"
#include "runner/whole_file.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int git_patience_seconds = 2;
constexpr std::size_t answer_limit = 16UL * 1024;
constexpr const char *file_inside = "/run/pi-agent/gitconfig";
// In git's order the lowest: the agent's ~/.gitconfig and the repository's settings win over it. GIT_AUTHOR_NAME and GIT_CONFIG_COUNT win
// over both.
constexpr const char *variable = "GIT_CONFIG_SYSTEM";

FoundIdentity failed(const std::string &problem)
{
    return FoundIdentity{{}, problem};
}

// Git reads no more of the system than it must, asks nobody, and says what is wrong in words that do not depend on the user.
std::vector<std::string> environment_for(const std::string &home)
{
    return {"HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C"};
}

std::string problem_of(const ProgramOutput &answer, const std::string &file)
{
    const std::string place = escape_for_display(file);
    switch (answer.end) {
    case ProgramOutput::End::late:
        return "git did not read " + place + " within " + std::to_string(git_patience_seconds) +
               " seconds; is it, or what it includes, or the project's .git/config, a pipe or on a file system that does not answer?";
    case ProgramOutput::End::too_long:
        return "user.name, user.email and safe.directory in " + place + " are longer than " + std::to_string(answer_limit) + " bytes";
    case ProgramOutput::End::killed:
        return "git was killed while it read " + place;
    case ProgramOutput::End::not_installed:
        return "";
    case ProgramOutput::End::exited:
        break;
    }
    // 1: nothing found, or a file that it may not read, which is a warning to it.
    if (answer.status == 0 || (answer.status == 1 && answer.complaint.empty())) return "";
    std::string said = answer.complaint;
    std::replace(said.begin(), said.end(), '\n', ' ');
    return "git could not read " + place + ": " + escape_for_display(said.substr(0, said.find_last_not_of(' ') + 1));
}

std::string encode_found(const FoundIdentity &found)
{
    Encoder encoder;
    for (const auto &value : {found.identity.name, found.identity.email})
        encoder.number(value ? 1 : 0).text(value.value_or(""));
    return encoder.texts(found.identity.safe_directories).text(found.problem).bytes();
}

FoundIdentity decode_found(std::string_view bytes)
{
    Decoder decoder(bytes);
    FoundIdentity found;
    for (auto *value : {&found.identity.name, &found.identity.email}) {
        const bool is_set = decoder.flag();
        std::string text = decoder.text();
        if (text.size() > answer_limit || text.find('\0') != std::string::npos) throw ProtocolError("git's answer is no name or address");
        if (is_set) *value = std::move(text);
    }
    found.identity.safe_directories = decoder.texts();
    found.problem = decoder.text();
    decoder.end();
    return found;
}

void read_identity(const AsUser &user, const Account &account, const OpenedProject &project, Deadline deadline, FdRef channel)
{
    fault_point("reading-git-id");
    const UniqueFd here = find_beneath(project.shown.directory, project.below, O_PATH | O_DIRECTORY);
    if (!here || fchdir(here.get()) != 0) throw_errno("entering the working directory");
    send_answer(channel, encode_found(find_git_identity(user, account.home, project.shown.path(), deadline)));
}

} // namespace

std::optional<std::string> safe_directory(const std::string &value, const std::string &home, const std::string &shown)
{
    if (value.empty() || value == "*") return value;
    const std::string path = value.starts_with("~/") ? home + value.substr(1) : value;
    const bool and_below = path.ends_with("/*"); // git 2.46 and newer
    const std::string directory = without_trailing_slashes(and_below ? path.substr(0, path.size() - 1) : path);
    if (is_within(directory, shown) || (and_below && is_within(shown, directory))) return path;
    return std::nullopt;
}

FoundIdentity find_git_identity(const AsUser &user, const std::string &home, const std::string &shown, Deadline deadline)
{
    FoundIdentity found;
    GitIdentity &identity = found.identity;
    // The second wins, as with git, which reads both. By name, because `git config --global` reads only the second when that exists.
    for (const char *name : {"/.config/git/config", "/.gitconfig"}) {
        const std::string file = home + name;
        if (access(file.c_str(), F_OK) != 0 && errno == ENOENT) continue;
        const ProgramOutput answer = run_host_program(
            user, {"git", "config", "--file", file, "--includes", "-z", "--get-regexp", "^(user\\.(name|email)|safe\\.directory)$"},
            environment_for(home), answer_limit, deadline);
        if (std::string problem = problem_of(answer, file); !problem.empty()) return failed(problem);
        for (auto &[key, value] : read_git_settings(answer.output)) {
            if (key == "user.name")
                identity.name = std::move(value);
            else if (key == "user.email")
                identity.email = std::move(value);
            else if (auto directory = safe_directory(value, home, shown))
                identity.safe_directories.push_back(std::move(*directory));
        }
    }
    return found;
}

void name_git_config(EnvironmentInput &environment)
{
    environment.defaults[variable] = {file_inside, "settings for git in a session, git_identity among them"};
}

GitIdentityReader::GitIdentityReader(const AsRoot &root, const Account &user, const OpenedProject &project, bool wanted)
{
    if (!wanted) return;
    const Deadline deadline = in_seconds(defence_is_on("git-deadline") ? git_patience_seconds : 600);
    deadline_ = deadline + std::chrono::seconds(1); // the child gives up first, and says why
    try {
        child_.emplace(
            root, "reader of the git identity", user, std::vector<int>{project.shown.directory.get()},
            [&, deadline](const AsUser &self, FdRef channel) { read_identity(self, user, project, deadline, channel); },
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
    if (!wait(watch)) return failed("its files were not read in time");
    try {
        return decode_found(child_->receive().bytes);
    } catch (const Failure &failure) { // no reason to refuse a session
        return failed(failure.what());
    }
}

std::vector<std::string> GitIdentityReader::show(const SessionDirectory &session, const SessionWatch &watch, RepositoryConfig config)
{
    const FoundIdentity found = child_ ? receive(watch) : failed(problem_);
    child_.reset();
    session.make_directory("run/pi-agent");
    write_whole(session.make_file("run/pi-agent/gitconfig"), git_config_text("/etc/gitconfig", found.identity, config), file_inside);
    if (found.problem.empty()) return {};
    return {"git: the agent's commits do not carry your name and address: " + found.problem +
            "; it can still commit with a user.name and user.email of its own"};
}

} // namespace pi_agent
