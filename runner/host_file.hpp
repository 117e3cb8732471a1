// Opens what a user's config names, as that user: files and directories only, never what acts or waits when it is opened.
#pragma once

#include "common/fd.hpp"
#include "runner/sync_messages.hpp"

#include <string>
#include <sys/stat.h>

namespace pi_agent {

// For processes that have become the user; links are followed with the user's rights.
struct HostFile {
    UniqueFd fd; // O_RDONLY, a regular file; none when it cannot be read
    HostFacts facts;
    std::string problem; // then
};

HostFile open_host_file(FdRef directory, const std::string &path);

// None when it is missing. Throws Failure(configuration) when it is no readable directory or a link to nothing; `what` names it in
// messages.
UniqueFd open_source_directory(const std::string &path, const std::string &what);

// None when it is missing. Throws Failure(configuration) when it is no readable file; `place` names it.
UniqueFd open_document(FdRef directory, const std::string &name, const std::string &place);

// Waits while the agent, run by the user on the host, holds its lock on a file (a directory called name.lock, younger than ten seconds).
void wait_for_lock(FdRef directory, const std::string &name, int patience_milliseconds);

// True for what the kernel makes up (/proc, /sys): a child of root's process sees root's things there.
bool is_kernels(FdRef place);

HostFacts facts_of(const struct stat &facts) noexcept;

} // namespace pi_agent
