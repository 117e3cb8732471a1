// Heads of requests at the gate: what is read is read in one way, and what is written anew is one request for one host.
#include "gate/rules.hpp"
#include "support/property.hpp"

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

template <typename Act>
auto unless_malformed(const Act &act) -> std::optional<decltype(act())>
{
    try {
        return act();
    } catch (const RequestRefusal &problem) {
        require_harmless(problem.what());
        return std::nullopt;
    }
}

void require_sound(const Target &target)
{
    require(target.port != 0, "a target without a port");
    const auto again = read_host(target.host.text);
    require(again && again->text == target.host.text && again->address == target.host.address,
            "a host that is read otherwise when it is read again");
}

void try_plain(const RequestHead &head, bool at_proxy)
{
    const auto request = unless_malformed([&] { return read_plain_request(head, at_proxy, 80); });
    if (!request) return;
    require_sound(request->target);
    if (request->is_encrypted) return;
    const std::string written = write_plain_request(head, *request);
    if (std::distance(head.begin(), head.end()) > 90 || written.size() > request_head_limit)
        return; // what is added goes beyond a limit for sessions
    require(find_head(written, request_head_limit) == written.size(), "what is written is more than one head");
    const RequestHead again = read_request_head(written);
    const PlainRequest same = read_plain_request(again, false, 80);
    require(same.target.host.text == request->target.host.text && same.target.port == request->target.port,
            "what is written goes to another host");
    require(same.path == request->path && same.body == request->body && again.method_string() == head.method_string(),
            "what is written is another request");
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    const auto size = unless_malformed([&] { return find_head(input, request_head_limit); });
    if (size && *size != 0) {
        require(*size <= input.size() && *size <= request_head_limit, "a head that is longer than what came");
        const auto head = unless_malformed([&] { return read_request_head(input.substr(0, *size)); });
        if (head) {
            const auto tunnel = connect_target(*head);
            if (tunnel) require_sound(*tunnel);
            for (const bool at_proxy : {true, false})
                try_plain(*head, at_proxy);
        }
    }
    const FirstBytes first = judge_first_bytes(Speech::http, Host{"a.example", {}}, 80, input);
    if (first.state == FirstBytes::State::passes)
        require(first.forward.find("\r\nHost: a.example\r\n") != std::string::npos, "a request for another host passes");
    if (const auto host = read_host(input)) require_sound({*host, 1});
    require_linear(input, [](std::string_view text) { unless_malformed([&] { return find_head(text, request_head_limit); }); });
}
