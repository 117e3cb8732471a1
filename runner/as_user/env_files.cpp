// Reading files of environment variables.
#include "runner/as_user/env_files.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/host/remedy.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_env.hpp"
#include "common/seams/defence.hpp"
#include "common/seams/fault_point.hpp"
#include "runner/as_user/certificate_files.hpp"
#include "runner/as_user/host_file.hpp"
#include "runner/root/errand/child.hpp"
#include "runner/wire/answer.hpp"
#include "runner/wire/beneath.hpp"
#include "runner/wire/whole_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr std::size_t variable_limit = 100'000; // entries that a child may send

void append(std::vector<EnvAssignment> &all, std::vector<EnvAssignment> more)
{
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// What the child may send and what root puts into an environment are not the same: the child is its user's.
void require_host_variable(const EnvAssignment &assignment)
{
    if (problem_of_host_env_name(assignment.name) || assignment.value.find('\0') != std::string::npos)
        throw ProtocolError("a variable of the user's files is none");
}

std::string encode(const HostVariables &variables)
{
    std::vector<std::string> texts;
    for (const auto &assignment : variables.assignments)
        texts.insert(texts.end(), {assignment.name, assignment.value, assignment.where});
    return Encoder().texts(texts).texts(variables.notices).bytes();
}

HostVariables decode(std::string_view bytes)
{
    Decoder decoder(bytes);
    const std::vector<std::string> texts = decoder.texts(3 * variable_limit);
    HostVariables variables;
    variables.notices = decoder.texts(variable_limit);
    decoder.end();
    if (texts.size() % 3 != 0) throw ProtocolError("a variable of the user's files is not complete");
    for (std::size_t index = 0; index < texts.size(); index += 3) {
        variables.assignments.push_back({texts[index], texts[index + 1], texts[index + 2]});
        require_host_variable(variables.assignments.back());
    }
    return variables;
}

// Whether neither it nor a directory that could hold it is there; a link to nothing is there.
bool is_missing(const UserPaths &paths, const std::string &path)
{
    const auto [directory, name] = split_last(path);
    try {
        const UserPlacePtr holder = paths.follow(directory.empty() ? "/" : directory);
        return faccessat(holder->fd.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0 && (errno == ENOENT || errno == ENOTDIR);
    } catch (const SystemFailure &failure) {
        return failure.error_number() == ENOENT || failure.error_number() == ENOTDIR;
    } catch (const NotFollowed &) { // told by who opens it
        return false;
    }
}

void read_host_env_file(const UserPaths &paths, const std::string &path, HostVariables &variables)
{
    if (is_missing(paths, path)) return;
    const std::string name = escape_for_display(path);
    const HostFile file = open_host_file(paths, path);
    try {
        if (!file.fd)
            throw Failure(ExitStatus::configuration, name + " is not a file that you can read (" + file.problem + "); correct it");
        for (auto &assignment : parse_env_file(read_whole(file.fd, env_file_limit, name), name)) {
            if (const auto problem = problem_of_host_env_name(assignment.name))
                variables.notices.push_back(assignment.where + ": " + assignment.name + " is left out: it " + *problem);
            else
                variables.assignments.push_back(std::move(assignment));
        }
    } catch (const Failure &failure) {
        if (!file.by_agents) throw; // what agents can write keeps nobody from starting one
        variables.notices.push_back("variables are left out: " + std::string(failure.what()));
    }
}

} // namespace

std::vector<EnvAssignment> read_managed_env_files(const std::vector<PolicyPath> &files)
{
    std::vector<EnvAssignment> all;
    for (const auto &file : files) {
        const UniqueFd fd = open_trusted(file.path, O_RDONLY | O_NONBLOCK | O_NOCTTY, "file of variables (" + to_string(file.where) + ")");
        struct stat facts {};
        if (fstat(fd.get(), &facts) != 0) throw_errno("examining " + file.path);
        if (!S_ISREG(facts.st_mode))
            throw Failure(ExitStatus::configuration, file.path + " (" + to_string(file.where) + ") is no regular file");
        if ((facts.st_mode & 077U) != 0 && defence_is_on("env-file-mode"))
            throw Failure(ExitStatus::configuration,
                          escape_for_display(file.path) + " (" + to_string(file.where) +
                              ") can be read by others than root, and such files hold secrets; " +
                              command_on("chmod 600", file.path, "put them into a file of their own in /etc/pi-agent, mode 0600") +
                              ", or put what is no secret under 'env'");
        auto assignments = parse_env_file(read_whole(fd, env_file_limit, file.path), file.path);
        for (const auto &assignment : assignments)
            if (const auto problem = problem_of_env_name(assignment.name))
                throw Failure(ExitStatus::configuration, assignment.where + ": " + assignment.name + " " + *problem + "; remove it");
        append(all, std::move(assignments));
    }
    return all;
}

std::vector<EnvAssignment> ask_env_names(const AsRoot &root, const std::vector<PolicyPath> &files)
{
    if (files.empty()) return {};
    if (!defence_is_on("late-secrets")) return read_managed_env_files(files);
    Child child(root, "reader of the policy's variables", [&] {
        std::vector<std::string> texts;
        for (const auto &[name, value, where] : read_managed_env_files(files))
            texts.insert(texts.end(), {name, value.empty() || names_certificates(name) ? value : "not told", where});
        return Encoder().texts(texts).bytes();
    });
    const std::string bytes = child.receive_long(child_patience_seconds);
    Decoder decoder(bytes);
    const std::vector<std::string> texts = decoder.texts(3 * variable_limit);
    decoder.end();
    std::vector<EnvAssignment> all;
    for (std::size_t index = 0; index + 2 < texts.size(); index += 3)
        all.push_back({texts[index], texts[index + 1], texts[index + 2]});
    return all;
}

HostVariables read_host_env_files(const UserPaths &paths, const std::vector<std::string> &files, const std::string &home)
{
    HostVariables variables;
    for (const auto &file : files)
        read_host_env_file(paths, file.front() == '/' ? file : home + "/" + file, variables);
    return variables;
}

HostVariables ask_host_env_files(const AsRoot &root, const Account &user, const std::vector<std::string> &files, const AgentPlaces &agents)
{
    if (files.empty()) return {};
    Child child(root, "reader of the user's variables", user, {}, [&](const AsUser &, FdRef channel) {
        fault_point("reading-env");
        send_long_answer(channel, encode(read_host_env_files(UserPaths(agents), files, user.home)));
    });
    return decode(child.receive_long(child_patience_seconds));
}

} // namespace pi_agent
