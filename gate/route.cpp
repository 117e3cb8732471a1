// How the reverse route is part of the gate.
#include "gate/route.hpp"

#include "gate/route_connection.hpp"
#include "gate/route_tls.hpp"

namespace pi_agent {

namespace {

RouteRefusal unreached(const std::string &host, std::optional<DenialReason> reason)
{
    return {502, reason, host + (reason ? std::string(": ") + text_of(*reason).meaning : " cannot be reached from this host")};
}

} // namespace

Route::Route(const GateOrder &order, RouteNeeds needs)
    : order_(order), needs_(std::move(needs)), idle_(static_cast<std::chrono::seconds::rep>(order.idle_seconds))
{
}

// OpenSSL takes twenty milliseconds to read the certificates that a host trusts. Here a session pays them with its first request to a
// provider; made before the gate serves, each start would wait for them.
boost::asio::ssl::context &Route::tls()
{
    try {
        if (!tls_) tls_.emplace(make_tls_context(order_.authorities));
    } catch (const std::exception &failure) { // no memory, or certificates that are none: the next request tries again
        throw RouteRefusal(502, {}, std::string("the gate cannot set TLS up: ") + failure.what());
    }
    return *tls_;
}

void Route::serve(boost::asio::ip::tcp::socket client, std::shared_ptr<void> counted)
{
    std::make_shared<RouteConnection>(*this, std::move(client), std::move(counted))->start();
}

std::function<void(boost::asio::ip::tcp::socket, std::shared_ptr<void>)> open_route(Gate &gate, const GateOrder &order)
{
    if (order.providers.empty()) return {};
    RouteNeeds needs;
    needs.connect = [&gate](const std::string &host, RouteNeeds::Connected connected) {
        reach_name(gate, {{host}, https_port}, [&gate, host, connected = std::move(connected)](Reached reached) {
            if (reached.socket) return connected(std::move(*reached.socket), nullptr);
            const RouteRefusal refusal = unreached(host, reached.reason);
            connected(boost::asio::ip::tcp::socket(gate.loop), &refusal);
        });
    };
    needs.tell = [&gate](GateDenial denial) { gate.denials.report(std::move(denial)); };
    return [route = std::make_shared<Route>(order, std::move(needs))](boost::asio::ip::tcp::socket client, std::shared_ptr<void> counted) {
        route->serve(std::move(client), std::move(counted));
    };
}

} // namespace pi_agent
