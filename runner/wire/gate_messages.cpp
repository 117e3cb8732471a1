// What the runner tells the gate of a session, and what the gate says back.
#include "runner/wire/gate_messages.hpp"

#include <cstring>

namespace pi_agent {

namespace {

constexpr std::string_view lower_and_digits = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view other_bytes = "-._:/"; // not by strchr(3), which finds the end of a text as well

// One buffer of this size holds all, so that nothing is moved and left behind.
std::size_t size_of(const GateOrder &order)
{
    std::size_t size = 4096 + order.session.size() + order.authorities.size() + order.login.size();
    for (const auto *rules : {&order.rules, &order.via, &order.direct})
        for (const auto &rule : *rules)
            size += 64 + rule.host.size() + rule.where.size();
    for (const auto &provider : order.providers) {
        size += 256 + provider.host.size() + provider.header.size() + provider.prefix.size() + provider.key.size() + provider.where.size();
        for (const auto *list : {&provider.methods, &provider.paths})
            for (const auto &text : *list)
                size += 8 + text.size();
    }
    return size;
}

} // namespace

bool is_printable(std::string_view text) noexcept
{
    return std::all_of(text.begin(), text.end(), [](char one) { return one >= ' ' && one <= '~'; });
}

bool is_host_alphabet(std::string_view text) noexcept
{
    return std::all_of(text.begin(), text.end(), [](char one) {
        return lower_and_digits.find(one) != std::string_view::npos || other_bytes.find(one) != std::string_view::npos;
    });
}

void forget_keys(GateOrder &order) noexcept
{
    for (auto &provider : order.providers) {
        explicit_bzero(provider.key.data(), provider.key.size());
        provider.key.clear();
    }
    explicit_bzero(order.login.data(), order.login.size());
    order.login.clear();
}

void send_gate_order(FdRef channel, const GateOrder &order, Deadline deadline)
{
    struct Forgetful {
        Forgetful() = default;
        Forgetful(const Forgetful &) = delete;
        Forgetful &operator=(const Forgetful &) = delete;
        ~Forgetful() { encoder.forget(); }
        Encoder encoder{};
    } order_bytes;
    order_bytes.encoder.reserve(size_of(order));
    order_bytes.encoder(GateOrder::type, order);
    send_record(channel, order_bytes.encoder.bytes(), {}, deadline);
}

void send_gate_listener(FdRef channel, const GateListener &about, FdRef socket, Deadline deadline)
{
    send_packet(channel, encode(about), {socket.get()}, deadline);
}

const DenialText &text_of(DenialReason reason) noexcept
{
    return denial_texts[static_cast<std::size_t>(reason)]; // NOLINT(cppcoreguidelines-pro-bounds-constant-array-index)
}

bool GateDenial::is_harmless(const GateDenial &denial) noexcept
{
    const bool is_address = denial.address.find_first_not_of("0123456789abcdef.:") == std::string::npos; // and no words for people
    return is_host_alphabet(denial.host) && is_printable(denial.where) && is_address &&
           (denial.address.empty() || denial.reason == DenialReason::private_address) && denial.count != 0;
}

std::string meaning_of(const GateDenial &denial)
{
    return text_of(denial.reason).meaning + (denial.address.empty() ? "" : ": " + denial.address);
}

GateMessage decode_gate_message(std::string_view bytes)
{
    return decode_one_of<GateMessage>(bytes, "the gate sent an unknown message");
}

} // namespace pi_agent
