// The id map of a project mount: the identity, with the user's and the agent's ids exchanged (design, launch step 6).
#pragma once

#include "common/base/fd.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"

#include <cstdint>
#include <string>

namespace pi_agent {

// Lines for /proc/PID/uid_map or gid_map (user_namespaces(7)): every id maps to itself, `first` to `second` and back. A map of one id would
// make every file of another owner unusable.
std::string swap_map(std::uint32_t first, std::uint32_t second);

enum class Others {
    kept,     // as above
    unmapped, // only the user's uid is mapped: files of other owners belong to nobody inside, and an overlay copies none of them up
};

// A user namespace with these maps, for mount_setattr(2). Nothing ever runs in it.
UniqueFd make_id_map(const AsRoot &root, const Account &user, const Account &agent, Others others = Others::kept);

} // namespace pi_agent
