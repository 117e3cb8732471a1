// The proxy above the gate (network.via): asks it for tunnels to the hosts of a session. And what OpenSSL is for.
#include "gate/gate.hpp"

#include "common/seams/seams.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstring>

namespace pi_agent {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto to_tell = std::chrono::milliseconds(1500);      // a user hears of a proxy that is gone or slow within two seconds
constexpr auto to_connect = std::chrono::milliseconds(600);    // at least, however long the resolver took
constexpr auto for_an_answer = std::chrono::seconds(20);       // it connects meanwhile, and some hosts are slow
constexpr auto for_a_name = std::chrono::milliseconds(500);    // of the host's own resolver
constexpr auto nobody_is_asked_for = std::chrono::seconds(60); // where that did not answer in time
constexpr auto answers_still = std::chrono::seconds(60);       // that resolver, after an answer
constexpr std::size_t remembered = 256;
constexpr int most_heads_between = 8;
constexpr std::size_t without_limit = 1024UL * 1024;

HeadRules rules_of_answers()
{
    return {defence_is_on("via-head") ? request_head_limit : without_limit, 100, ""};
}

// Throws RequestRefusal.
unsigned status_of_answer(std::string_view head)
{
    http::response_parser<http::buffer_body> parser;
    parser.skip(true);
    const HeadRules rules = rules_of_answers();
    read_fields(head, rules);
    put_head(std::string(head.substr(0, head.find(head_line_end))) + "\r\n\r\n", parser, rules); // a body's length means nothing here
    return parser.get().result_int();
}

DenialReason reason_of_status(unsigned status)
{
    if (status == 407) return DenialReason::proxy_login;
    if (status >= 500 && status < 600) return DenialReason::proxy_failed;
    return status >= 300 && status < 500 ? DenialReason::proxy_refused : DenialReason::proxy_unreadable; // no redirection is followed
}

// One connection to the proxy, until it leads to the target.
class Tunnel : public std::enable_shared_from_this<Tunnel> {
public:
    Tunnel(Gate &gate, Target target, WhenReached when_reached)
        : gate_(gate), above_(*gate.above), target_(std::move(target)), when_reached_(std::move(when_reached)), timer_(gate.loop)
    {
        request_ = "CONNECT " + host_and_port(target_.host.text, target_.port) +
                   " HTTP/1.1\r\nHost: " + host_and_port(target_.host.text, target_.port) + "\r\n" + above_.credentials + "\r\n";
    }

    void start(const std::vector<Address> &addresses, std::chrono::steady_clock::time_point begun)
    {
        timer_.expires_at(std::max(begun + to_tell, std::chrono::steady_clock::now() + to_connect));
        timer_.async_wait([self = shared_from_this()](const error_code &problem) {
            if (!problem) self->be_late();
        });
        dial(gate_.loop, addresses, above_.at.port, [self = shared_from_this()](const error_code &problem, tcp::socket socket) {
            if (self->is_over()) return;
            if (problem) return self->fail(is_full(problem) ? DenialReason::no_room : DenialReason::proxy_gone);
            self->socket_.emplace(std::move(socket));
            self->ask();
        });
    }

private:
    [[nodiscard]] bool is_over() const { return !when_reached_; }

    void be_late()
    {
        if (is_over()) return;
        if (!socket_ || is_told_) return fail(is_told_ ? DenialReason::proxy_failed : DenialReason::proxy_gone);
        is_told_ = true;
        gate_.denials.report({DenialKind::tunnel, target_.host.text, target_.port, DenialReason::proxy_slow, 1, above_.where});
        timer_.expires_after(for_an_answer);
        timer_.async_wait([self = shared_from_this()](const error_code &problem) {
            if (!problem) self->be_late();
        });
    }

    void ask()
    {
        error_code ignored;
        socket_->non_blocking(true, ignored);
        socket_->set_option(tcp::no_delay(true), ignored);
        asio::async_write(*socket_, asio::buffer(request_), [self = shared_from_this()](const error_code &problem, std::size_t) {
            explicit_bzero(self->request_.data(), self->request_.size());
            if (self->is_over()) return;
            if (problem) return self->fail(DenialReason::proxy_gone);
            self->wait();
        });
    }

    void wait()
    {
        socket_->async_wait(tcp::socket::wait_read, [self = shared_from_this()](const error_code &problem) {
            if (self->is_over()) return;
            if (problem) return self->fail(DenialReason::proxy_gone);
            self->read();
        });
    }

