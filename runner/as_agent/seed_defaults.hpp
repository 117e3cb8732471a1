// Gives the agent's home the files that every home begins with, wherever it has none of that name: runs as the agent, follows no link.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/identity.hpp"
#include "runner/wire/answer.hpp"

namespace pi_agent {

// Copies each regular file of `defaults`, at any depth, to the same place in `home` unless something has its name there, a link to nothing
// included. What stands where a directory is needed (a file, a link, a directory that the agent closed) leaves out all beneath it. New
// files are made in `staging`; send_progress(channel) is called at times.
void seed_defaults(const AsUser &agent, FdRef home, FdRef staging, FdRef defaults, FdRef channel);

} // namespace pi_agent
