// The proxy by which this host reaches the Internet, where an administrator has named it already: for the policy that init writes.
#include "admin/apply/apply.hpp"
#include "admin/programs/program.hpp"
#include "admin/text/terminal.hpp"
#include "common/host/beneath.hpp"

#include <fmt/format.h>

namespace pi_agent {

namespace {

constexpr const char *environment_file = "/etc/environment"; // pam_env(8)
constexpr std::size_t environment_limit = 64UL * 1024;
constexpr int apt_patience_seconds = 10;
constexpr const char *proxy_variables[] = {"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"};

// "%40" is "@" in the login of a URL. As it is where no two digits follow.
std::string without_percents(const std::string &text)
{
    std::string plain;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const auto digits = std::string_view(text).substr(at + 1, 2);
        unsigned value = 0;
        const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
        const bool is_encoded = text[at] == '%' && digits.size() == 2 && problem == std::errc() && end == digits.data() + 2;
        plain += is_encoded ? static_cast<char>(value) : text[at];
        at += is_encoded ? 2 : 0;
    }
    return plain;
}

// NAME=VALUE, as pam_env reads it: "export" may stand before it, and quotes around the value.
std::optional<std::string> value_in(const std::string &text, const std::string &name)
{
    std::optional<std::string> found;
    for (auto line : split(text, '\n')) {
        if (line.starts_with("export ")) line.remove_prefix(7);
        if (!line.starts_with(name + "=")) continue;
        line.remove_prefix(name.size() + 1);
        const bool is_quoted = line.size() >= 2 && (line.front() == '"' || line.front() == '\'') && line.back() == line.front();
        found = is_quoted ? line.substr(1, line.size() - 2) : line;
    }
    return found;
}

std::optional<HostProxy> find_in(const Variable &variable, const std::string &where)
{
    for (const char *name : proxy_variables)
        if (const auto text = variable(name))
            if (auto proxy = proxy_of_text(*text, fmt::format("{} in {}", name, where))) return proxy;
    return std::nullopt;
}

std::optional<HostProxy> find_of_apt()
{
    if (!has_program("apt-config")) return std::nullopt;
    for (const char *name : {"Acquire::https::Proxy", "Acquire::http::Proxy"}) {
        const auto said = run_program_apart({"apt-config", "dump", "--format=%v%n", name}, apt_patience_seconds);
        const auto line = said.output.substr(0, said.output.find('\n'));
        if (auto proxy = said.status == 0 ? proxy_of_text(line, fmt::format("{} of apt", name)) : std::nullopt) return proxy;
    }
    return std::nullopt;
}

} // namespace

std::string login_file_of_proxy()
{
    return parent_of(policy_path) + "/proxy.login";
}

std::optional<HostProxy> proxy_of_text(const std::string &text, const std::string &where)
{
    constexpr std::string_view scheme = "http://";
    if (!text.starts_with(scheme) && text.find("://") != text.npos) return std::nullopt; // TLS to the proxy itself, or SOCKS
    std::string place = text.starts_with(scheme) ? text.substr(scheme.size()) : text;
    place.resize(std::min(place.size(), place.find('/')));
    const auto at = place.rfind('@');
    HostProxy proxy{{}, at == place.npos ? "" : without_percents(place.substr(0, at)), where};
    const auto parsed = parse_proxy(std::string(scheme) + (at == place.npos ? place : place.substr(at + 1)));
    const auto *rule = std::get_if<HostRule>(&parsed);
    if (rule == nullptr) return std::nullopt;
    proxy.url = std::string(scheme) + host_and_port(rule->host, rule->port);
    return proxy;
}

std::optional<HostProxy> find_host_proxy(const Variable &own)
{
    if (auto proxy = find_in(own, "root's environment")) return proxy;
    try {
        const auto text = read_trusted_file(environment_file, environment_limit, "file of variables");
        if (auto proxy = find_in([&](const std::string &name) { return value_in(text, name); }, environment_file)) return proxy;
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): it is missing, or not only root's
    }
    return find_of_apt();
}

} // namespace pi_agent
