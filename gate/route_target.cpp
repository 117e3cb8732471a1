// Reading and allowing the targets of requests at the reverse route.
#include "gate/route.hpp"

#include "common/base/text.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

constexpr std::size_t target_limit = 8192;
// RFC 3986, besides letters and digits. Without ";", which some servers take for the beginning of parameters that others do not see.
constexpr std::string_view query_bytes = "?-._~!$&'()*+,=:@%/", path_bytes = query_bytes.substr(1);
constexpr std::string_view bytes_without_need = "-._~"; // of an escape

std::optional<char> unescape(std::string_view three) noexcept
{
    const auto number = three.size() == 3 ? to_number<unsigned char>(three.substr(1), 16) : std::nullopt;
    return number ? std::optional(static_cast<char>(*number)) : std::nullopt;
}

// Of an escape in a path nothing may depend on whether, and how often, a server takes it back.
void require_plain_escapes(std::string_view path)
{
    for (std::size_t at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 1)) {
        const auto byte = unescape(path.substr(at, 3));
        if (!byte) throw RequestRefusal("the path has a % that begins no escape");
        const bool is_control = static_cast<unsigned char>(*byte) < ' ' || *byte == 0x7f;
        if (is_control || std::string_view("/\\%;?#").find(*byte) != std::string_view::npos)
            throw RequestRefusal("the path has an escape that a server could take for a part of its structure");
        if (is_made_of({&*byte, 1}, bytes_without_need)) throw RequestRefusal("the path has an escape of a byte that needs none");
    }
}

void require_plain_segments(std::string_view path)
{
    for (std::size_t begin = 1; begin <= path.size();) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        const std::string_view segment = path.substr(begin, end - begin);
        if (segment == "." || segment == "..") throw RequestRefusal("the path has a segment that leads elsewhere: . or ..");
        if (segment.empty() && end < path.size()) throw RequestRefusal("the path has an empty segment: //");
        begin = end + 1;
    }
}

std::string unescaped_lower(std::string_view text)
{
    std::string result;
    for (std::size_t at = 0; at < text.size(); ++at) {
        char byte = text[at];
        if (byte == '%') {
            const auto meant = unescape(text.substr(at, 3));
            if (!meant) throw RequestRefusal("the query has a % that begins no escape");
            byte = *meant;
            at += 2;
        }
        result += byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
    }
    return result;
}

// With a key of its own, whoever runs in the session would send what it found there to an account of its own. The last ones change what a
// request is. So do those of Google that begin with "$": "$key" is "key", and others say a method, fields of the head, or a body.
bool is_left_out(std::string_view parameter)
{
    constexpr std::string_view names =
        "key api_key api-key apikey access_token oauth_token bearer_token token auth authorization subscription-key x-goog-api-key sig "
        "signature x-amz-security-token x-amz-signature x-amz-credential _method x-http-method-override";
    const std::string name = unescaped_lower(parameter.substr(0, parameter.find('=')));
    return name.starts_with('$') || has_word(names, name);
}

std::string without_credentials(std::string_view query)
{
    std::string kept;
    for (std::size_t begin = 0; begin < query.size();) {
        const std::size_t end = std::min(query.find('&', begin), query.size());
        const std::string_view parameter = query.substr(begin, end - begin);
        if (!parameter.empty() && !is_left_out(parameter)) kept.append(kept.empty() ? "?" : "&").append(parameter);
        begin = end + 1;
    }
    return kept;
}

bool allows(std::string_view listed, std::string_view path) noexcept
{
    if (const std::size_t star = listed.find('*'); star != listed.npos) {
        const std::string_view last = listed.substr(star + 1);
        return path.size() > star + last.size() && path.starts_with(listed.substr(0, star)) && path.ends_with(last) &&
               path.substr(star, path.size() - star - last.size()).find('/') == path.npos;
    }
    return listed.ends_with('/') ? path.size() > listed.size() && path.starts_with(listed) : path == listed;
}

} // namespace

RouteTarget read_route_target(std::string_view target)
{
    if (target.size() > target_limit) throw RequestRefusal("the request's target is too long", 414);
    if (!target.starts_with('/')) throw RequestRefusal("the request's target must be /HOST/PATH");
    const std::size_t question = std::min(target.find('?'), target.size());
    const std::string_view route = target.substr(0, question);
    const std::string_view query = question == target.size() ? std::string_view() : target.substr(question + 1);
    if (!is_made_of(route, path_bytes)) throw RequestRefusal("the path has a byte that no path has");
    if (!is_made_of(query, query_bytes)) throw RequestRefusal("the query has a byte that no query has");
    const std::size_t slash = std::min(route.find('/', 1), route.size());
    RouteTarget read{std::string(route.substr(1, slash - 1)), std::string(route.substr(slash)), {}};
    if (read.host.empty()) throw RequestRefusal("the path does not begin with a host");
    if (defence_is_on("route-plain-paths")) {
        require_plain_escapes(route);
        require_plain_segments(read.path);
    }
    read.query = without_credentials(query);
    // pi 0.87.1 asks some models of OpenRouter with "/v1/messages" after an address that ends in "/v1".
    constexpr std::string_view twice = "/v1/v1/";
    if (const std::size_t at = read.path.find(twice); at != std::string::npos) read.path.erase(at, twice.size() / 2);
    return read;
}

const GateProvider &choose_provider(const std::vector<GateProvider> &providers, std::string_view method, const RouteTarget &target)
{
    const auto provider = std::find_if(providers.begin(), providers.end(), [&](const auto &one) { return one.host == target.host; });
    if (provider == providers.end())
        throw RequestRefusal(403, DenialReason::no_provider, "no provider of the policy has the host that the path begins with");
    bool is_path = false;
    for (std::size_t index = 0; index < provider->paths.size(); ++index) {
        if (!allows(provider->paths[index], target.path)) continue;
        if (provider->methods.at(index) == method) return *provider;
        is_path = true;
    }
    if (!defence_is_on("route-lists")) return *provider;
    if (!is_path) throw RequestRefusal(403, DenialReason::other_path, "the policy's key for this provider is not for this path");
    throw RequestRefusal(403, DenialReason::other_method, "the policy's key for this provider is not for this method at this path");
}

} // namespace pi_agent
