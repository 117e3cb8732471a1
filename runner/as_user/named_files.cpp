// The files that a policy names in a caller's home, and the host's files that a user's config names, read as the caller.
#include "runner/as_user/reader.hpp"

#include "common/base/files.hpp"
#include "runner/as_agent/writer.hpp"

#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/vfs.h>
#include <thread>

namespace pi_agent {

namespace {

// Opening a FIFO would wait and opening a device may act, so the type is looked at first, through a descriptor that does neither.
UniqueFd reopen(FdRef place, int flags = 0)
{
    return open_at(FdRef(AT_FDCWD), "/proc/self/fd/" + std::to_string(place.get()), O_RDONLY | O_NONBLOCK | O_NOCTTY | flags);
}

// The first component of a path that is a symlink to nothing, or "". Such a symlink is a mistake; a missing path just means a new user.
// Preserves only the errno ENOENT, with which the path was found missing.
std::string find_dangling_link(const std::string &path)
{
    std::string found;
    for (std::size_t end = path.find('/', 1); found.empty(); end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        const bool leads_nowhere = access(part.c_str(), F_OK) != 0 && errno == ENOENT;
        if (leads_nowhere && faccessat(AT_FDCWD, part.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) found = part;
        if (leads_nowhere || end == std::string::npos) break;
    }
    errno = ENOENT;
    return found;
}

// `place` is open on what was found (O_PATH).
HostFile open_found(FdRef place, bool by_agents)
{
    const auto without = [&](const std::string &problem) { return HostFile{{}, {}, problem, by_agents}; };
    struct stat facts {};
    if (fstat(place.get(), &facts) != 0) return without(SystemFailure(errno, "examining").what());
    if (!S_ISREG(facts.st_mode)) return without(no_regular_file);
    if (is_kernels(place)) return without("the kernel makes that file");
    HostFile file{reopen(place), {}, {}, by_agents};
    if (!file.fd) return without(SystemFailure(errno, "opening").what());
    if (fstat(file.fd.get(), &facts) != 0) return without(SystemFailure(errno, "examining").what());
    file.facts = facts_of(facts);
    return file;
}

HostFile open_followed(const std::function<UserPlacePtr()> &follow)
{
    try {
        return open_host_file(*follow());
    } catch (const NotFollowed &refusal) {
        return {{}, {}, refusal.what(), true};
    } catch (const SystemFailure &failure) {
        return {{}, {}, SystemFailure(failure.error_number(), "opening").what(), false};
    }
}

// A file directly in the directory, where agents do not write: one call finds it. None for a symlink, a mount point, or a deeper path:
// agents may write in a directory on the way, whatever name leads to it.
UniqueFd open_without_links(const UserPlace &from, const std::string &name)
{
    if (from.written_by != nullptr || name.find('/') != std::string::npos) return UniqueFd();
    UniqueFd fd =
        open_resolved(from.fd, name, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
    struct stat facts {};
    if (fd && (fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode))) fd.reset();
    return fd;
}

// Not a defence: it stops people from handing the agent a wrong file by mistake.
void require_certificates(const std::string &content)
{
    if (!defence_is_on("certificates-only")) return;
    if (content.find("PRIVATE KEY-----") != std::string::npos)
        throw Failure(ExitStatus::configuration, "it holds a private key; name a file that holds certificates alone");
    if (content.find("CERTIFICATE-----") == std::string::npos)
        throw Failure(ExitStatus::configuration, "it holds no certificate in PEM format (-----BEGIN CERTIFICATE-----)");
}

// Where a path leads; none where the user may not look, and the view shows it: the agent's home.
std::optional<UserPlacePtr> find_place(const UserPaths &paths, const std::string &path, const ShownPlaces &shown)
{
    try {
        return paths.follow(path);
    } catch (const SystemFailure &failure) {
        if (failure.error_number() == EACCES && is_shown(shown, path)) return std::nullopt;
        throw SystemFailure(failure.error_number(), "looking for it");
    } catch (const NotFollowed &failure) { // of an agents' place
        if (!failure.leads_out() && is_shown(shown, path)) return std::nullopt;
        throw;
    }
}

// The content, or none where the view shows the file under this name. Throws Failure where neither is possible.
std::optional<std::string> read_certificates(const UserPaths &paths, const std::string &path, const ShownPlaces &shown, std::size_t limit)
{
    if (path.front() != '/') throw Failure(ExitStatus::configuration, "it is not an absolute path");
    const std::optional<UserPlacePtr> place = find_place(paths, path, shown);
    if (!place || (is_shown(shown, path) && is_shown(shown, (*place)->path))) return std::nullopt;
    if (S_ISDIR((*place)->facts.st_mode)) throw Failure(ExitStatus::configuration, "it is a directory, and only files are copied");
    const HostFile file = open_host_file(**place);
    if (!file.fd) throw Failure(ExitStatus::configuration, file.problem);
    if (file.facts.size > limit)
        throw Failure(ExitStatus::configuration,
                      "it, or all such files together, are larger than " + std::to_string(certificates_limit / 1024) + " KiB");
    std::string content = read_whole(file.fd, limit, "it");
    require_certificates(content);
    return content;
}

void tell(CertificateFiles &files, const CertificateVariable &variable, const std::string &path, const std::string &problem)
{
    files.notices.push_back(variable.name + " (" + escape_for_display(variable.from) + "): " + escape_for_display(path) +
                            " is not shown to the agent: " + problem);
}

void look_at_directories(CertificateFiles &files, const CertificateVariable &variable, const ShownPlaces &shown)
{
    std::size_t start = 0;
    while (start <= variable.path.size()) {
        const std::size_t end = std::min(variable.path.find(':', start), variable.path.size());
        if (const std::string path = variable.path.substr(start, end - start); !path.empty() && !is_shown(shown, path))
            return tell(files, variable, path,
                        "directories are not copied; put the certificates into one file and name it in SSL_CERT_FILE");
        start = end + 1;
    }
}

constexpr const char *system_known_hosts = "/etc/ssh/ssh_known_hosts";
// OpenSSH's own format says at its beginning how the key is encrypted; the older one says it in a header.
bool has_passphrase(std::string_view key)
{
    const std::string_view begin = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
    const std::string_view unencrypted = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"; // base64 of "openssh-key-v1", and a cipher called "none"
    const std::size_t place = key.find(begin);
    if (place != std::string_view::npos) return key.substr(place + begin.size(), unencrypted.size()) != unencrypted;
    return key.find("ENCRYPTED") != std::string_view::npos;
}

std::string read_key(const UserPaths &paths, const std::string &path)
{
    const HostFile file = open_host_file(paths, path);
    if (!file.fd) throw Failure(ExitStatus::configuration, file.problem);
    std::string key = read_whole(file.fd, ssh_key_limit, "it");
    if (key.find("PRIVATE KEY-----") == std::string::npos)
        throw Failure(ExitStatus::configuration, "it holds no private key in PEM or OpenSSH format");
    if (has_passphrase(key))
        throw Failure(ExitStatus::configuration,
                      "it has a passphrase, and a session cannot ask for it; make a key without one for the agent: ssh-keygen -N ''");
    return key;
}

// A user without such a file knows no hosts.
std::string read_known_hosts(const UserPaths &paths, const std::string &path, std::vector<std::string> &notices)
{
    if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) return "";
    try {
        const HostFile file = open_host_file(paths, path);
        if (!file.fd) throw Failure(ExitStatus::configuration, file.problem);
        std::string hosts = read_whole(file.fd, known_hosts_limit, "it");
        if (!hosts.empty() && hosts.back() != '\n') hosts += '\n';
        return hosts;
    } catch (const Failure &failure) {
        notices.push_back("ssh: the agent's git cannot read the host keys of " + escape_for_display(path) + ": " +
                          escape_for_display(failure.what()));
        return "";
    }
}

// Whether the file and every directory that could hold it are missing; a symlink to nothing is not missing.
bool is_missing(const UserPaths &paths, const std::string &path)
{
    const auto [directory, name] = split_last(path);
    try {
        const UserPlacePtr holder = paths.follow(directory.empty() ? "/" : directory);
        return faccessat(holder->fd.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0 && (errno == ENOENT || errno == ENOTDIR);
    } catch (const SystemFailure &failure) {
        return failure.error_number() == ENOENT || failure.error_number() == ENOTDIR;
    } catch (const NotFollowed &) { // whoever opens it reports this
        return false;
    }
}

// Only for a file of the user's own. The user decides what it holds, and in most homes others can reach it.
void tell_of_open_key(const HostFile &file, const std::string &name, HostVariables &variables)
{
    const auto is_key = [&](const EnvAssignment &one) { return one.where.starts_with(name + ":") && !providers_of_key(one.name).empty(); };
    const auto key = std::find_if(variables.assignments.begin(), variables.assignments.end(), is_key);
    if ((file.facts.mode & S_IROTH) != 0 && key != variables.assignments.end())
        variables.notices.push_back(key->where + ": " + key->name +
                                    " is a key, and every user of this host can read the file; make it readable for you alone (mode 0600)");
}

void read_host_env_file(const UserPaths &paths, const std::string &path, HostVariables &variables)
{
    if (is_missing(paths, path)) return;
    const std::string name = escape_for_display(path);
    const HostFile file = open_host_file(paths, path);
    try {
        if (!file.fd)
            throw Failure(FailureKind::user_configuration, name + " is not a file that you can read (" + file.problem + "); correct it");
        for (auto &assignment : parse_env_file(read_whole(file.fd, env_file_limit, name), name)) {
            if (const auto problem = problem_of_host_env_name(assignment.name))
                variables.notices.push_back(assignment.where + ": " + assignment.name + " is left out: it " + *problem);
            else
                variables.assignments.push_back(std::move(assignment));
        }
        tell_of_open_key(file, name, variables);
    } catch (const Failure &failure) {
        // A file that agents can write must not stop anybody from starting one.
        if (!file.by_agents && failure.status() == ExitStatus::configuration)
            throw Failure(FailureKind::user_configuration, failure.what());
        if (!file.by_agents) throw;
        variables.notices.push_back("variables are left out: " + std::string(failure.what()));
    }
}

} // namespace

bool is_kernels(FdRef place)
{
    struct statfs facts {};
    if (!defence_is_on("kernels-files")) return false;
    return fstatfs(place.get(), &facts) != 0 || facts.f_type == PROC_SUPER_MAGIC || facts.f_type == SYSFS_MAGIC;
}

HostFile open_host_file(const UserPlace &place)
{
    return open_found(place.fd, place.written_by != nullptr);
}

HostFile open_host_file(const UserPaths &paths, const UserPlacePtr &from, const std::string &path)
{
    if (const UniqueFd plain = open_without_links(*from, path)) return open_found(plain, false);
    return open_followed([&] { return paths.follow(from, path); });
}

HostFile open_host_file(const UserPaths &paths, const std::string &path)
{
    return open_followed([&] { return paths.follow(path); });
}

UserPlacePtr open_source_directory(const UserPaths &paths, const std::string &path, const std::string &what, std::string &left_out)
{
    int problem = 0;
    try {
        UserPlacePtr top = paths.follow(path);
        if (open_to_list(*top)) return top;
        problem = errno;
        if (top->written_by != nullptr) throw NotFollowed(SystemFailure(problem, "opening " + escape_for_display(top->path)).what(), false);
    } catch (const NotFollowed &refusal) {
        left_out = what + " " + escape_for_display(path) + " is left out: " + refusal.what();
        return nullptr;
    } catch (const SystemFailure &failure) {
        problem = failure.error_number();
    }
    if (const std::string dangling = problem == ENOENT ? find_dangling_link(path) : ""; !dangling.empty())
        throw Failure(FailureKind::user_configuration,
                      what + " cannot be used: " + escape_for_display(path) + " does not exist: " + escape_for_display(dangling) +
                          " is a symlink to nothing (is a file system not mounted?); mount it, or correct the link");
    if (problem != ENOENT)
        throw Failure(FailureKind::user_configuration,
                      what + " cannot be used: " + std::string(SystemFailure(problem, "opening " + escape_for_display(path)).what()) +
                          "; make it a directory that you can read, or ask the administrator to set users.*.config");
    return nullptr;
}

UniqueFd open_to_list(const UserPlace &directory)
{
    return reopen(directory.fd, O_DIRECTORY);
}

HostFile open_document(const UserPaths &paths, const UserPlacePtr &directory, const std::string &name, const std::string &place,
                       std::string &left_out)
{
    if (faccessat(directory->fd.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) return {};
    HostFile file = open_host_file(paths, directory, name);
    if (!file.fd && file.by_agents) {
        left_out = escape_for_display(place) + " is left out: " + file.problem;
        return file;
    }
    if (!file.fd)
        throw Failure(FailureKind::user_configuration, escape_for_display(place) + " is not a file that you can read (" + file.problem +
                                                           "); correct it; nothing was changed");
    return file;
}

void wait_for_lock(FdRef directory, const std::string &name, int patience_milliseconds)
{
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_milliseconds);
    while (is_locked_by_agent(directory, name) && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

bool is_shown(const ShownPlaces &shown, const std::string &path)
{
    return is_shown(shown.view, path) || is_within(path, shown.project) || is_within(path, shown.home);
}

bool is_there_inside(const ShownPlaces &shown, const std::string &path)
{
    return is_shown(shown, path) || is_within(path, "/dev") || is_within(path, "/sys");
}

CertificateFiles read_certificate_files(const UserPaths &paths, const std::vector<CertificateVariable> &variables, const ShownPlaces &shown)
{
    CertificateFiles files;
    std::map<std::string, std::string> known; // the same file is often named by several
    std::size_t left = certificates_limit;
    for (const auto &variable : variables) {
        if (names_certificate_directories(variable.name)) {
            look_at_directories(files, variable, shown);
            continue;
        }
        try {
            if (known.find(variable.path) == known.end()) {
                auto content = read_certificates(paths, variable.path, shown, left);
                if (!content) continue;
                left -= content->size();
                files.contents.push_back(std::move(*content));
                known[variable.path] = certificate_path_inside(files.contents.size());
            }
            files.renamed[variable.name] = known[variable.path];
        } catch (const Failure &failure) {
            tell(files, variable, variable.path, failure.what());
        }
    }
    return files;
}

SshFiles read_ssh_files(const UserPaths &paths, const std::optional<std::string> &key, const std::optional<std::string> &signing_key,
                        const std::string &home)
{
    SshFiles files;
    const auto read = [&](const std::optional<std::string> &path, const char *what, std::string &into) {
        try {
            if (path) into = read_key(paths, *path);
        } catch (const Failure &failure) {
            files.notices.push_back(notice_of_key(what, *path, failure.what()));
        }
    };
    read(signing_key, "signing", files.signing_key);
    read(key, "ssh", files.key);
    if (!files.key.empty())
        files.known_hosts =
            read_known_hosts(paths, home + "/.ssh/known_hosts", files.notices) + read_known_hosts(paths, system_known_hosts, files.notices);
    return files;
}

HostVariables read_host_env_files(const UserPaths &paths, const std::vector<std::string> &files, const std::string &home)
{
    HostVariables variables;
    for (const auto &file : files)
        read_host_env_file(paths, file.front() == '/' ? file : home + "/" + file, variables);
    return variables;
}

} // namespace pi_agent
