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

std::vector<Address> ask(const std::string &name)
{
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_ADDRCONFIG;
    addrinfo *list = nullptr;
    if (getaddrinfo(name.c_str(), nullptr, &wanted, &list) != 0) return {};
    const std::unique_ptr<addrinfo, void (*)(addrinfo *)> owner(list, freeaddrinfo);
    std::vector<Address> addresses;
    for (const addrinfo *one = list; one != nullptr; one = one->ai_next) {
        const auto address = read_socket_address(*one->ai_addr);
        if (address && std::find(addresses.begin(), addresses.end(), *address) == addresses.end()) addresses.push_back(*address);
    }
    return addresses;
}

} // namespace

Lookup::Lookup(asio::io_context &loop) : loop_(loop), threads_(thread_count) {}

void Lookup::find(const std::string &name, Found found)
{
    const auto now = std::chrono::steady_clock::now();
    if (const auto known = known_.find(name); known != known_.end() && known->second.until > now) {
        asio::post(loop_, [found = std::move(found), addresses = known->second.addresses] { found(addresses); });
        return;
    }
    const bool is_asked = waiting_.contains(name);
    if (!is_asked && waiting_.size() >= waiting_limit) {
        asio::post(loop_, [found = std::move(found)] { found({}); });
        return;
    }
    waiting_[name].push_back(std::move(found));
    if (is_asked) return;
    asio::post(threads_, [this, name] {
        std::vector<Address> addresses = ask(name);
        asio::post(loop_, [this, name, addresses = std::move(addresses)]() mutable { answer(name, std::move(addresses)); });
    });
}

void Lookup::answer(const std::string &name, std::vector<Address> addresses)
{
    const auto now = std::chrono::steady_clock::now();
    if (known_.size() >= known_limit) std::erase_if(known_, [&](const auto &one) { return one.second.until <= now; });
    if (known_.size() >= known_limit) known_.clear();
    const auto answers = std::move(waiting_[name]);
    waiting_.erase(name);
    for (const auto &found : answers)
        found(addresses);
    const auto until = now + (addresses.empty() ? nothing_is_known : found_is_known);
    known_[name] = {std::move(addresses), until};
}

} // namespace pi_agent
