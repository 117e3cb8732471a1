// What all connections of a session's gate share, and how each reaches the outside.
#include "gate/gate.hpp"

#include "common/seams/seams.hpp"

#include <boost/asio/post.hpp>
#include <sys/socket.h>

namespace pi_agent {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::ip::udp;
using boost::system::error_code;

namespace {

constexpr std::size_t thread_count = 4;
constexpr std::size_t waiting_limit = 64; // names; a session that asks for more at once waits for none of them
constexpr std::size_t known_limit = 256;
constexpr auto found_is_known = std::chrono::seconds(20);
constexpr auto nothing_is_known = std::chrono::seconds(2);

// Also the addresses of a family that this host has none of: a proxy may have one.
Lookup::Answer ask(asio::thread_pool &threads, const std::string &name)
{
    error_code problem;
    const auto found = tcp::resolver(threads).resolve(name, "", problem);
    Lookup::Answer answer{{}, !found.empty() || problem == asio::error::host_not_found};
    for (const auto &one : found) {
        const Address address = *to_host(one.endpoint().address()).address;
        if (std::find(answer.addresses.begin(), answer.addresses.end(), address) == answer.addresses.end())
            answer.addresses.push_back(address);
    }
    return answer;
}

constexpr std::size_t address_limit = 8;
constexpr auto before_next = std::chrono::milliseconds(250);
constexpr auto for_all = std::chrono::seconds(15);

// The families in turn, so that one that leads nowhere costs one step.
std::vector<tcp::endpoint> in_turn(const std::vector<Address> &addresses, std::uint16_t port)
{
    std::vector<tcp::endpoint> first, second, all;
    for (const auto &address : addresses)
        (address.is_v6() == addresses.front().is_v6() ? first : second).emplace_back(address, port);
    for (std::size_t index = 0; index < addresses.size(); ++index)
        for (const auto *family : {&first, &second})
            if (index < family->size()) all.push_back((*family)[index]);
    all.resize(std::min(all.size(), address_limit));
    return all;
}

class Dialling : public std::enable_shared_from_this<Dialling> {
public:
    Dialling(asio::io_context &loop, std::vector<tcp::endpoint> endpoints, Dialled dialled)
        : loop_(loop), endpoints_(std::move(endpoints)), dialled_(std::move(dialled)), next_timer_(loop), last_timer_(loop)
    {
    }

    void start()
    {
        last_timer_.expires_after(for_all);
        last_timer_.async_wait([self = shared_from_this()](const error_code &problem) {
            if (!problem) self->finish(asio::error::timed_out, tcp::socket(self->loop_));
        });
        try_next();
    }

private:
    void try_next()
    {
        if (!dialled_ || next_ == endpoints_.size()) return;
        const auto attempt = std::make_shared<tcp::socket>(loop_);
        attempts_.push_back(attempt);
        ++open_;
        attempt->async_connect(endpoints_[next_++], [self = shared_from_this(), attempt](const error_code &problem) {
            --self->open_;
            if (!self->dialled_) return;
            if (!problem) return self->finish(problem, std::move(*attempt));
            if (self->next_ < self->endpoints_.size()) return self->try_next();
            if (self->open_ == 0) self->finish(problem, tcp::socket(self->loop_));
        });
        next_timer_.expires_after(before_next);
        next_timer_.async_wait([self = shared_from_this()](const error_code &problem) {
            if (!problem) self->try_next();
        });
    }

    void finish(const error_code &problem, tcp::socket socket)
    {
        if (!dialled_) return;
        const Dialled dialled = std::exchange(dialled_, nullptr);
        next_timer_.cancel();
        last_timer_.cancel();
        error_code ignored;
        for (const auto &attempt : attempts_)
            attempt->close(ignored);
        dialled(problem, std::move(socket));
    }

    asio::io_context &loop_;
    std::vector<tcp::endpoint> endpoints_;
    Dialled dialled_;
    asio::steady_timer next_timer_, last_timer_;
    std::vector<std::shared_ptr<tcp::socket>> attempts_ = {};
    std::size_t next_ = 0, open_ = 0;
};

// Of a rule that allows it, or of none. Its steps are in their order.
struct Attempt {
    Gate &gate;
    Target target;
    std::string where;
    WhenReached when_reached;
    bool is_any_loopback = false; // a rule means whatever the host has there
    std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();

