// From systemd's version to what it has.
#include "runner/plan/systemd_features.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"

#include <charconv>

namespace pi_agent {

SystemdFeatures systemd_features(const std::string &version)
{
    unsigned number = 0;
    const auto parsed = std::from_chars(version.data(), version.data() + version.size(), number);
    if (parsed.ec != std::errc())
        throw Failure(ExitStatus::unavailable, "systemd calls its version " + escape_for_display(version) +
                                                   ", which does not begin with a number; see: systemctl --version");
    if (number < oldest_systemd)
        throw Failure(ExitStatus::unavailable, "this host runs systemd " + std::to_string(number) + ", and sandbox.method systemd needs " +
                                                   std::to_string(oldest_systemd) + " or newer; upgrade the host");
    return {number, number >= systemd_with_private_pids, number >= systemd_with_log_sockets, number >= systemd_with_identity_ids};
}

} // namespace pi_agent
