// Where a request at the reverse route goes: the host in its path, and the rest, which can be read in one way only.
#pragma once

#include "runner/wire/gate_messages.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// Why the route does not pass something on. What it says never has bytes of a key.
class RouteRefusal : public std::runtime_error {
public:
    RouteRefusal(unsigned http_status, std::optional<DenialReason> why, const std::string &said)
        : std::runtime_error(said), status(http_status), reason(why)
    {
    }
    unsigned status;                    // of HTTP
    std::optional<DenialReason> reason; // none: nothing was denied, the provider could not be asked
};

struct RouteTarget {
    std::string host;  // as the session wrote it
    std::string path;  // with which the lists are compared, and which is sent
    std::string query; // with its "?", without what could be a credential; or nothing
};

// From "/api.openai.com/v1/responses?x=y". Throws RouteRefusal.
RouteTarget read_route_target(std::string_view target);

// The method that lists have for a GET that becomes a WebSocket.
constexpr std::string_view websocket_method = "WEBSOCKET";

// The provider that takes this request. Throws RouteRefusal.
const GateProvider &choose_provider(const std::vector<GateProvider> &providers, std::string_view method, const RouteTarget &target);

} // namespace pi_agent
