// Answers of children that are the caller: what they opened and found.
#pragma once

#include "common/base/channel.hpp"

#include "common/policy/policy_sections.hpp"

namespace pi_agent {

// Beneath the agent's home (PI_CODING_AGENT_DIR).
constexpr const char *agent_directory = ".pi/agent";

// Begins a message of reader or writer that is true at each start, but shown to the user only at the first.
constexpr std::string_view answer_told_once = "once:";

// --- Copies of files of certificates on their way from the child that reads them.

constexpr std::size_t certificate_variables_limit = 100;
constexpr std::size_t certificates_limit = 512UL * 1024; // bytes of one session, in the memory that all sessions share

// What the session shows, and what the user should know.
struct CertificateFiles {
    std::vector<std::string> contents;          // of N.pem, from 1
    std::map<std::string, std::string> renamed; // variable -> its path inside
    std::vector<std::string> notices;

    // Accepts no other paths than these.
    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.contents, certificate_variables_limit);
        archive.bounded(self.renamed, certificate_variables_limit, not_asked_for);
        archive.bounded(self.notices, certificate_variables_limit);
        archive.require([&] { return self.is_sound(); }, not_asked_for);
    }
    static constexpr const char *not_asked_for = "certificates of the user's are not what was asked for";

private:
    [[nodiscard]] bool is_sound() const;
};

// Where the session shows the file with that number.
std::string certificate_path_inside(std::size_t number);

// --- What happened to the files that arguments name, on its way from the child that copies them.
enum class Handed : char { left = '.', shown = 's', copied = 'c' };

struct HandedFiles {
    std::string states; // Handed, one for each file that was asked for
    std::vector<std::string> notices;

    static void fields(auto &archive, auto &self)
    {
        archive(self.states);
        archive.bounded(self.notices, handed_notices_limit);
        archive.require([&] { return self.states.find_first_not_of(".sc") == std::string::npos; },
                        "a file is handed over in an unknown way");
    }
    static constexpr std::size_t handed_notices_limit = 20;
};

// --- A file of the host's /etc on its way from the child that reads it.
enum class EtcFileState { missing, read, too_large };

struct EtcFile {
    EtcFileState state;
    std::string target = {};  // where its symlinks lead, canonical
    std::string content = {}; // of one that was read

    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.state, EtcFileState::too_large, "a file of /etc is in an unknown state");
        archive(self.target, self.content);
    }
};

// What of the packages' files in /etc is as it was when it was copied: paths below /etc of files, and of directories that are whole.
struct UnchangedFiles {
    std::vector<std::string> paths;

    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.paths, unchanged_files_limit);
        archive.require(
            [&] { return std::none_of(self.paths.begin(), self.paths.end(), [](const auto &path) { return has_odd_component(path); }); },
            "a file of /etc has an odd path");
    }
    static constexpr std::size_t unchanged_files_limit = 4096;
};

// --- What a session's git gets of its user's, on its way from the child that asks the user's git.

constexpr std::size_t git_notice_limit = 10;
constexpr std::size_t git_config_limit = 512UL * 1024;   // bytes of the session's configuration
constexpr std::size_t git_file_copy_limit = 64UL * 1024; // bytes of a file that a setting names
constexpr std::size_t git_file_count = 5;

// Whose settings ask for signed commits.
enum class GitSigning { none, of_user, of_repository };

// Notices for the user: at each start, and once for the repository.
struct GitNotices {
    std::vector<std::string> always, once;
    GitSigning unsigned_for = GitSigning::none; // whose settings ask for signatures that a session without a key cannot make
};

// Root bounds these texts and reads none of them. Their user may name another configuration for the session's git (GIT_CONFIG_SYSTEM).
struct GitOfUser {
    std::string config = {};                       // follows the session's defaults
    std::string signing = {};                      // follows as well, where the session has a key
    std::map<std::string, std::string> files = {}; // copies beside the configuration, by name
    std::string problem = {};                      // why nothing was found, for people; empty where all is well
    GitNotices notices = {};
    std::string unsigned_notice = {}; // where the session has no key, and unsigned_for is not none

    static void fields(auto &archive, auto &self)
    {
        for (auto *text : {&self.config, &self.signing})
            archive.bounded(*text, git_config_limit, not_gits);
        archive.bounded(self.files, git_file_count, not_gits);
        archive(self.problem);
        archive.bounded(self.notices.always, git_notice_limit);
        archive.bounded(self.notices.once, git_notice_limit);
        archive.bounded(self.notices.unsigned_for, GitSigning::of_repository, not_gits);
        archive(self.unsigned_notice);
        archive.require([&] { return self.has_small_files(); }, not_gits);
    }

private:
    static constexpr const char *not_gits = "git's answer is not what was asked for";
    [[nodiscard]] bool has_small_files() const;
};

// Whether a session's git can write the repository's own configuration.
enum class RepositoryConfig { writable, protected_ }; // NOLINT(readability-identifier-naming): the word alone is a keyword

// Begins the session's configuration: defaults for a session, which every other file can override, and the host's own file.
std::string git_defaults(RepositoryConfig config);

