// What the caller's git says outside, for a session's git, with the user's own files of git's settings.
#pragma once

#include "common/as_user/git_syntax.hpp"
#include "common/as_user/user_paths.hpp"
#include "runner/as_user/protected_paths.hpp"
#include "runner/wire/user_files.hpp"

namespace pi_agent {

// --- The user's own files of git's settings.

// The path that git reads in a setting's value: "~/" is the user's home.
inline std::string path_in_setting(const std::string &value, const std::string &home)
{
    return value.starts_with("~/") ? home + value.substr(1) : value;
}

struct FoundGitSetting {
    GitSetting setting;
    std::string file;       // that holds it
    bool by_agents = false; // an agent can have written it
};

// All settings below `home`, with what they include for the current directory, in git's order. Adds to `notices` files that agents can have
// made unusable, and what is wrong with the repository at hand. Throws Failure(configuration) with what is wrong with another file.
std::vector<FoundGitSetting> read_git_files(const AsUser &user, const UserPaths &paths, const std::string &home, Deadline deadline,
                                            std::vector<std::string> &notices);

// --- What a repository asks of git.

// What the files of a repository ask of git that a session may not be able to do: signing, and filters that start programs.
struct RepositorySettings {
    std::optional<bool> signs;        // commits or tags, where its own settings say so
    std::vector<std::string> filters; // that attributes name and its own settings do not define, each once
};

// In a child that is the user. Agents may have written all of it: it is read as content, within `tree`, and no git runs. `below` is the
// working directory; `git_directory` the repository's, where that is another tree. Attributes count from the repository's top down to
// `below`: looking through the whole tree costs too much. Throws Failure for what cannot be read.
RepositorySettings read_repository_settings(const GuardedTree &tree, const std::string &repository, const std::string &below,
                                            const GuardedTree *git_directory);

// The filters that a file of attributes names (gitattributes(5)).
std::vector<std::string> filters_of_attributes(std::string_view text);

// --- The user's settings, as git on the host has them for this directory: who commits, what is safe, what else passes.

constexpr std::size_t git_name_limit = 16UL * 1024;    // bytes of a name or an address
constexpr std::size_t git_settings_limit = 500;        // settings that pass
constexpr std::size_t git_settings_size = 64UL * 1024; // bytes of them all, names and values

// git-lfs as it sets itself up, and with --skip-smudge.
enum class GitLfs { none, all, skip_smudge };

// Who commits; each part only where the user has set it, even to the empty text. Any bytes except NUL.
struct GitIdentity {
    std::optional<std::string> name, email;
    std::vector<std::string> safe_directories = {}; // git's safe.directory, as the user trusts repositories of others
    std::vector<GitSetting> settings = {};          // others of the user's that pass
    std::map<std::string, std::string> files = {};  // setting -> content of the file that it names
    GitLfs lfs = GitLfs::none;
    bool signs_commits = false;
    bool signs_tags = false;
};

// What was found, or why nothing was: `problem` is for people, and empty where all is well.
struct FoundIdentity {
    GitIdentity identity;
    std::string problem;
    std::vector<std::string> notices = {}; // of single files that were left out; git_notice_limit at most
    std::vector<std::string> once = {};    // what a session cannot do for this repository; as many
    GitSigning signing = GitSigning::none;
};

// Asks the host's git, in the current directory, about the user's own files below `home`. The repository around is not asked, but decides
// which conditional includes count. Of the directories that the user calls safe, only those that concern `shown` count (safe_directory).
// Notices name what the user's settings or `repository` ask for and a session cannot do.
FoundIdentity find_git_identity(const AsUser &user, const UserPaths &paths, const std::string &home, const std::string &shown,
                                Deadline deadline, const RepositorySettings &repository = {});

// Where a session's git works.
struct GitPlace {
    GuardedTree shown;
    std::string below;                        // the working directory beneath it
    std::optional<std::string> repository;    // that holds it, beneath `shown`
    std::optional<GuardedTree> git_directory; // of that repository, where it is another tree
    std::string trusted;                      // where the session has the repository and its owner is not mapped; otherwise empty
    std::string inside = {};                  // of the shown tree in its root
    std::vector<std::string> masks = {};      // the patterns of projects.mask
    bool is_guarded = false;                  // what git executes is protected, with placeholders
    std::function<bool(const std::string &path)> is_there = {}; // a path of the host, outside of these trees; none: no such path is
};

// What of the repository's data the session's git does not have or cannot change, and what to do, a line each. For a child that is the
// user. Nothing is followed out of the trees.
std::vector<std::string> missing_git_data(const GitPlace &place);

// What is masked in the repository, as lines of a file of ignored paths (gitignore(5)): the agent cannot read it, and git would fail. In
// repositories inside of this one, patterns with a '/' count from another top. Pure.
std::string ignored_for_masks(const GitPlace &place);

// In a child that is `account`: all that a session's git gets of its user's, and what the repository asks for. It enters the working
// directory. Git takes the `trusted` repository for its own if it belongs to the account.
GitOfUser find_for_session(const AsUser &user, const Account &account, const GitPlace &place, const AgentPlaces &agents, Deadline deadline);

// A value of git's safe.directory (git-config(1)) as a session that shows the directory `shown` gets it: "" (forget the values before it),
// "*", and paths in `shown` or above it; "~/" is the user's home. Empty for any other directory. Pure.
std::optional<std::string> safe_directory(const std::string &value, const std::string &home, const std::string &shown);

constexpr int git_patience_seconds = 2;

// --- Runs one of the host's programs with the rights of the child that this is called in, with bounds on time and output.
struct ProgramOutput {
    enum class End { exited, killed, not_installed, late, too_long };
    End end = End::killed;
    int status = 0;        // where it exited
    std::string output;    // standard output, at most `limit` bytes
    std::string complaint; // the beginning of standard error
};

// `command[0]` is a name, looked for in the directories of the system's own programs. `environment` is all that it gets (NAME=VALUE),
// besides a PATH of these directories. It works in the current directory. Its standard input is the first of `inputs`, or empty; a second
// one is descriptor 3. After the deadline, or when it writes more than `limit` bytes, it is killed. Never runs as root: only a child's task
// has an AsUser.
ProgramOutput run_host_program(const AsUser &user, const std::vector<std::string> &command, const std::vector<std::string> &environment,
                               std::size_t limit, Deadline deadline, const std::vector<int> &inputs = {});

// --- Which settings of the user's git a session's git gets: only listed ones, which start no program and hold no secret.

// Accepts any bytes. A setting that names a file of the user's does not pass here (copied_git_file).
bool passes_into_session(const GitSetting &setting);

// The name of the session's copy for a setting of this name; empty where the setting names no file that is copied.
std::string copied_git_file(std::string_view name);

// Whether a setting would pass if it held no password or token.
bool is_kept_for_its_secret(const GitSetting &setting);

// As a configuration file, in this order: who commits; which repositories git trusts; and the other settings of the user's that pass. It
// holds nothing else, whatever the identity holds. A value with a NUL, which git cannot have, is left out.
std::string git_identity_text(const GitIdentity &identity);
// What the identity signs.
std::string git_signing_text(const GitIdentity &identity);

} // namespace pi_agent
