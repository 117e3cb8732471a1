// From a connection of the session's to a relay, or to a refusal that says why.
#include "gate/gate.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

namespace pi_agent {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto for_first_bytes = std::chrono::seconds(10);

// An address that stands for a name inside stands for it at the proxy as well: some programs look a name up before they ask.
Host meant_by(const Gate &gate, const Host &host)
{
    const std::string name = host.address ? gate.names.name_of(*host.address) : "";
    return name.empty() ? host : *read_host(name);
}

// The session's loopback stands for the host's. Programs that look "localhost" up try both of its addresses, and do not go on to the second
// when the first one was there: so each stands for the one that a rule names.
Target as_ruled(const Gate &gate, const Target &target)
{
    const Address &address = *target.host.address;
    if (!address.is_loopback() || !why_not(gate, target)) return target;
    const Address other = address.is_v6() ? Address(asio::ip::address_v4::loopback()) : Address(asio::ip::address_v6::loopback());
    const Target same{to_host(other), target.port};
    return why_not(gate, same) ? target : same;
}

// The place of the rule that allows the target, for a connection that the gate denies for another reason; empty without a rule.
std::string where_of(const Gate &gate, const Target &target)
{
    const GateRule *rule = gate.rules.find(target.host, target.port).rule;
    return rule == nullptr ? "" : rule->where;
}

class Visit : public std::enable_shared_from_this<Visit> {
public:
    Visit(Gate &gate, tcp::socket socket, std::shared_ptr<void> counted, DenialKind kind)
        : gate_(gate), socket_(std::move(socket)), counted_(std::move(counted)), kind_(kind), timer_(gate.loop)
    {
        error_code ignored;
        socket_.non_blocking(true, ignored); // no read waits, whatever the kernel said before
    }

    void start_at_proxy()
    {
        limit_time();
        speech_ = Speech::http;
        read_more(&Visit::read_proxy_head);
    }

    void start_directly()
    {
        error_code problem;
        const tcp::endpoint asked = socket_.local_endpoint(problem);
        if (problem) return;
        target_ = as_ruled(gate_, {to_host(asked.address()), asked.port()});
        const bool is_synthetic = NameTable::is_synthetic(asked.address());
        const std::string name = gate_.names.name_of(asked.address());
        const bool is_open_address = !is_synthetic && !why_not(gate_, target_);
        speech_ = speech_of_port(asked.port());
        if (is_open_address) return reach_target(&Visit::hand_over_open); // a rule names the address itself, or the host's loopback
        if (is_synthetic && name.empty()) return refuse(DenialReason::no_name);
        if (is_synthetic) target_.host = *read_host(name);
        named_ = is_synthetic;
        if (!named_ && (speech_ == Speech::any || is_loopback(target_.host))) return refuse_by_rules();
        if (named_ && why_not(gate_, target_)) return refuse_by_rules();
        if (speech_ == Speech::any) return reach_target(&Visit::hand_over_judged);
        limit_time();
        read_more(&Visit::read_first_bytes);
    }

private:
    using Step = void (Visit::*)();

    void limit_time()
    {
        timer_.expires_after(for_first_bytes);
        timer_.async_wait([self = shared_from_this()](const error_code &problem) {
            if (problem || self->is_over_) return;
            error_code ignored;
            self->socket_.cancel(ignored);
            // Browsers and libraries open connections ahead; of one that nobody needed nothing is denied.
            if (self->first_.empty()) return self->finish();
            self->refuse(DenialReason::too_slow);
        });
    }

