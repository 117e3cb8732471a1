// TLS towards providers: whom it trusts, and for which name.
#pragma once

#include <utility> // for Boost.Asio 1.74, which forgets it

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include <string>

namespace pi_agent {

using TlsStream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;

// TLS 1.2 at least, HTTP/1.1 alone, and certificates that the host trusts, or one of `authorities` (PEM) has signed. Throws Failure when
// these are no certificates.
boost::asio::ssl::context make_tls_context(const std::string &authorities);

// Before the handshake: the peer is asked for this host, and must show a certificate with its name. False without memory.
bool expect_host(TlsStream &stream, const std::string &host);

// After a handshake that failed: why the certificate is not trusted; empty where it failed otherwise.
std::string why_untrusted(TlsStream &stream);

} // namespace pi_agent
