// Reading hosts strictly, into one form.
#include "gate/host_text.hpp"

#include "common/base/text.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

constexpr std::size_t name_limit = 253;
constexpr std::size_t label_limit = 63;

constexpr bool is_digit(char one) noexcept
{
    return one >= '0' && one <= '9';
}

bool is_label(std::string_view label) noexcept
{
    return !label.empty() && label.size() <= label_limit && std::all_of(label.begin(), label.end(), [](char one) {
        return (one >= 'a' && one <= 'z') || is_digit(one) || one == '-' || one == '_';
    });
}

// Of a name: inet_aton(3), which getaddrinfo(3) asks first, takes it for a number.
bool ends_in_number(std::string_view name) noexcept
{
    const std::string_view last = name.substr(name.rfind('.') + 1); // npos + 1 is 0
    return std::all_of(last.begin(), last.end(), is_digit) ||
           (last.starts_with("0x") && last.find_first_not_of("0123456789abcdef", 2) == last.npos);
}

std::string in_lower_case(std::string_view text)
{
    std::string lower(text);
    for (char &one : lower)
        if (one >= 'A' && one <= 'Z') one = static_cast<char>(one - 'A' + 'a');
    return lower;
}

std::optional<Host> read_address(std::string_view text)
{
    boost::system::error_code problem;
    if (text.find('%') != text.npos || text.size() > 45) return std::nullopt;
    const Address address = boost::asio::ip::make_address(std::string(text), problem);
    return problem ? std::nullopt : std::optional(to_host(address));
}

} // namespace

Host to_host(const Address &address)
{
    const bool is_mapped = address.is_v6() && address.to_v6().is_v4_mapped();
    const Address one = is_mapped ? Address(boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6())) : address;
    return {one.to_string(), one};
}

std::optional<Host> read_host(std::string_view text)
{
    const bool has_brackets = text.size() > 2 && text.front() == '[' && text.back() == ']';
    if (has_brackets || text.find(':') != text.npos) {
        const auto host = read_address(has_brackets ? text.substr(1, text.size() - 2) : text);
        return !has_brackets || text.find(':') != text.npos ? host : std::nullopt;
    }
    std::string name = in_lower_case(text);
    if (name.ends_with('.')) name.pop_back();
    if (name.empty() || name.size() > name_limit || name.back() == '.') return std::nullopt;
    if (ends_in_number(name)) return name.size() == text.size() ? read_address(name) : std::nullopt;
    const auto labels = split(name, '.');
    return std::all_of(labels.begin(), labels.end(), is_label) ? std::optional(Host{std::move(name), {}}) : std::nullopt;
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
