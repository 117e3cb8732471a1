// How much disk directories of an agent take, measured with that agent's rights.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pi_agent {

// Where the package managers of an agent's home keep what they can fetch again; relative to the home.
extern const std::vector<std::string> cache_places;

struct HomeSize {
    std::uint64_t all = 0;    // bytes on disk
    std::uint64_t caches = 0; // of these, in cache_places
};

// Both throw Failure when it cannot be found out in time. A file with several names counts once, other file systems not at all.
HomeSize measure_home(const AsRoot &root, const Account &agent, FdRef home);
std::uint64_t measure_directories(const AsRoot &root, const Account &agent, const std::vector<FdRef> &directories);

} // namespace pi_agent