    void fail(std::optional<DenialReason> reason) const { when_reached({{}, reason, where, {}}); }
    void fail_at_proxy(DenialReason reason) const { when_reached({{}, reason, gate.above->where, {}}); }

    void start() const
    {
        if (!gate.above) return choose_way();
        gate.above->find_itself(gate, [self = *this] {
            const auto &above = *self.gate.above;
            const bool is_other_port = is_loopback(self.target.host) && self.target.port != above.at.port;
            if (!above.is_found() && !is_other_port) return self.fail_at_proxy(DenialReason::proxy_gone);
            if (self.target.host.text == above.at.host.text && !is_other_port && defence_is_on("via-itself"))
                return self.fail_at_proxy(DenialReason::proxy_itself);
            self.choose_way();
        });
    }

    void choose_way() const
    {
        const bool by_proxy = gate.above && !gate.above->is_direct(target.host);
        // "localhost" is whatever the host has there. A rule for an address, or a range of them, means this one alone.
        if (is_any_loopback) return dial_all({asio::ip::address_v4::loopback(), asio::ip::address_v6::loopback()});
        if (target.host.address) return by_proxy ? ask_proxy({*target.host.address}) : dial_all({*target.host.address});
        const auto found = [self = *this, by_proxy](const Lookup::Answer &answer) { self.judge(answer, by_proxy); };
        if (by_proxy) return gate.above->find_soon(gate, target.host.text, found);
        gate.lookup.find(target.host.text, found);
    }

    void judge(const Lookup::Answer &found, bool by_proxy) const
    {
        if (!found.is_asked) return fail(DenialReason::no_room);
        // Of a name that nobody answered for, nothing is denied: the host's own programs do not find it either. The proxy may know it; that
        // it means itself by it shows at its port alone.
        if (found.addresses.empty() && by_proxy)
            return target.port == gate.above->at.port && defence_is_on("via-itself") ? fail_at_proxy(DenialReason::proxy_itself)
                                                                                     : ask_proxy({});
        if (found.addresses.empty()) return fail(found.is_known ? std::optional(DenialReason::no_address) : std::nullopt);
        const auto is_v6 = [](const Address &address) { return address.is_v6(); };
        const auto go = [self = *this, by_proxy](const std::vector<Address> &addresses, const std::vector<asio::ip::network_v6> &prefixes) {
            by_proxy ? self.ask_if_good(addresses, prefixes) : self.dial_good(addresses, prefixes);
        };
        if (std::none_of(found.addresses.begin(), found.addresses.end(), is_v6)) return go(found.addresses, {});
        const auto translate = [self = *this, go, by_proxy, addresses = found.addresses, is_v6](const Lookup::Answer &known) {
            if (!known.is_asked) return self.fail(DenialReason::no_room);
            auto judged = addresses;
            if (!known.is_known && !by_proxy) std::erase_if(judged, is_v6); // nobody says which of them have an address of IPv4 inside
            go(judged, translating_prefixes(known.addresses));
        };
        if (by_proxy) return gate.above->find_soon(gate, translation_name, translate);
        gate.lookup.find(translation_name, translate);
    }

    // Whether a name may lead there. What listens on this host, or beside it, trusts who comes from there: a rule has to name it.
    [[nodiscard]] bool may_dial(const Address &address, const std::vector<asio::ip::network_v6> &translating) const
    {
        if (!gate.rules.may_lead_to(translated(address, translating), target.port)) return false;
        if (gate.rules.find(to_host(address), target.port).rule != nullptr) return true;
        const Place place = gate.routes.place_of(address);
        return (place != Place::here || !defence_is_on("gate-own-address")) && (place != Place::near || !defence_is_on("gate-on-link"));
    }

    void dial_good(std::vector<Address> found, const std::vector<asio::ip::network_v6> &translating) const
    {
        const std::string first = found.empty() ? "" : to_host(found.front()).text;
        std::erase_if(found, [&](const Address &address) { return !may_dial(address, translating); });
        if (found.empty()) return when_reached({{}, DenialReason::private_address, where, first});
        dial_all(found, translating);
    }

