// Asking the kernel for routes (rtnetlink(7), RTM_GETROUTE).
#include "gate/host_routes.hpp"

#include "common/base/error.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

namespace pi_agent {

namespace {

constexpr unsigned the_route_itself = RTM_F_FIB_MATCH; // and not what it comes to for one address
// Of a network. A route without a gateway for more addresses is one to everywhere, or to a half of it.
constexpr unsigned fewest_bits_v4 = 8, fewest_bits_v6 = 16;

} // namespace

HostRoutes::HostRoutes() : netlink_(UniqueFd::adopt(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)))
{
    if (!netlink_) throw_errno("opening a socket for the host's routes");
}

Place HostRoutes::place_of(const Address &address)
{
    const Answer found = ask(address, 0);
    if (found.problem == ENETUNREACH || found.problem == EHOSTUNREACH) return Place::away;
    if (found.problem != 0 || found.type != RTN_UNICAST) return Place::here; // its own, or one of all hosts
    if (found.has_gateway) return Place::away;
    const Answer route = ask(address, the_route_itself);
    if (route.problem != 0) return Place::here;
    return route.bits < (address.is_v6() ? fewest_bits_v6 : fewest_bits_v4) ? Place::away : Place::near;
}

HostRoutes::Answer HostRoutes::ask(const Address &address, unsigned flags)
{
    struct Question {
        nlmsghdr header;
        rtmsg route;
        rtattr about_address;
        std::array<unsigned char, 16> address;
    } question{};
    const auto put = [&](const auto &bytes) {
        std::memcpy(question.address.data(), bytes.data(), bytes.size());
        return bytes.size();
    };
    const std::size_t size = address.is_v6() ? put(address.to_v6().to_bytes()) : put(address.to_v4().to_bytes());
    question.header = {static_cast<std::uint32_t>(offsetof(Question, address) + size), RTM_GETROUTE, NLM_F_REQUEST, ++question_, 0};
    question.route.rtm_family = address.is_v6() ? AF_INET6 : AF_INET;
    question.route.rtm_dst_len = static_cast<unsigned char>(size * 8);
    question.route.rtm_flags = flags;
    question.about_address = {static_cast<unsigned short>(RTA_LENGTH(size)), RTA_DST};
    const auto length = static_cast<ssize_t>(question.header.nlmsg_len);
    if (send(netlink_.get(), &question, question.header.nlmsg_len, MSG_DONTWAIT) != length) return {errno};
    return receive();
}

// The kernel has answered when the question is sent.
HostRoutes::Answer HostRoutes::receive()
{
    std::array<char, 8192> bytes{};
    for (;;) {
        const ssize_t length = recv(netlink_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (length < 0 && errno == EINTR) continue;
        if (length < 0) return {errno};
        const auto size = static_cast<std::size_t>(length);
        nlmsghdr header{};
        std::memcpy(&header, bytes.data(), sizeof header);
        if (size < NLMSG_LENGTH(sizeof(rtmsg)) || header.nlmsg_seq != question_) continue; // of an earlier question
        Answer answer;
        if (header.nlmsg_type != RTM_NEWROUTE) {
            nlmsgerr error{};
            std::memcpy(&error, bytes.data() + NLMSG_HDRLEN, sizeof error.error);
            answer.problem = error.error < 0 ? -error.error : EPROTO;
            return answer;
        }
        rtmsg route{};
        std::memcpy(&route, bytes.data() + NLMSG_HDRLEN, sizeof route);
        answer.type = route.rtm_type;
        answer.bits = route.rtm_dst_len;
        rtattr attribute{};
        for (std::size_t at = NLMSG_LENGTH(sizeof route); at + sizeof attribute <= size; at += RTA_ALIGN(attribute.rta_len)) {
            std::memcpy(&attribute, bytes.data() + at, sizeof attribute);
            if (attribute.rta_len < sizeof attribute) return {EPROTO};
            answer.has_gateway = answer.has_gateway || attribute.rta_type == RTA_GATEWAY || attribute.rta_type == RTA_VIA;
        }
        return answer;
    }
}

} // namespace pi_agent
