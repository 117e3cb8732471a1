// What the caller's git says about the caller, and which of the files that it reads are worth copying.
#include "runner/as_user/git_identity.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "runner/as_user/named_files.hpp"
#include "runner/plan/git_config.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/mman.h>

namespace pi_agent {

std::optional<std::string> safe_directory(const std::string &value, const std::string &home, const std::string &shown)
{
    if (value.empty() || value == "*") return value;
    const std::string path = value.starts_with("~/") ? home + value.substr(1) : value;
    const bool and_below = path.ends_with("/*"); // git 2.46 and newer
    const std::string directory = without_trailing_slashes(and_below ? path.substr(0, path.size() - 1) : path);
    if (is_within(directory, shown) || (and_below && is_within(shown, directory))) return path;
    return std::nullopt;
}

namespace {

constexpr int include_depth = 10; // as git's own
constexpr const char *wanted_settings = "^(user\\.(name|email)|safe\\.directory|include\\.path|includeif\\..*\\.path)$";
constexpr std::string_view condition_begin = "includeif.";
constexpr std::string_view condition_end = ".path";

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
        return "user.name, user.email and safe.directory in " + place + " are longer than " + std::to_string(git_answer_limit) + " bytes";
    case ProgramOutput::End::killed:
        return "git was killed while it read " + place;
    case ProgramOutput::End::not_installed:
        return "";
    case ProgramOutput::End::exited:
        break;
    }
    // 1: nothing found, or a file that it may not read, which is a warning to it.
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

// The user's files of git's settings, and what they include. Git reads each file by itself, and follows no include: one that lies where
// agents write is handed to it open, so that it leads nowhere else (common/decide/user_paths.hpp).
class GitFiles {
public:
    using Settings = std::vector<std::pair<std::string, std::string>>;

    // In the current directory, for which conditional includes count.
    GitFiles(const AsUser &user, const UserPaths &paths, const std::string &home, Deadline deadline)
        : user_(user), paths_(paths), home_(home), deadline_(deadline)
    {
    }

    // user.name, user.email and safe.directory of an absolute path, in git's order; nothing where it is missing. Throws
    // Failure(configuration) with what is wrong with it.
    Settings read(const std::string &file)
    {
        Settings settings;
        read_into(file, nullptr, settings, 0);
        return settings;
    }

    // What agents can have made unusable, and what is wrong with the repository at hand, each as a text.
    [[nodiscard]] const std::vector<std::string> &notices() const noexcept { return notices_; }

private:
    // `from`: the directory in which `file` is to be looked for, where agents write; none where it is absolute.
    void read_into(const std::string &file, const UserPlacePtr &from, Settings &settings, int depth)
    {
        UserPlacePtr place;
        try {
            place = from ? paths_.follow(from, file) : paths_.follow(file);
        } catch (const NotFollowed &refusal) {
            notices_.push_back(escape_for_display(file) + " is left out: " + refusal.what());
            return;
        } catch (const SystemFailure &failure) {
            if (failure.error_number() == ENOENT || failure.error_number() == ENOTDIR) return;
            if (from || failure.error_number() == ELOOP) { // git would read no loop of links either
                notices_.push_back(escape_for_display(file) + " is left out: " + failure.what());
                return;
            }
            if (failure.error_number() != EACCES) throw; // git would open it by its name, whatever an agent has made of that meanwhile
        }
        HostFile opened;
        if (place && place->written_by != nullptr) {
            opened = from ? open_host_file(paths_, from, file) : open_host_file(paths_, file);
            if (!opened.fd) return notices_.push_back(escape_for_display(place->path) + " is left out: " + opened.problem);
        }
        for (auto &[key, value] : ask(from ? place->path : file, opened.fd)) {
            const bool has_condition = std::string_view(key).starts_with(condition_begin);
            if (!has_condition && key != "include.path") {
                settings.emplace_back(std::move(key), std::move(value));
                continue;
            }
            if (value.empty() || depth >= include_depth) continue;
            const std::size_t length = key.size() - condition_begin.size() - condition_end.size();
            if (!has_condition || holds(key.substr(condition_begin.size(), length), file)) include(file, place, value, settings, depth + 1);
        }
    }

    Settings ask(const std::string &file, FdRef descriptor)
    {
        // Which repository is at hand matters to conditions alone; what is wrong with it must not be said of this file.
        std::vector<std::string> environment = environment_for(home_);
        environment.emplace_back("GIT_DIR=/nonexistent");
        const bool is_open = descriptor.get() >= 0;
        const ProgramOutput answer = run_host_program(
            user_, {"git", "config", "--file", is_open ? "-" : file, "--no-includes", "-z", "--get-regexp", wanted_settings}, environment,
            git_answer_limit, deadline_, is_open ? std::vector<int>{descriptor.get()} : std::vector<int>{});
        if (const std::string problem = problem_of(answer, file); !problem.empty()) throw Failure(ExitStatus::configuration, problem);
        return read_git_settings(answer.output);
    }

    void include(const std::string &file, const UserPlacePtr &place, const std::string &path, Settings &settings, int depth)
    {
        const std::string absolute = path.starts_with("~/") ? home_ + path.substr(1) : path;
        if (place && place->written_by != nullptr) { // it may have come from an agent
            if (absolute.front() == '/')
                notices_.push_back("in " + escape_for_display(place->path) + " the include of " + escape_for_display(path) +
                                   " is left out: an agent can have written it; name a file beside it, by a relative path");
            else
                read_into(absolute, place->above, settings, depth);
            return;
        }
        read_into(absolute.front() == '/' ? absolute : split_last(file).first + "/" + absolute, nullptr, settings, depth);
    }

    bool holds(const std::string &condition, const std::string &file)
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
        const ProgramOutput answer =
            run_host_program(user_, {"git", "config", "--file", "-", "--includes", "--get", "pi-agent.holds"}, environment_for(home_),
                             git_answer_limit, deadline_, {question.get(), included.get()});
        if (answer.end == ProgramOutput::End::exited && answer.status <= 1 && answer.complaint.empty()) return answer.status == 0;
        const std::string why =
            answer.end == ProgramOutput::End::late ? "it did not answer in time; is its .git/config a pipe?" : one_line(answer.complaint);
        const std::string notice = "git cannot read the repository of the working directory (" + why + "), so includeIf in " +
                                   escape_for_display(file) + " does not count; mend the repository";
        if (std::find(notices_.begin(), notices_.end(), notice) == notices_.end()) notices_.push_back(notice);
        return false;
    }

    const AsUser &user_;
    const UserPaths &paths_;
    const std::string &home_;
    Deadline deadline_;
    std::vector<std::string> notices_;
};

} // namespace

FoundIdentity find_git_identity(const AsUser &user, const UserPaths &paths, const std::string &home, const std::string &shown,
                                Deadline deadline)
{
    FoundIdentity found;
    GitIdentity &identity = found.identity;
    GitFiles files(user, paths, home, deadline);
    try {
        // The second wins, as with git, which reads both.
        for (const char *name : {"/.config/git/config", "/.gitconfig"}) {
            for (auto &[key, value] : files.read(home + name)) {
                if (key == "user.name")
                    identity.name = std::move(value);
                else if (key == "user.email")
                    identity.email = std::move(value);
                else if (auto directory = safe_directory(value, home, shown))
                    identity.safe_directories.push_back(std::move(*directory));
            }
        }
    } catch (const Failure &failure) {
        found = {{}, failure.what()};
    }
    found.notices = files.notices();
    found.notices.resize(std::min(found.notices.size(), git_notice_limit));
    return found;
}

} // namespace pi_agent