    void dial_all(const std::vector<Address> &good, const std::vector<asio::ip::network_v6> &translating = {}) const
    {
        if (is_proxys(good, translating)) return fail_at_proxy(DenialReason::proxy_itself);
        dial(gate.loop, good, target.port, [self = *this](const error_code &problem, tcp::socket socket) {
            if (problem) return self.fail(is_full(problem) ? std::optional(DenialReason::no_room) : std::nullopt);
            self.when_reached({std::move(socket), {}, self.where, {}});
        });
    }

    // The proxy chooses among a name's addresses, so each has to be good.
    void ask_if_good(const std::vector<Address> &found, const std::vector<asio::ip::network_v6> &translating) const
    {
        const auto is_bad = [&](const Address &address) { return !may_dial(address, translating); };
        const auto bad = std::find_if(found.begin(), found.end(), is_bad);
        if (bad != found.end()) return when_reached({{}, DenialReason::private_address, where, to_host(*bad).text});
        ask_proxy(found, translating);
    }

    void ask_proxy(const std::vector<Address> &known, const std::vector<asio::ip::network_v6> &translating = {}) const
    {
        if (is_proxys(known, translating)) return fail_at_proxy(DenialReason::proxy_itself);
        gate.above->open_tunnel(gate, target, begun, when_reached);
    }

