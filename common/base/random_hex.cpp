// Random bytes as text.
#include "common/base/random_hex.hpp"

#include "common/base/error.hpp"

#include <array>
#include <sys/random.h>

namespace pi_agent {

std::string random_hex(std::size_t bytes)
{
    std::array<unsigned char, 16> random{};
    if (bytes > random.size()) throw Failure(ExitStatus::internal, "more random bytes than there is room for");
    if (getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes)) throw_errno("getting random bytes");
    std::string text;
    for (std::size_t index = 0; index < bytes; ++index) {
        text += "0123456789abcdef"[random[index] >> 4U];
        text += "0123456789abcdef"[random[index] & 15U];
    }
    return text;
}

} // namespace pi_agent