// Where the session's git finds a copy.
std::string git_file_inside(const std::string &copy);

// --- The copies of a user's keys on their way from the child that reads them.

constexpr std::size_t ssh_key_limit = 16UL * 1024;       // bytes
constexpr std::size_t known_hosts_limit = 1024UL * 1024; // of the user's and of the system's file each

struct SshFiles {
    std::string key; // empty: there is no usable key
    std::string signing_key, known_hosts;
    std::vector<std::string> notices;

    static void fields(auto &archive, auto &self)
    {
        archive(self.key, self.signing_key, self.known_hosts);
        archive.bounded(self.notices, 4);
        archive.require(
            [&] {
                return std::max(self.key.size(), self.signing_key.size()) <= ssh_key_limit &&
                       self.known_hosts.size() <= 2 * known_hosts_limit + 2;
            },
            "the key of the user's is not what was asked for");
    }
};

// Why a key is not used; `what`: its purpose.
std::string notice_of_key(const char *what, const std::string &path, const std::string &problem);

// --- The content of the user's own files of variables, on its way from the child that reads them.

constexpr std::size_t variables_limit = 100'000; // that a child may send

struct Assignments {
    std::vector<EnvAssignment> list;
    static constexpr const char *too_many = "files of variables have too many of them";
    static void fields(auto &archive, auto &self) { archive.bounded(self.list, variables_limit, too_many); }
};

// A name that the user may not set is left out, and `notices` say so, each with file, line and reason.
struct HostVariables {
    std::vector<EnvAssignment> assignments;
    std::vector<std::string> notices;

    // Root checks again what it puts into an environment: its user may control the child.
    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.assignments, variables_limit, Assignments::too_many);
        archive.bounded(self.notices, variables_limit);
        archive.require([&] { return self.are_the_users(); }, "a variable of the user's files has an invalid name or value");
    }

private:
    [[nodiscard]] bool are_the_users() const;
};

// --- What the child that is the caller has opened of a project, on its way to its parent: facts and descriptors.

// Which directory of this host it is. The working directory's device is as in statx(2), a root's device as in stat(2).
struct PlaceFacts {
    std::uint64_t device, inode, mount;
    friend bool operator==(const PlaceFacts &, const PlaceFacts &) = default;
    static void fields(auto &archive, auto &self) { archive(self.device, self.inode, self.mount); }
};

struct OpenedPlace {
    UniqueFd directory; // O_PATH; none for a root that does not exist
    PlaceFacts facts;
    static void fields(auto &archive, auto &self) { archive(self.directory, self.facts); }
};

// A directory of git's that a repository's `.git` file names (gitrepository-layout(5)).
struct GitDirectory {
    UniqueFd directory;  // O_PATH; none where it cannot be opened
    std::uint64_t mount; // that holds it; root asks no file system of the user's, which need not answer
    std::string told;    // as the file names it
    std::string problem; // why it cannot be believed; empty where it names the repository in turn

    static void fields(auto &archive, auto &self)
    {
        archive(self.directory, self.mount);
        archive.cut(self.told, told_limit);
        archive.cut(self.problem, told_limit);
    }
    static constexpr std::size_t told_limit = 4096;
};

struct Repository {
    UniqueFd top; // O_PATH: the nearest directory, from the working directory up, that has an entry `.git`; none where no directory has one
    std::uint64_t mount;                 // that holds it
    std::vector<GitDirectory> elsewhere; // of a worktree, a submodule or a separate git directory: its own, then the common one

    static void fields(auto &archive, auto &self)
    {
        archive(self.top, self.mount);
        archive.bounded(self.elsewhere, 2, "the receiver found too many git directories");
    }
};

// --- The directories of a user's home that a session shows, on their way from the child that opened them.

// A directory that exists.
struct HomeDirectory {
    std::string path;    // relative to the user's home, or absolute: data of others, as the policy writes it
    bool is_cache;       // else it is read-only inside
    UniqueFd directory;  // O_PATH
    std::string problem; // why it is not shown; empty where it is

    [[nodiscard]] bool is_shared() const { return path.starts_with('/'); }
    static void fields(auto &archive, auto &self)
    {
        archive(self.path, self.is_cache, self.directory, self.problem);
        archive.require([&] { return self.directory.is_open() == self.problem.empty(); },
                        "a directory of the home is neither shown nor not");
    }
};

struct OpenedHome {
    std::string path;                       // of the home, canonical; empty where it cannot be opened
    std::vector<HomeDirectory> directories; // in the order of the policy, readable ones first; a missing one is left out
    // The user's symlinks in the home that lead into a root, by their names, with their absolute targets. Texts that nobody has followed.
    std::map<std::string, std::string> links = {};
};
constexpr std::size_t home_links_limit = 16;

// The child calls it.
void send_home(FdRef channel, const OpenedHome &home);
// The parent calls it; `next` is called for each packet. Throws ProtocolError for more directories than there can be.
OpenedHome receive_home(const std::function<Packet()> &next);

} // namespace pi_agent
