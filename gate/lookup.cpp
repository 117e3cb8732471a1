// Asking the host's resolver in threads.
#include "gate/lookup.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace pi_agent {

namespace asio = boost::asio;

namespace {

constexpr std::size_t thread_count = 4;
constexpr std::size_t waiting_limit = 64; // names; a session that asks for more at once waits for none of them
constexpr std::size_t known_limit = 256;
constexpr auto found_is_known = std::chrono::seconds(20);
constexpr auto nothing_is_known = std::chrono::seconds(2);

std::optional<Address> read_socket_address(const sockaddr &address)
{
    if (address.sa_family == AF_INET) {
        const auto &v4 =
            reinterpret_cast<const sockaddr_in &>(address); // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast): sockaddr(3type)
        return asio::ip::address_v4(ntohl(v4.sin_addr.s_addr));
    }
    if (address.sa_family != AF_INET6) return std::nullopt;
    const auto &v6 = reinterpret_cast<const sockaddr_in6 &>(address); // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
    asio::ip::address_v6::bytes_type bytes{};
    std::copy(std::begin(v6.sin6_addr.s6_addr), std::end(v6.sin6_addr.s6_addr), bytes.begin());
    return to_host(asio::ip::address_v6(bytes, v6.sin6_scope_id)).address;
}

Lookup::Answer ask(const std::string &name)
{
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_ADDRCONFIG;
    addrinfo *list = nullptr;
    const int problem = getaddrinfo(name.c_str(), nullptr, &wanted, &list);
    if (problem != 0) return {{}, problem == EAI_NONAME || problem == EAI_NODATA || problem == EAI_ADDRFAMILY};
    const std::unique_ptr<addrinfo, void (*)(addrinfo *)> owner(list, freeaddrinfo);
    std::vector<Address> addresses;
    for (const addrinfo *one = list; one != nullptr; one = one->ai_next) {
        const auto address = read_socket_address(*one->ai_addr);
        if (address && std::find(addresses.begin(), addresses.end(), *address) == addresses.end()) addresses.push_back(*address);
    }
    return {std::move(addresses)};
}

} // namespace

Lookup::Lookup(asio::io_context &loop) : loop_(loop), threads_(thread_count) {}

void Lookup::find(const std::string &name, Found found)
{
    const auto now = std::chrono::steady_clock::now();
    if (const auto known = known_.find(name); known != known_.end() && known->second.until > now) {
        asio::post(loop_, [found = std::move(found), answer = known->second.answer] { found(answer); });
        return;
    }
    const bool is_asked = waiting_.contains(name);
    if (!is_asked && waiting_.size() >= waiting_limit) {
        asio::post(loop_, [found = std::move(found)] { found({{}, false}); });
        return;
    }
    waiting_[name].push_back(std::move(found));
    if (is_asked) return;
    asio::post(threads_, [this, name] {
        Answer found_there = ask(name);
        asio::post(loop_, [this, name, found_there = std::move(found_there)]() mutable { answer(name, std::move(found_there)); });
    });
}

void Lookup::answer(const std::string &name, Answer answer)
{
    const auto now = std::chrono::steady_clock::now();
    if (known_.size() >= known_limit) std::erase_if(known_, [&](const auto &one) { return one.second.until <= now; });
    if (known_.size() >= known_limit) known_.clear();
    const auto answers = std::move(waiting_[name]);
    waiting_.erase(name);
    for (const auto &found : answers)
        found(answer);
    const auto until = now + (answer.addresses.empty() ? nothing_is_known : found_is_known);
    known_[name] = {std::move(answer), until};
}

} // namespace pi_agent