    void read_more(Step step)
    {
        socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this(), step](const error_code &waiting) {
            if (waiting || self->is_over_) return;
            std::array<char, 4096> bytes{};
            error_code problem;
            const std::size_t count = self->socket_.read_some(asio::buffer(bytes), problem);
            if (problem == asio::error::would_block) return self->read_more(step);
            if (problem) return self->finish();
            self->first_.append(bytes.data(), count);
            (*self.*step)();
        });
    }

    // --- At the proxy.

    void read_proxy_head()
    {
        try {
            const std::size_t size = find_head(first_, request_head_limit);
            if (size == 0) return read_more(&Visit::read_proxy_head);
            const RequestHead head = read_request_head(std::string_view(first_).substr(0, size));
            first_.erase(0, size);
            timer_.cancel();
            if (head.method() == boost::beast::http::verb::connect)
                open_tunnel(head);
            else
                pass_request(head);
        } catch (const RequestRefusal &problem) {
            refuse(DenialReason::malformed, problem.what());
        }
    }

    void open_tunnel(const RequestHead &head)
    {
        const auto target = connect_target(head);
        if (!target) return refuse(DenialReason::malformed, "CONNECT needs HOST:PORT");
        target_ = {meant_by(gate_, target->host), target->port};
        reach_target(&Visit::answer_tunnel);
    }

    void answer_tunnel()
    {
        static constexpr std::string_view opened = "HTTP/1.1 200 Connection established\r\n\r\n";
        asio::async_write(socket_, asio::buffer(opened), [self = shared_from_this()](const error_code &problem, std::size_t) {
            if (self->is_over_) return;
            if (problem) return self->finish();
            self->speech_ = speech_of_port(self->target_.port);
            if (self->target_.host.address || is_loopback(self->target_.host)) return self->hand_over_open();
            self->hand_over_judged();
        });
    }

    void pass_request(const RequestHead &head)
    {
        kind_ = DenialKind::plain;
        PlainRequest request = read_plain_request(head, true, 80);
        request.target.host = meant_by(gate_, request.target.host);
        target_ = request.target;
        if (request.is_encrypted || target_.port == 443) return refuse(DenialReason::plain_http);
        const std::size_t body = static_cast<std::size_t>(std::min<std::uint64_t>(first_.size(), request.body));
        first_ = write_plain_request(head, request) + first_.substr(0, body);
        further_ = request.body - body;
        is_upgrade_ = request.is_upgrade;
        reach_target(&Visit::hand_over_open);
    }

    // --- By itself.

    void read_first_bytes()
    {
        FirstBytes first = judge_first_bytes(speech_, named_ ? std::optional(target_.host) : std::nullopt, target_.port, first_);
        if (first.state == FirstBytes::State::incomplete) return read_more(&Visit::read_first_bytes);
        if (first.state == FirstBytes::State::refused) return refuse(first.reason);
        timer_.cancel();
        if (first.said && !named_) target_.host = *first.said;
        first_ = std::move(first.forward);
        further_ = first.further;
        is_upgrade_ = first.is_upgrade;
        reach_target(&Visit::hand_over_open);
    }

    // --- Outwards.

    void reach_target(Step then)
    {
        reach(gate_, target_, [self = shared_from_this(), then](Reached reached) {
            if (self->is_over_) return;
            if (!reached.socket) return self->refuse_reached(reached);
            self->outside_.emplace(std::move(*reached.socket));
            (*self.*then)();
        });
    }

    // What the session says first decides whether it passes.
    void hand_over_judged()
    {
        hand_over([&gate = gate_, kind = kind_, target = target_, speech = speech_](std::string_view bytes) {
            FirstBytes first = judge_first_bytes(speech, target.host, target.port, bytes);
            if (first.state != FirstBytes::State::refused) return first;
            GateDenial denial{kind, target.host.text, target.port, first.reason, 1, where_of(gate, target), {}};
            first.farewell = refusal_in(speech, denial.reason, text_of_denial(denial));
            gate.denials.report(std::move(denial));
            return first;
        });
    }

    void hand_over_open() { hand_over({}); }

    void hand_over(Judge judge)
    {
        is_over_ = true;
        timer_.cancel();
        start_relay({std::move(socket_), std::move(*outside_), std::move(first_), std::move(judge), further_, is_upgrade_,
                     speech_ == Speech::any, gate_.idle, std::move(counted_)});
    }

    // --- Refusals.

    void refuse_by_rules() { refuse_reached(why_not(gate_, target_).value_or(Reached{})); }

    void refuse_reached(const Reached &reached)
    {
        if (reached.reason) return refuse(*reached.reason, {}, reached.where, reached.address);
        say({}, target_.host.text + ":" + std::to_string(target_.port) + " does not answer.");
    }

    void refuse(DenialReason reason, const std::string &more = {}, const std::string &where = {}, const std::string &address = {})
    {
        GateDenial denial{kind_, target_.host.text, target_.port, reason, 1, where.empty() ? where_of(gate_, target_) : where, address};
        std::string text = text_of_denial(denial);
        if (!more.empty()) text += " (" + more + ")";
        gate_.denials.report(std::move(denial));
        say(reason, text);
    }

    void say(std::optional<DenialReason> reason, const std::string &text)
    {
        if (is_over_) return;
        is_over_ = true;
        timer_.cancel();
        say_farewell(socket_, refusal_in(speech_, reason, text), std::move(counted_));
    }

    void finish()
    {
        is_over_ = true;
        timer_.cancel();
        error_code ignored;
        socket_.close(ignored);
    }

    Gate &gate_;
    tcp::socket socket_;
    std::shared_ptr<void> counted_;
    DenialKind kind_;
    asio::steady_timer timer_;
    std::optional<tcp::socket> outside_ = {};
    Target target_ = {};
    Speech speech_ = Speech::any;
    bool named_ = false;   // the target's host is a name that the gate's name server was asked for
    bool is_over_ = false; // somebody else has the socket, or nobody
    std::string first_ = {};
    std::uint64_t further_ = without_end;
    bool is_upgrade_ = false;
};

} // namespace

std::string text_of_denial(const GateDenial &denial)
{
    const DenialText &reason = text_of(denial.reason);
    const std::string what = denial.host.empty() ? "The connection" : denial.host + ":" + std::to_string(denial.port);
    std::string text = what + " is denied: " + meaning_of(denial) + ".";
    const bool is_proxys = denial.reason >= DenialReason::proxy_itself;
    if (!denial.where.empty()) text += (is_proxys ? " The proxy is at " : " The rule is at ") + denial.where + ".";
    if (*reason.key != '\0') text += std::string(" Ask the administrator: the policy's key '") + reason.key + "' would change it.";
    return text;
}

void visit_proxy(Gate &gate, tcp::socket socket, std::shared_ptr<void> counted)
{
    std::make_shared<Visit>(gate, std::move(socket), std::move(counted), DenialKind::tunnel)->start_at_proxy();
}

void visit_directly(Gate &gate, tcp::socket socket, std::shared_ptr<void> counted)
{
    std::make_shared<Visit>(gate, std::move(socket), std::move(counted), DenialKind::transparent)->start_directly();
}

} // namespace pi_agent