    // Takes the bytes of the answer's head, and none of those after it: they are the host's, which may speak first.
    void read()
    try {
        std::array<char, 4096> bytes{};
        error_code problem;
        const std::size_t count = socket_->receive(asio::buffer(bytes), tcp::socket::message_peek, problem);
        if (problem == asio::error::would_block) return wait();
        if (problem) return fail(answer_.empty() && is_cut(problem) ? DenialReason::proxy_gone : DenialReason::proxy_unreadable);
        const std::size_t before = answer_.size();
        answer_.append(bytes.data(), count);
        const std::size_t head = find_head(answer_, rules_of_answers().bytes);
        socket_->receive(asio::buffer(bytes, head == 0 ? count : head - before), 0, problem);
        if (problem) return fail(DenialReason::proxy_gone);
        if (head == 0) return wait();
        take(status_of_answer(std::string_view(answer_).substr(0, head)));
    } catch (const RequestRefusal &) {
        fail(DenialReason::proxy_unreadable);
    }

    static bool is_cut(const error_code &problem) { return problem == asio::error::eof || problem == asio::error::connection_reset; }

    void take(unsigned status)
    {
        answer_.clear();
        if (status >= 100 && status < 200 && status != 101 && (++heads_between_ <= most_heads_between || !defence_is_on("via-head")))
            return wait();
        if ((status < 200 || status >= 300) && defence_is_on("via-status")) return fail(reason_of_status(status));
        timer_.cancel();
        std::exchange(when_reached_, nullptr)({std::move(*socket_), {}, {}});
    }

    void fail(DenialReason reason)
    {
        timer_.cancel();
        if (socket_) {
            error_code ignored;
            socket_->close(ignored);
        }
        std::exchange(when_reached_, nullptr)({{}, reason, above_.where});
    }

    Gate &gate_;
    const ProxyAbove &above_;
    Target target_;
    WhenReached when_reached_;
    asio::steady_timer timer_;
    std::optional<tcp::socket> socket_ = {};
    std::string request_ = {}, answer_ = {};
    int heads_between_ = 0;
    bool is_told_ = false;
};

bool is_link_local(const Address &address)
{
    if (address.is_v6()) return address.to_v6().is_link_local();
    const auto bytes = address.to_v4().to_bytes();
    return bytes[0] == 169 && bytes[1] == 254;
}

} // namespace

bool is_full(const error_code &problem)
{
    return problem == asio::error::no_descriptors || problem == asio::error::no_memory || problem == asio::error::no_buffer_space ||
           problem == boost::system::errc::too_many_files_open_in_system;
}

std::string why_not_reached(const Reached &reached)
{
    return (reached.reason ? std::string(": ") + text_of(*reached.reason).meaning + (reached.address.empty() ? "" : ": " + reached.address)
                           : " cannot be reached from this host") +
           (reached.where.empty() ? "" : " (" + reached.where + ")");
}

ProxyAbove::ProxyAbove(const GateRule &via, const std::string &login, const std::vector<GateRule> &without)
    : where(via.where), credentials(proxy_credentials(login))
{
    auto host = read_host(via.host);
    if (!host) throw Failure(ExitStatus::internal, "the gate got a proxy that is none: " + via.host);
    at = {std::move(*host), via.port};
    for (const auto &rule : without)
        direct_.push_back({rule.host, rule.port});
}

bool ProxyAbove::is_direct(const Host &host) const
{
    const bool is_own_place = is_loopback(host) || (host.address && (is_link_local(*host.address) || is_metadata({host.text})));
    if (is_own_place && defence_is_on("via-own-places")) return true;
    return find_rule(direct_, {host.text}).rule != nullptr;
}

void ProxyAbove::find_soon(Gate &gate, const std::string &name, const Lookup::Found &found)
{
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(unheard_, [&](const auto &one) { return one.second <= now; });
    if (unheard_.contains(name)) return asio::post(gate.loop, [found] { found({{}, false}); });
    // Whether the resolver answers at all shows at a name that no session and no host's owner can make slow.
    if (name != translation_name && answers_until_ <= now && !std::exchange(is_trying_, true))
        find_soon(gate, translation_name, [this](const Lookup::Answer & /*known*/) { is_trying_ = false; });
    struct Race {
        Lookup::Found found;
        asio::steady_timer timer;
    };
    const auto race = std::make_shared<Race>(Race{found, asio::steady_timer(gate.loop)});
    const auto end = [race](const Lookup::Answer &answer) {
        race->timer.cancel();
        if (race->found) std::exchange(race->found, nullptr)(answer);
    };
    const auto remember = [this, name](std::chrono::steady_clock::time_point then) {
        if (unheard_.size() < remembered) unheard_[name] = then + nobody_is_asked_for;
    };
    race->timer.expires_after(for_a_name);
    const bool is_own = name == at.host.text; // the proxy's: it may be in a file of the host, and its owner is trusted
    race->timer.async_wait([this, is_own, remember, end](const error_code &problem) {
        const auto then = std::chrono::steady_clock::now();
        if (problem || (answers_until_ > then && !is_own)) return; // the look-up ends by itself
        remember(then);
        end({{}, false});
    });
    gate.lookup.find(name, [this, name, is_own, begun = now, remember, end](const Lookup::Answer &answer) {
        const auto then = std::chrono::steady_clock::now();
        if (answer.is_known) unheard_.erase(name); // late, and it counts for the next connection
        if (answer.is_known && !is_own) answers_until_ = then + answers_still;
        if (!answer.is_known && answer.is_asked && then - begun >= for_a_name) remember(then);
        end(answer);
    });
}

