// The lists of fields that the reverse route passes on, and does not.
#include "gate/route_fields.hpp"

#include "common/seams/seams.hpp"
#include "gate/head_text.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace pi_agent {

namespace {

char lower(char byte) noexcept
{
    return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
}

bool is_one_of(std::string_view name, const auto &names) noexcept
{
    return std::any_of(names.begin(), names.end(), [&](std::string_view one) { return is_same(name, one); });
}

// As servers see it that hand fields to programs as variables: x_api_key is x-api-key there.
std::string as_servers_may_see(std::string_view name)
{
    std::string seen;
    for (const char byte : name)
        seen += byte == '_' ? '-' : lower(byte);
    return seen;
}

} // namespace

bool is_field(std::string_view line, std::string_view name) noexcept
{
    return line.size() > name.size() && line[name.size()] == ':' && is_same(line.substr(0, name.size()), name);
}

bool is_for_next_station(std::string_view name, std::string_view named) noexcept
{
    // RFC 9110, 7.6.1; host, length and coding are written anew.
    constexpr std::array<std::string_view, 12> names = {"connection", "keep-alive", "proxy-connection",  "proxy-authenticate",
                                                        "te",         "trailer",    "transfer-encoding", "upgrade",
                                                        "host",       "expect",     "content-length",    "http2-settings"};
    return is_one_of(name, names) || has_listed_word(named, name);
}

bool is_credential(std::string_view name, std::string_view value)
{
    constexpr std::array<std::string_view, 21> names = {"authorization",
                                                        "proxy-authorization",
                                                        "cookie",
                                                        "cookie2",
                                                        "x-api-key",
                                                        "x-goog-api-key",
                                                        "api-key",
                                                        "apikey",
                                                        "x-auth-token",
                                                        "x-access-token",
                                                        "x-amz-security-token",
                                                        "x-amz-date",
                                                        "ocp-apim-subscription-key",
                                                        "x-http-method",
                                                        "x-http-method-override",
                                                        "x-method-override",
                                                        "x-original-url",
                                                        "x-rewrite-url",
                                                        "forwarded",
                                                        "via",
                                                        "x-real-ip"};
    if (!defence_is_on("route-credentials")) return false;
    const std::string seen = as_servers_may_see(name);
    // A WebSocket's client that can set no field puts its key among the protocols.
    if (seen == "sec-websocket-protocol" && as_servers_may_see(value).find("api-key") != std::string::npos) return true;
    return is_one_of(seen, names) || seen.starts_with("x-forwarded-") || seen.starts_with("x-goog-iam-");
}

bool is_of_no_use_inside(std::string_view name) noexcept
{
    constexpr std::array<std::string_view, 4> names = {"set-cookie", "set-cookie2", "alt-svc", "strict-transport-security"};
    return is_one_of(name, names);
}

} // namespace pi_agent
