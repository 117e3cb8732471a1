// TLS towards the providers, and the beginning of each request.
#include "gate/route.hpp"

#include "gate/route_connection.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

namespace pi_agent {

namespace {

struct Certificates {
    explicit Certificates(const std::string &text) : bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))) {}
    Certificates(const Certificates &) = delete;
    Certificates &operator=(const Certificates &) = delete;
    ~Certificates() { BIO_free(bio); }
    BIO *bio;
};

// All of a text, and no end before its end that would leave some out in silence.
void trust_too(SSL_CTX *tls, const std::string &authorities)
{
    if (authorities.empty()) return;
    const Certificates certificates(authorities);
    std::size_t count = 0;
    while (X509 *one = PEM_read_bio_X509(certificates.bio, nullptr, nullptr, nullptr)) {
        const bool is_added = X509_STORE_add_cert(SSL_CTX_get_cert_store(tls), one) == 1;
        X509_free(one);
        if (!is_added) throw Failure(ExitStatus::configuration, "a certificate that the policy names for the gate cannot be used");
        ++count;
    }
    const bool is_at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    if (count == 0 || !is_at_end)
        throw Failure(ExitStatus::configuration, "the certificates that the policy names for the gate cannot be read; they must be PEM");
}

RouteRefusal unreached(const std::string &host, const char *reason)
{
    const DenialReason *known = find_denial_reason(reason);
    return {502, reason, host + (known == nullptr ? " cannot be reached from this host" : std::string(": ") + known->meaning)};
}

} // namespace

Route::Route(const GateOrder &order, RouteNeeds needs)
    : order_(order), needs_(std::move(needs)), idle_(static_cast<std::chrono::seconds::rep>(order.idle_seconds)),
      tls_(boost::asio::ssl::context::tls_client)
{
    SSL_CTX *tls = tls_.native_handle();
    SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, nullptr);
    // HTTP/1.1 and no other: two ways to say where a request ends are one too many.
    constexpr unsigned char protocols[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
    SSL_CTX_set_alpn_protos(tls, protocols, sizeof protocols);
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(tls, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    tls_.set_default_verify_paths();
    trust_too(tls, order.authorities);
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