    [[nodiscard]] bool is_proxys(const std::vector<Address> &addresses, const std::vector<asio::ip::network_v6> &translating) const
    {
        const auto is_it = [&](const Address &address) { return gate.above->is_itself(gate, address, target.port); };
        return gate.above && std::any_of(addresses.begin(), addresses.end(),
                                         [&](const Address &address) { return is_it(address) || is_it(translated(address, translating)); });
    }
};

// Nothing where it is allowed.
std::optional<Reached> refused_by(const RuleAnswer &answer)
{
    if (answer.rule != nullptr) return std::nullopt;
    if (answer.almost == nullptr) return Reached{{}, DenialReason::no_rule, {}, {}};
    return Reached{{}, DenialReason::other_port, answer.almost->where, {}};
}

constexpr auto before_again = std::chrono::milliseconds(100); // where there is no descriptor or memory left

int family_of(FdRef socket)
{
    int family = 0;
    socklen_t size = sizeof family;
    if (getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &family, &size) != 0) throw_errno("looking at a listener of the gate");
    return family;
}

template <typename Socket>
Socket take_over(Gate &gate, UniqueFd socket, typename Socket::protocol_type v4, typename Socket::protocol_type v6)
{
    Socket taken(gate.loop);
    error_code problem;
    taken.assign(family_of(socket) == AF_INET6 ? v6 : v4, socket.get(), problem);
    if (problem) throw SystemFailure(problem.value(), "taking over a listener of the gate");
    static_cast<void>(socket.release());
    return taken;
}

class Listener : public std::enable_shared_from_this<Listener> {
public:
    Listener(Gate &gate, ListenerKind kind, UniqueFd socket)
        : gate_(gate), kind_(kind), acceptor_(take_over<tcp::acceptor>(gate, std::move(socket), tcp::v4(), tcp::v6())), timer_(gate.loop)
    {
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

// Asking the host's resolver in threads.

Lookup::Lookup(asio::io_context &loop) : loop_(loop), threads_(thread_count) {}

void Lookup::find(const std::string &name, Found found)
{
    const auto known = known_.find(name);
    const bool is_known = known != known_.end() && known->second.until > std::chrono::steady_clock::now();
    const auto others = waiting_.find(name);
    const bool is_asked = others != waiting_.end();
    if (is_known || (is_asked ? others->second.size() >= connection_limit : waiting_.size() >= waiting_limit)) {
        asio::post(loop_,
                   [found = std::move(found), answer = is_known ? known->second.answer : Answer{{}, false, false}] { found(answer); });
        return;
    }
    waiting_[name].push_back(std::move(found));
    if (is_asked) return;
    asio::post(threads_, [this, name] {
        Answer found_there = ask(threads_, name);
        asio::post(loop_, [this, name, found_there = std::move(found_there)]() mutable { answer(name, std::move(found_there)); });
    });
}

void Lookup::answer(const std::string &name, Answer answer)
{
    const auto now = std::chrono::steady_clock::now();
    if (known_.size() >= known_limit) std::erase_if(known_, [&](const auto &one) { return one.second.until <= now; });
    if (known_.size() >= known_limit) known_.clear();
    const auto answers = std::move(waiting_[name]);
    waiting_.erase(name);
    for (const auto &found : answers)
        found(answer);
    const auto until = now + (answer.addresses.empty() ? nothing_is_known : found_is_known);
    known_[name] = {std::move(answer), until};
}

// Connecting to one of several addresses.

void dial(asio::io_context &loop, const std::vector<Address> &addresses, std::uint16_t port, Dialled dialled)
{
    if (addresses.empty()) return dialled(asio::error::host_not_found, tcp::socket(loop));
    std::make_shared<Dialling>(loop, in_turn(addresses, port), std::move(dialled))->start();
}

// Counting denials, and telling the runner of them.

bool tell(FdRef runner, const GateMessage &message) noexcept
{
    try {
        write_packet(runner, encode(message));
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

void Denials::report(GateDenial denial)
{
    Key key{denial.kind, denial.host, denial.port, denial.reason};
    if (recent_.size() >= denials_a_second && !recent_.contains(key)) {
        denial.host.clear();
        denial.where.clear();
        denial.address.clear();
        denial.port = 0;
        key = {denial.kind, {}, 0, denial.reason};
    }
    denial.count = 0;
    const auto [place, is_new] = recent_.emplace(std::move(key), std::move(denial));
    ++place->second.count;
    if (is_new) send(place->second);
    if (!waits_) wait();
}

void Denials::wait()
{
    waits_ = true;
    timer_.expires_after(std::chrono::seconds(1));
    timer_.async_wait([this](const boost::system::error_code &problem) {
        if (problem) return;
        waits_ = false;
        std::erase_if(recent_, [](const auto &one) { return one.second.count == 0; });
        tell_rest();
        if (!recent_.empty()) wait();
    });
}

void Denials::tell_rest()
{
    for (auto &[key, denial] : recent_)
        if (denial.count > 0) send(denial);
}

void Denials::send(GateDenial &denial) const
{
    if (tell(runner_, denial)) denial.count = 0; // or it stays counted
}

// Reaching the outside by the rules.

Gate::Gate(asio::io_context &the_loop, FdRef runner, const GateOrder &order)
    : loop(the_loop), idle(order.idle_seconds), rules(order.rules), denials(the_loop, runner), lookup(the_loop)
{
    if (!order.via.empty()) above.emplace(order.via.front(), order.login, order.direct);
}

std::shared_ptr<void> Gate::count_connection(bool is_at_route)
{
    const std::size_t more = is_at_route ? 1 : 0;
    if (connections >= connection_limit || at_route + more > route_limit) return {};
    ++connections;
    at_route += more;
    return {this, [more](Gate *gate) {
                --gate->connections;
                gate->at_route -= more;
            }};
}

std::optional<Reached> why_not(const Gate &gate, const Target &target)
{
    return refused_by(gate.rules.find(target.host, target.port));
}

void reach_name(Gate &gate, const Target &target, WhenReached when_reached)
{
    Attempt{gate, target, {}, std::move(when_reached)}.start();
}

void reach(Gate &gate, const Target &target, WhenReached when_reached)
{
    const RuleAnswer answer = gate.rules.find(target.host, target.port);
    if (auto refused = refused_by(answer)) return when_reached(std::move(*refused));
    const bool is_any_loopback = is_loopback(target.host) && (!target.host.address || answer.rule->host == "localhost");
    Attempt{gate, target, answer.rule->where, std::move(when_reached), is_any_loopback}.start();
}

// Taking connections, each for whoever answers at its listener.

void serve(Gate &gate, std::vector<ReceivedListener> listeners)
{
    for (auto &[about, socket] : listeners) {
        gate.has_v6 = gate.has_v6 || (about.kind == ListenerKind::transparent && family_of(socket) == AF_INET6);
        if (about.kind == ListenerKind::dns_udp)
            serve_names(gate, take_over<udp::socket>(gate, std::move(socket), udp::v4(), udp::v6()));
        else
            std::make_shared<Listener>(gate, about.kind, std::move(socket))->accept();
    }
}

} // namespace pi_agent
