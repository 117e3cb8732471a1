// The providers of models, and the policy's network and providers: reads and checks them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pi_agent {

// --- The providers of models whose keys a gate can hold: where they are, what may be asked of them, and how pi names them.

// What may be asked of a provider. A path that ends in "/" stands for all below it, any other for itself alone; a "*" in it is any text
// without "/". The method "WEBSOCKET" is a GET that becomes a WebSocket.
struct ProviderRequest {
    std::string_view method;
    std::string_view path;
};

struct Provider {
    std::string_view name;              // as pi calls it, in models.json, auth.json and the policy
    std::string_view host = {};         // where it is; empty: each customer has a host of its own, which the policy names
    std::string_view host_pattern = {}; // what a host that the policy names has to be like, "*" for one label; empty: none may be named
    std::string_view header;            // that its key goes into, in lower case
    std::string_view prefix = {};       // before the key
    std::string_view base_path = {};    // of the address that pi appends its requests to
    std::vector<ProviderRequest> requests;
    std::vector<std::string_view> variables; // that hold its key, or lead pi past the gate: no session with a gate's key has them
    std::vector<std::pair<std::string_view, std::string_view>> set = {}; // variables that pi needs instead
};

// What stands for a key in a session. pi asks no provider without a key.
constexpr std::string_view key_placeholder = "held-by-the-gate";

const std::vector<Provider> &providers_with_gate();
const Provider *find_provider(std::string_view name); // none: no gate can hold its key

// Providers, by the names that auth.json has for them, whose key pi (0.73 to 0.87) reads from this variable; with a gate or without.
std::vector<std::string> providers_of_key(std::string_view variable);
// The variable of such a provider; the first where it reads several.
std::optional<std::string> key_variable_of_provider(std::string_view provider);

// The host that its requests go to, or what is wrong with the one that the policy names; "" where it names none of its own.
struct ProviderHost {
    std::string host;
    std::optional<std::string> problem;
};
ProviderHost host_of_provider(const Provider &provider, std::string_view of_policy);

// How a key is sent, and what stands for it. One provider has two kinds of keys: a token of `claude setup-token` goes where a login's
// would, and pi has to know, because it then asks otherwise.
struct KeyForm {
    std::string_view header;
    std::string_view prefix;
    std::string placeholder;
};
KeyForm form_of_key(const Provider &provider, std::string_view key);

} // namespace pi_agent
