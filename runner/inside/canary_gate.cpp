// The canary's questions about a network of hosts: that nothing but the gate answers, and that it denies what no policy names.
#include "runner/inside/canary.hpp"

#include "runner/plan/gate_plan.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <filesystem>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int patience_seconds = 2;
// Names and addresses that nobody has (RFC 2606, 5737, 3849).
constexpr const char *nobodys_name = "canary.invalid";
constexpr const char *nobodys_address = "192.0.2.1";
constexpr const char *nobodys_v6 = "2001:db8::1";

// Connected, or -1 (errno).
int connect_to(const char *address, std::uint16_t port, int type)
{
    sockaddr_in v4{};
    sockaddr_in6 v6{};
    v4.sin_family = AF_INET;
    v6.sin6_family = AF_INET6;
    v4.sin_port = v6.sin6_port = htons(port);
    const bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
    if (!is_v4) inet_pton(AF_INET6, address, &v6.sin6_addr);
    const int made = socket(is_v4 ? AF_INET : AF_INET6, type | SOCK_CLOEXEC, 0);
    if (made < 0) return -1;
    const timeval patience{patience_seconds, 0};
    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): as connect(2) wants it
    const int result = is_v4 ? connect(made, reinterpret_cast<const sockaddr *>(&v4), sizeof v4)
                             : connect(made, reinterpret_cast<const sockaddr *>(&v6), sizeof v6);
    // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
    if (result == 0) return made;
    const int error = errno;
    close(made);
    errno = error;
    return -1;
}

// What comes back, one read of it; or the word for what went wrong.
std::string ask(const char *address, std::uint16_t port, int type, const std::string &question)
{
    const int made = connect_to(address, port, type);
    if (made < 0) return word_for(errno);
    std::array<char, 256> bytes{};
    ssize_t length = send(made, question.data(), question.size(), MSG_NOSIGNAL);
    if (length >= 0) length = recv(made, bytes.data(), bytes.size(), 0);
    std::string answer = length < 0 ? word_for(errno) : std::string(bytes.data(), static_cast<std::size_t>(length));
    close(made);
    return answer;
}

// An answer of a server, as opposed to an end, a refusal, or the gate's denial.
bool is_answered(const std::string &answer)
{
    return answer.starts_with("HTTP/1.1 2") || answer.starts_with("HTTP/1.1 3") || answer.starts_with("SSH-");
}

std::string devices()
{
    std::vector<std::string> names;
    std::error_code problem;
    for (std::filesystem::directory_iterator entry("/sys/class/net", problem), end; !problem && entry != end; entry.increment(problem))
        names.push_back(entry->path().filename());
    std::sort(names.begin(), names.end());
    std::string text;
    for (const auto &name : names)
        text += (text.empty() ? "" : ", ") + name;
    return text;
}

// An order to change the routes, which needs a right in the namespace; the kernel checks that first (rtnetlink(7)).
int try_route()
{
    const int made = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (made < 0) return errno;
    struct Order {
        nlmsghdr header;
        rtmsg route;
    } order{};
    order.header = {sizeof order, RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK, 1, 0};
    order.route.rtm_family = AF_INET;
    struct Answer {
        nlmsghdr header;
        nlmsgerr result;
    } answer{};
    const timeval patience{patience_seconds, 0};
    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const bool is_answered = send(made, &order, sizeof order, 0) > 0 && recv(made, &answer, sizeof answer, 0) > 0;
    const int error = is_answered ? -answer.result.error : errno;
    close(made);
    return error;
}

} // namespace

void look_at_gate(std::vector<CanaryFinding> &findings)
{
    if (const std::string seen = devices(); !seen.empty()) expect(findings, "network devices", "lo", seen); // a view without /sys/class
    const std::string web = "GET / HTTP/1.1\r\nHost: " + std::string(nobodys_name) + "\r\n\r\n";
    for (const char *address : {nobodys_address, nobodys_v6})
        for (const std::uint16_t port : {std::uint16_t{80}, std::uint16_t{443}, std::uint16_t{22}, std::uint16_t{8443}}) {
            const std::string answer = ask(address, port, SOCK_STREAM, web);
            findings.push_back({"a server at " + std::string(address) + " port " + std::to_string(port), "no answer",
                                is_answered(answer) ? "an answer" : "no answer", !is_answered(answer)});
        }
    const std::string datagram = ask(nobodys_address, 53, SOCK_DGRAM, std::string(12, '\0'));
    findings.push_back({"a datagram to a name server outside", "refused", datagram, datagram == "ECONNREFUSED" || datagram == "EPERM"});
    const std::string tunnel = ask(loopback_v4, gate_proxy_port, SOCK_STREAM,
                                   "CONNECT " + std::string(nobodys_name) + ":443 HTTP/1.1\r\nHost: " + nobodys_name + ":443\r\n\r\n");
    expect(findings, "the gate about a host that no policy names", "403",
           tunnel.starts_with("HTTP/1.1 403") ? "403" : tunnel.substr(0, 40));
    const int route = try_route();
    findings.push_back({"a route of its own", "refused", route == 0 ? "done" : "refused (" + word_for(route) + ")",
                        route == EPERM || route == EACCES || route == EPROTONOSUPPORT || route == EAFNOSUPPORT});
}

} // namespace pi_agent
