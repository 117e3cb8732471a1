// Reading hosts strictly, into one form.
#include "gate/host_text.hpp"

#include "common/base/text.hpp"
#include "common/policy/host_rule.hpp"

namespace pi_agent {

namespace {

constexpr bool is_digit(char one) noexcept
{
    return one >= '0' && one <= '9';
}

} // namespace

Host to_host(const Address &address)
{
    namespace ip = boost::asio::ip;
    if (!address.is_v6()) return {address.to_string(), address};
    const ip::address_v6 six = address.to_v6();
    // Without its zone, which a socket of the session has for a link-local address: no rule names one, and no message takes its "%".
    const Address one = six.is_v4_mapped() ? Address(ip::make_address_v4(ip::v4_mapped, six)) : Address(ip::address_v6(six.to_bytes()));
    return {one.to_string(), one};
}

std::optional<Host> read_host(std::string_view text)
{
    const bool has_brackets = text.starts_with('[') && text.ends_with(']') && text.find(':') != text.npos;
    const auto host = read_one_host(has_brackets ? text.substr(1, text.size() - 2) : text);
    if (!host) return std::nullopt;
    boost::system::error_code no_address;
    const Address address = boost::asio::ip::make_address(*host, no_address);
    return Host{*host, no_address ? std::nullopt : std::optional(address)};
}

std::optional<Target> read_target(std::string_view text, std::uint16_t usual_port)
{
    const std::size_t colon = text.rfind(':');
    const bool has_port = colon != text.npos && text.find(']', colon) == text.npos;
    if (has_port && text.front() != '[' && text.find(':') != colon) return std::nullopt; // an address of IPv6 without brackets
    const auto host = read_host(has_port ? text.substr(0, colon) : text);
    const auto digits = has_port ? text.substr(colon + 1) : std::string_view();
    const auto port = has_port ? to_number<std::uint16_t>(digits) : std::optional(usual_port);
    if (!host || !port || *port == 0 || (has_port && (digits.size() > 5 || !is_digit(digits.front())))) return std::nullopt;
    return Target{*host, *port};
}

bool is_loopback(const Host &host) noexcept
{
    return host.address ? host.address->is_loopback() : host.text == "localhost" || host.text.ends_with(".localhost");
}

} // namespace pi_agent
