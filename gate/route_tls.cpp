// What OpenSSL is for: TLS towards providers, and the login at a proxy.
#include "gate/gate.hpp"

#include "common/seams/seams.hpp"

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace pi_agent {

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
