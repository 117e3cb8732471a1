// What a host's own drop-ins may change in the units of a session (systemd.unit(5), service.d).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// How an administrator leaves pi-agent's units out.
inline constexpr const char *without_drop_ins = "A drop-in for all services is in the way: an empty file of its name in "
                                                "/etc/systemd/system/pi-agent-.service.d leaves pi-agent's units "
                                                "out (systemd-delta --type=extended lists drop-ins)";

// The settings of a drop-in that may weaken what confines a session, or start something else in it, in their order.
std::vector<std::string> settings_in_the_way(std::string_view text);

// Throws Failure(unavailable) that names the file and its settings.
void require_harmless_drop_in(const std::string &file, std::string_view text);

} // namespace pi_agent
