// Says what keeps this session from a host or a path, by the session's own lists, and by what the kernel lets it do.
#include "runner/inside/canary.hpp"

#include "common/base/files.hpp"
#include "common/decide/explained.hpp"
#include "runner/plan/host_view.hpp"

#include <filesystem>
#include <netinet/in.h>
#include <sys/socket.h>

namespace pi_agent {

namespace {

constexpr std::size_t list_limit = 8UL * 1024 * 1024; // bytes: three thousand rules with their places

std::optional<std::string> read_list(const std::string &path)
{
    const UniqueFd file = open_if_there("opening " + path, FdRef(AT_FDCWD), path, O_RDONLY | O_CLOEXEC);
    return file ? std::optional(read_whole(file, list_limit, path)) : std::nullopt;
}

[[noreturn]] void refuse(std::string_view line)
{
    throw Failure(ExitStatus::internal, "the session's list of hosts has a line of an unknown form: " + escape_for_display(line));
}

std::string take_word(std::string_view &rest, std::string_view line)
{
    const auto space = rest.find(' ');
    if (space == std::string_view::npos) refuse(line);
    std::string word(rest.substr(0, space));
    rest.remove_prefix(space + 1);
    return word;
}

HostRule take_rule(std::string_view &rest, std::string_view line)
{
    const std::string text = take_word(rest, line);
    auto parsed = parse_host_rule(text);
    auto *rule = std::get_if<HostRule>(&parsed);
    if (rule == nullptr || host_and_port(rule->host, rule->port) != text) refuse(line);
    rule->where = {std::string(rest)};
    return std::move(*rule);
}

// The last one of that host and port.
std::string denial_of(const std::string &place, std::string_view denials)
{
    std::string_view told;
    for (const auto line : split(denials, '\n'))
        if (line.starts_with(place + ": ")) told = line;
    return told.empty() ? "" : "  seen in this session: " + escape_for_display(told) + "\n";
}

// Whether somebody listens where the session's proxy is.
bool gate_answers()
{
    const UniqueFd channel = UniqueFd::adopt(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in proxy{};
    proxy.sin_family = AF_INET;
    proxy.sin_port = htons(gate_proxy_port);
    proxy.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return !channel || connect(channel.get(), reinterpret_cast<const sockaddr *>(&proxy), sizeof proxy) == 0; // NOLINT(*-reinterpret-cast)
}

WhyAnswer why_host(const std::string &question, const HostRule &asked, const std::string &root)
{
    const auto hosts = find_session_hosts(root);
    if (!hosts) return {true, escape_for_display(question) + ": this session has no list of hosts; /AGENTS.md says what its network is\n"};
    const auto access = host_access(hosts->network, hosts->providers, asked);
    const bool is_free = access.reach == Reach::yes;
    const std::string where = to_string(access.where);
    std::string text = asked.host + " port " + std::to_string(asked.port) + (is_free ? ": allowed: " : ": denied: ") + access.rule +
                       (where.empty() ? "" : " (" + where + ")") + "\n";
    if (is_free && root == "/" && !gate_answers())
        return {false, text + "  but the gate of this session has ended: only a new session connects\n"};
    if (!is_free)
        text += "  the administrator can add it to " + access.key + " in the policy of pi-agent\n" +
                denial_of(host_and_port(asked.host, asked.port), read_list(root + denials_file).value_or(""));
    return {is_free, text};
}

// Only outside are the policy and its reader: the agent can tell its user what to run. A name that a shell would read as more is left out.
std::string who_knows(const std::string &path)
{
    return "  which rule of the policy that is, the user sees outside with: pi-agentctl why " +
           (is_made_of(path, "_./@%+,=-") ? path : "PATH") + "\n";
}

WhyAnswer why_path(const std::string &asked)
{
    std::error_code unknown;
    const std::string path = std::filesystem::absolute(asked, unknown).string();
    const std::string real = std::filesystem::weakly_canonical(path, unknown).string();
    const PathAccess access = look_at_path(real.empty() ? path : real);
    const std::string shown = escape_for_display(asked);
    const std::string mount = escape_for_display(access.mount);
    std::string text;
    if (!access.exists || !access.leads_to.empty()) {
        const std::string what = access.leads_to.empty() ? "not here" : "leads to " + escape_for_display(access.leads_to) + ", not here";
        text = shown + ": " + what +
               ". Either it does not exist, or the sandbox does not show it: it shows the project, a home and the programs of the host\n";
        if (access.read_only) text += "  " + mount + " is read-only in this session, so it cannot be made either\n";
        return {false, text + who_knows(path)};
    }
    if (!access.read) text += shown + ": cannot be read: its mode is not for this account, or the administrator keeps it from sessions\n";
    if (access.read_only)
        text += shown + ": cannot be changed: " + mount + " is mounted read-only in this session\n";
    else if (!access.write)
        text += shown + ": cannot be changed: its mode is not for this account\n";
    return text.empty() ? WhyAnswer{true, shown + ": can be read and changed\n"} : WhyAnswer{false, text + who_knows(path)};
}

} // namespace

WhyAnswer why(const std::string &asked, const std::string &root)
{
    std::error_code unknown;
    const bool is_url = asked.find("://") != std::string::npos;
    const bool is_path = asked.find('/') != std::string::npos || asked == "." || asked == ".." || std::filesystem::exists(asked, unknown);
    const auto host = is_path && !is_url ? std::nullopt : parse_host_question(asked);
    if (!host && is_url) return {false, escape_for_display(asked) + ": is not the name of a host\n"};
    if (!host) return why_path(asked);
    WhyAnswer answer = why_host(asked, *host, root);
    answer.text += hint_of_file(asked, *host);
    return answer;
}

std::optional<SessionHosts> find_session_hosts(const std::string &root)
{
    const auto list = read_list(root + network_file);
    return list ? std::optional(decode_session_hosts(*list)) : std::nullopt;
}

SessionHosts decode_session_hosts(std::string_view text)
{
    SessionHosts hosts{{NetworkMode::hosts, {}, {}}};
    for (const auto line : split(text, '\n')) {
        std::string_view rest = line;
        const std::string kind = take_word(rest, line);
        if (kind == "network")
            hosts.network.where = {std::string(rest)};
        else if (kind == "host")
            hosts.network.hosts.push_back(take_rule(rest, line));
        else if (kind == "grant")
            hosts.network.may_grant.push_back(take_rule(rest, line));
        else if (kind == "via")
            hosts.network.via = take_rule(rest, line);
        else if (kind == "direct")
            hosts.network.direct.push_back(take_rule(rest, line));
        else if (kind == "provider") {
            const std::string name = take_word(rest, line);
            const std::string host = take_word(rest, line);
            hosts.providers.push_back({name, {}, host, {std::string(rest)}});
        } else
            refuse(line);
    }
    return hosts;
}

} // namespace pi_agent
