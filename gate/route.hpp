// The reverse route: requests of a session to the providers of models, to which the gate adds the providers' keys.
#pragma once

#include "gate/gate.hpp"
#include "gate/route_target.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace pi_agent {

// What the rest of the gate does for it.
struct RouteNeeds {
    using Connected = std::function<void(boost::asio::ip::tcp::socket socket, const RouteRefusal *problem)>;
    // Connects to port 443 of a provider's host, whose address it has checked.
    std::function<void(const std::string &host, Connected connected)> connect;
    // Takes an event for the record.
    std::function<void(GateDenial denial)> tell;
};

// http://127.0.0.1:PORT/api.openai.com/v1/responses becomes https://api.openai.com/v1/responses. One request for each connection, on both
// sides: no byte after a request's body counts.
class Route {
public:
    // Borrows the order, whose keys and certificates it needs as long as it lives.
    Route(const GateOrder &order, RouteNeeds needs);

    // `counted` goes with the connection.
    void serve(boost::asio::ip::tcp::socket client, std::shared_ptr<void> counted = {});

private:
    friend class RouteConnection;
    // How providers are spoken to. Throws RouteRefusal.
    boost::asio::ssl::context &tls();

    const GateOrder &order_;
    RouteNeeds needs_;
    std::chrono::seconds idle_;
    std::optional<boost::asio::ssl::context> tls_ = {}; // once a request has needed it
};

// For Gate::serve_route; empty where the order has no provider.
std::function<void(boost::asio::ip::tcp::socket, std::shared_ptr<void>)> open_route(Gate &gate, const GateOrder &order);

} // namespace pi_agent
