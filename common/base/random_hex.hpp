// Names that nobody can guess.
#pragma once

#include <string>

namespace pi_agent {

// `bytes` random bytes (at most 16) of the kernel's (getrandom(2)), as twice as many hexadecimal digits. Throws SystemFailure.
std::string random_hex(std::size_t bytes);

} // namespace pi_agent