void ProxyAbove::find_itself(Gate &gate, std::function<void()> then)
{
    if (at.host.address) addresses_ = {*at.host.address};
    if (is_loopback(at.host) && !at.host.address) addresses_ = {asio::ip::address_v4::loopback(), asio::ip::address_v6::loopback()};
    if (at.host.address || is_loopback(at.host)) return then();
    find_soon(gate, at.host.text, [this, then = std::move(then)](const Lookup::Answer &answer) {
        for (const auto &address : answer.addresses) { // it has several in turn, perhaps
            std::erase(addresses_, address);
            addresses_.insert(addresses_.begin(), address);
        }
        addresses_.resize(std::min(addresses_.size(), std::size_t{64}));
        then();
    });
}

// What the proxy reaches for whoever asks, a session that reached it would ask for.
bool ProxyAbove::is_itself(Gate &gate, const Address &address, std::uint16_t port) const
{
    if (!defence_is_on("via-itself")) return false;
    const auto is_of_host = [&](const Address &one) { return one.is_loopback() || gate.routes.place_of(one) == Place::here; };
    // On this host are more servers than the proxy. On another one it may listen at several ports.
    if (is_of_host(address)) return port == at.port && std::any_of(addresses_.begin(), addresses_.end(), is_of_host);
    return std::find(addresses_.begin(), addresses_.end(), address) != addresses_.end();
}

void ProxyAbove::open_tunnel(Gate &gate, const Target &target, std::chrono::steady_clock::time_point begun, WhenReached when_reached) const
{
    const auto tunnel = std::make_shared<Tunnel>(gate, target, std::move(when_reached));
    tunnel->start(addresses_, begun);
}

// --- What OpenSSL is for: TLS towards providers, and the login at a proxy.

boost::asio::ssl::context make_tls_context(const std::string &authorities)
{
    boost::asio::ssl::context context(boost::asio::ssl::context::tls_client);
    SSL_CTX *tls = context.native_handle();
    // HTTP/1.1 and no other: two ways to say where a request ends are one too many.
    constexpr unsigned char protocols[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
    if (SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION) != 1 || SSL_CTX_set_alpn_protos(tls, protocols, sizeof protocols) != 0)
        throw Failure(ExitStatus::system_failure, "TLS cannot be set up");
    SSL_CTX_set_verify(tls, defence_is_on("route-trust") ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(tls, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    context.set_default_verify_paths();
    // All of the text: of one that ends in the middle, Asio leaves none out in silence.
    boost::system::error_code problem;
    if (!authorities.empty()) context.add_certificate_authority(boost::asio::buffer(authorities), problem);
    if (problem)
        throw Failure(ExitStatus::configuration, "the certificates for the gate cannot be read; they must be PEM, one after the other");
    return context;
}

bool expect_host(TlsStream &stream, const std::string &host)
{
    SSL *tls = stream.native_handle();
    // By the names that authorities vouch for. The other place for one (CN) may have any text.
    SSL_set_hostflags(tls, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    const bool is_expected = !defence_is_on("route-host-name") || SSL_set1_host(tls, host.c_str()) == 1;
    // What SSL_set_tlsext_host_name() does, without the cast in its macro; OpenSSL copies the name.
    std::string name = host;
    return is_expected && SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) == 1;
}

std::string why_untrusted(TlsStream &stream)
{
    const long verified = SSL_get_verify_result(stream.native_handle());
    return verified == X509_V_OK ? "" : X509_verify_cert_error_string(verified);
}

std::string proxy_credentials(const std::string &login)
{
    if (login.empty()) return {};
    std::vector<unsigned char> encoded(4 * ((login.size() + 2) / 3) + 1); // the last one is a NUL
    const std::vector<unsigned char> plain(login.begin(), login.end());
    const int size = EVP_EncodeBlock(encoded.data(), plain.data(), static_cast<int>(plain.size()));
    return "Proxy-Authorization: Basic " + std::string(encoded.begin(), encoded.begin() + size) + std::string(head_line_end);
}

} // namespace pi_agent
