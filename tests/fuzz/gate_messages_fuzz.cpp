// What runner and gate say to each other: only the form in which it is sent, and, of the gate, only what may be shown and counted.
#include "gate/rules.hpp"
#include "runner/wire/gate_messages.hpp"
#include "support/property.hpp"

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

void try_order(std::string_view bytes)
{
    const auto order = unless_refused([&] { return std::get<GateOrder>(decode_one_of<std::variant<GateOrder>>(bytes, "none")); });
    if (!order) return;
    require(encode(*order) == bytes, "an order was taken, and is not what is sent");
    for (const auto &provider : order->providers)
        require(provider.key.find_first_of("\r\n") == std::string::npos, "a key that ends its field");
    try {
        const GateRules rules(order->rules);
        for (const auto &rule : order->rules)
            if (const auto host = read_host(rule.host))
                require(rules.find(*host, rule.port).rule != nullptr, "a rule that does not allow what it names");
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): a rule that is none ends the gate
    }
}

void try_all(std::string_view bytes)
{
    try_order(bytes);
    const auto message = unless_refused([&] { return decode_gate_message(bytes); });
    if (!message) return;
    require(encode(*message) == bytes, "a message was taken, and is not what is sent");
    const auto *denial = std::get_if<GateDenial>(&*message);
    if (denial == nullptr) return;
    for (const auto *text : {&denial->host, &denial->where})
        require_harmless(*text);
    require(static_cast<std::size_t>(denial->reason) < std::size(denial_texts), "a reason that nobody knows");
}

} // namespace

// The bytes as they are; and as fields: a byte below 128 is a number, another the length of the text that follows.
void pi_agent::fuzz::try_input(std::string_view input)
{
    try_all(input);
    Encoder encoder;
    while (!input.empty()) {
        const auto byte = static_cast<unsigned char>(input.front());
        input.remove_prefix(1);
        if (byte < 128) {
            encoder.number(byte);
            continue;
        }
        encoder.text(input.substr(0, byte - 128U));
        input.remove_prefix(std::min<std::size_t>(byte - 128U, input.size()));
    }
    try_all(encoder.bytes());
}
