// Taking connections, each for whoever answers at its listener.
#include "gate/listeners.hpp"

#include "gate/name_server.hpp"
#include "gate/visit.hpp"

#include <boost/asio/steady_timer.hpp>

#include <sys/socket.h>

namespace pi_agent {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::ip::udp;
using boost::system::error_code;

namespace {

constexpr auto before_again = std::chrono::milliseconds(100); // where there is no descriptor or memory left

bool is_v6(FdRef socket)
{
    int family = 0;
    socklen_t size = sizeof family;
    if (getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &family, &size) != 0) throw_errno("looking at a listener of the gate");
    return family == AF_INET6;
}

class Listener : public std::enable_shared_from_this<Listener> {
public:
    Listener(Gate &gate, ReceivedListener listener) : gate_(gate), kind_(listener.about.kind), acceptor_(gate.loop), timer_(gate.loop)
    {
        error_code problem;
        acceptor_.assign(is_v6(listener.socket) ? tcp::v6() : tcp::v4(), listener.socket.get(), problem);
        if (problem) throw SystemFailure(problem.value(), "taking over a listener of the gate");
        static_cast<void>(listener.socket.release());
    }

    void accept()
    {
        acceptor_.async_accept([self = shared_from_this()](const error_code &problem, tcp::socket socket) {
            if (!problem) {
                self->take(std::move(socket));
                return self->accept();
            }
            if (problem == asio::error::connection_aborted) return self->accept(); // it gave up before
            self->tell(DenialReason::no_room); // those who wait are told by the time they take, and the user by this
            self->timer_.expires_after(before_again);
            self->timer_.async_wait([self](const error_code &) { self->accept(); });
        });
    }

private:
    void tell(DenialReason reason) { gate_.denials.report({DenialKind::transparent, {}, 0, reason, 1, {}}); }

    void take(tcp::socket socket)
    {
        auto counted = gate_.count_connection(kind_ == ListenerKind::reverse);
        if (!counted) return tell(DenialReason::too_many);
        switch (kind_) {
        case ListenerKind::proxy:
            return visit_proxy(gate_, std::move(socket), std::move(counted));
        case ListenerKind::transparent:
            return visit_directly(gate_, std::move(socket), std::move(counted));
        case ListenerKind::dns_tcp:
            return visit_name_server(gate_, std::move(socket), std::move(counted));
        case ListenerKind::reverse:
            if (gate_.serve_route) gate_.serve_route(std::move(socket), std::move(counted));
            return;
        case ListenerKind::dns_udp:
            return;
        }
    }

    Gate &gate_;
    ListenerKind kind_;
    tcp::acceptor acceptor_;
    asio::steady_timer timer_;
};

} // namespace

void serve(Gate &gate, std::vector<ReceivedListener> listeners)
{
    for (auto &listener : listeners) {
        const bool is_six = is_v6(listener.socket);
        gate.has_v6 = gate.has_v6 || (is_six && listener.about.kind == ListenerKind::transparent);
        if (listener.about.kind != ListenerKind::dns_udp) {
            std::make_shared<Listener>(gate, std::move(listener))->accept();
            continue;
        }
        udp::socket socket(gate.loop);
        error_code problem;
        socket.assign(is_six ? udp::v6() : udp::v4(), listener.socket.get(), problem);
        if (problem) throw SystemFailure(problem.value(), "taking over a listener of the gate");
        static_cast<void>(listener.socket.release());
        serve_names(gate, std::move(socket));
    }
}

} // namespace pi_agent
