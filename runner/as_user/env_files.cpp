// Reading files of variables as the user.
#include "runner/as_user/env_files.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/base/whole_file.hpp"
#include "common/host/beneath.hpp"
#include "common/policy/policy_env.hpp"
#include "runner/as_user/host_file.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace pi_agent {

namespace {

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

HostVariables read_host_env_files(const UserPaths &paths, const std::vector<std::string> &files, const std::string &home)
{
    HostVariables variables;
    for (const auto &file : files)
        read_host_env_file(paths, file.front() == '/' ? file : home + "/" + file, variables);
    return variables;
}

} // namespace pi_agent
