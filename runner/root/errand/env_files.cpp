// Reading root's files of variables, and having the user's read.
#include "runner/root/errand/env_files.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/base/whole_file.hpp"
#include "common/host/remedy.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_env.hpp"
#include "common/seams/defence.hpp"
#include "common/seams/fault_point.hpp"
#include "runner/as_user/env_files.hpp"
#include "runner/plan/certificate_variables.hpp"
#include "runner/root/errand/errand.hpp"

#include <fcntl.h>
#include <iterator>
#include <sys/stat.h>

namespace pi_agent {

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
        all.insert(all.end(), std::make_move_iterator(assignments.begin()), std::make_move_iterator(assignments.end()));
    }
    return all;
}

std::vector<EnvAssignment> ask_env_names(const AsRoot &root, const std::vector<PolicyPath> &files)
{
    if (files.empty()) return {};
    if (!defence_is_on("late-secrets")) return read_managed_env_files(files);
    Child child(root, "reader of the policy's variables", [&] {
        std::vector<EnvAssignment> names = read_managed_env_files(files);
        for (auto &[name, value, where] : names)
            if (!value.empty() && !names_certificates(name)) value = "not told";
        return encode_assignments(names);
    });
    return decode_assignments(child.receive_long(child_patience_seconds));
}

HostVariables ask_host_env_files(const AsRoot &root, const Account &user, const std::vector<std::string> &files, const AgentPlaces &agents)
{
    if (files.empty()) return {};
    return ask<HostVariables>(root, {"reader of the user's variables", user}, [&](const AsUser &) {
        fault_point("reading-env");
        return read_host_env_files(UserPaths(agents), files, user.home);
    });
}

} // namespace pi_agent
