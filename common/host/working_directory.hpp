// The directory that a start begins in, as its user has it: what refuses it, in the same words for `pi` and for who explains.
#pragma once

#include "common/base/fd.hpp"

#include <string>

namespace pi_agent {

// "." or a path. Throws Failure(denied) for one that this user may not enter, SystemFailure for one that is not there.
UniqueFd open_working_directory(const std::string &path);

// Canonical. Throws Failure(denied) for one that was deleted, or that lies in no place of this mount namespace.
std::string path_of_working_directory(FdRef directory);

} // namespace pi_agent
