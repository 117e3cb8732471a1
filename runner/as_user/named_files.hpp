// The files that a policy names in a caller's home, read as the caller: keys, certificates, variables.
#pragma once

#include "common/decide/user_paths.hpp"
#include "runner/plan/environment.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/wire/user_files.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// --- Files of certificates that variables name, such as a company's own authority, read as the user.

// What the session sees at its own path.
struct ShownPlaces {
    const HostView &view;
    std::string project;
    std::string home;
};

// For a process of the user's. What lies in `shown` places is left alone; what is no file of certificates, or cannot be read, is left alone
// and told.
CertificateFiles read_certificate_files(const UserPaths &paths, const std::vector<CertificateVariable> &variables,
                                        const ShownPlaces &shown);

// --- A key of the user's that the policy names for `git push` and `git fetch` over ssh, and the hosts that the user knows.

// For a process of the user's. `key` is absolute; `home` the user's.
SshFiles read_ssh_files(const UserPaths &paths, const std::string &key, const std::string &home);

// --- The user's own files of variables that a policy names, read as the user.

// For a process of the user's. A file that is missing says nothing; what is no file, cannot be read, is larger than env_file_limit or is
// not in the syntax of one is Failure(configuration); where agents can have made it so, it is left out, and `notices` say so.
HostVariables read_host_env_files(const UserPaths &paths, const std::vector<std::string> &files, const std::string &home);

} // namespace pi_agent
