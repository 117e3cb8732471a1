// Asking the host's git about one file after the other, and following what they include.
#include "runner/as_user/git_files.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "runner/as_user/git_identity.hpp"
#include "runner/as_user/named_files.hpp"
#include "runner/plan/git_config.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <sys/mman.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr int include_depth = 10;                   // as git's own
constexpr std::size_t listing_limit = 256UL * 1024; // bytes of what git says of one file

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
               " seconds; is it, or what it includes, a pipe or on a file system that does not answer?";
    case ProgramOutput::End::too_long:
        return "the settings in " + place + " are longer than " + std::to_string(listing_limit) + " bytes";
    case ProgramOutput::End::killed:
        return "git was killed while it read " + place;
    case ProgramOutput::End::not_installed:
        return "";
    case ProgramOutput::End::exited:
        break;
    }
    // 1: nothing found, or a file that git may not read, which is only a warning to git.
    if (answer.status == 0 || (answer.status == 1 && answer.complaint.empty())) return "";
    return "git could not read " + place + ": " + one_line(answer.complaint);
}

UniqueFd file_with(const std::string &text)
{
    UniqueFd fd = UniqueFd::adopt(memfd_create("git's settings", MFD_CLOEXEC));
    if (!fd) throw_errno("making a file for git");
    write_whole(fd, text, "a file for git");
    if (lseek(fd.get(), 0, SEEK_SET) != 0) throw_errno("making a file for git");
    return fd;
}

} // namespace

std::string path_in_setting(const std::string &value, const std::string &home)
{
    return value.starts_with("~/") ? home + value.substr(1) : value;
}

std::vector<FoundGitSetting> GitFiles::read(const std::string &file)
{
    settings_.clear();
    read_into(file, nullptr, 0);
    return std::move(settings_);
}

// `from`: the directory that `file` is relative to, where agents write; none where `file` is absolute.
void GitFiles::read_into(const std::string &file, const UserPlacePtr &from, int depth)
{
    UserPlacePtr place;
    try {
        place = from ? paths_.follow(from, file) : paths_.follow(file);
    } catch (const NotFollowed &refusal) {
        notices_.push_back(escape_for_display(file) + " is left out: " + refusal.what());
        return;
    } catch (const SystemFailure &failure) {
        if (failure.error_number() == ENOENT || failure.error_number() == ENOTDIR) return;
        if (from || failure.error_number() == ELOOP) { // git would refuse a loop of symlinks, too
            notices_.push_back(escape_for_display(file) + " is left out: " + failure.what());
            return;
        }
        if (failure.error_number() != EACCES) throw; // git would open it by its name, whatever an agent has put there meanwhile
    }
    HostFile opened;
    if (place && place->written_by != nullptr) {
        opened = open_host_file(*place);
        if (!opened.fd) return notices_.push_back(escape_for_display(place->path) + " is left out: " + opened.problem);
    }
    for (auto &[key, value] : ask(from ? place->path : file, opened.fd)) {
        const std::string condition(git_rule(key) == "includeif.path" ? git_subsection(key) : "");
        if (condition.empty() && key != "include.path") {
            settings_.push_back({{std::move(key), std::move(value)}, place ? place->path : file, place && place->written_by != nullptr});
            continue;
        }
        if (!value || value->empty() || depth >= include_depth) continue;
        if (condition.empty() || holds(condition, file)) include(file, place, *value, depth + 1);
    }
}

std::vector<GitSetting> GitFiles::ask(const std::string &file, FdRef descriptor)
{
    // The repository at hand matters only to conditions; its own problems must not be blamed on this file.
    std::vector<std::string> environment = environment_for(home_);
    environment.emplace_back("GIT_DIR=/nonexistent");
    const bool is_open = descriptor.get() >= 0;
    const ProgramOutput answer =
        run_host_program(user_, {"git", "config", "--file", is_open ? "-" : file, "--no-includes", "-z", "--get-regexp", "."}, environment,
                         listing_limit, deadline_, is_open ? std::vector<int>{descriptor.get()} : std::vector<int>{});
    if (const std::string problem = problem_of(answer, file); !problem.empty()) throw Failure(FailureKind::user_configuration, problem);
    return read_git_settings(answer.output);
}

void GitFiles::include(const std::string &file, const UserPlacePtr &place, const std::string &path, int depth)
{
    const std::string absolute = path_in_setting(path, home_);
    if (place && place->written_by != nullptr) { // it may have come from an agent
        if (absolute.front() == '/')
            notices_.push_back("in " + escape_for_display(place->path) + " the include of " + escape_for_display(path) +
                               " is left out: an agent can have written it; name a file beside it by a relative path");
        else
            read_into(absolute, place->above, depth);
        return;
    }
    read_into(absolute.front() == '/' ? absolute : split_last(file).first + "/" + absolute, nullptr, depth);
}

bool GitFiles::holds(const std::string &condition, const std::string &file)
{
    std::string text = condition;
    for (const std::string_view relative : {"gitdir:./", "gitdir/i:./"})
        if (text.starts_with(relative)) text.replace(relative.size() - 2, 1, split_last(file).first);
    std::string quoted;
    for (const char byte : text) {
        if (byte == '"' || byte == '\\') quoted += '\\';
        quoted += byte;
    }
    const UniqueFd question = file_with("[includeIf \"" + quoted + "\"]\n\tpath = /proc/self/fd/3\n");
    const UniqueFd included = file_with("[pi-agent]\n\tholds = yes\n");
    const ProgramOutput answer = run_host_program(user_, {"git", "config", "--file", "-", "--includes", "--get", "pi-agent.holds"},
                                                  environment_for(home_), listing_limit, deadline_, {question.get(), included.get()});
    if (answer.end == ProgramOutput::End::exited && answer.status <= 1 && answer.complaint.empty()) return answer.status == 0;
    const std::string why =
        answer.end == ProgramOutput::End::late ? "it did not answer in time; is its .git/config a pipe?" : one_line(answer.complaint);
    const std::string notice = "git cannot read the repository of the working directory (" + why + "), so includeIf in " +
                               escape_for_display(file) + " is ignored; repair the repository";
    if (std::find(notices_.begin(), notices_.end(), notice) == notices_.end()) notices_.push_back(notice);
    return false;
}

} // namespace pi_agent
