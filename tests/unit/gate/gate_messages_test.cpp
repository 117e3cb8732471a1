// What runner and gate say to each other, whole and broken: gate/rules.hpp, runner/wire/gate_messages.hpp
#include "gate/rules.hpp"

#include "support/failure.hpp"

#include <doctest/doctest.h>
#include <limits>
#include <set>
#include <sys/socket.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace gate_messages_test {

namespace {

GateProvider provider()
{
    return {"api.openai.com", "authorization", "Bearer ", "sk-secret", {"POST"}, {"/v1/"}, "/etc/pi-agent/policy.yaml:9"};
}

GateOrder order()
{
    GateOrder one;
    one.rules = {{"*.example.org", 443, "p:3"}, {"localhost", 5432, "p:4"}, {"10.0.0.0/8", 443, "p:5"}, {"fd00::1", 22, {}}};
    one.providers = {provider()};
    one.session = "0123456789abcdef0123456789abcdef";
    one.listeners = 2;
    one.authorities = "-----BEGIN CERTIFICATE-----\n";
    one.via = {{"proxy.example", 3128, "p:6"}};
    one.direct = {{"*.internal.example", 443, {}}};
    one.login = "alice:secret";
    return one;
}

GateOrder reread(const GateOrder &one)
{
    return std::get<GateOrder>(decode_one_of<std::variant<GateOrder>>(encode(one), "none"));
}

GateDenial denial()
{
    return {DenialKind::tunnel, "evil.example", 443, DenialReason::private_address, 7, "p:3", "10.0.0.1"};
}

} // namespace

TEST_CASE("an order for the gate comes back as it was")
{
    auto [ours, theirs] = make_channel();
    send_gate_order(ours, order(), in_seconds(5));
    CHECK(encode(receive_gate_order(theirs, in_seconds(5))) == encode(order()));
}

TEST_CASE("an order has one proxy at most, and forgets its login with the keys")
{
    GateOrder one = order();
    forget_keys(one);
    CHECK((one.login.empty() && one.providers.front().key.empty()));
    one = order();
    one.via.push_back(one.via.front());
    CHECK_THROWS_AS(reread(one), ProtocolError);
}

TEST_CASE("the largest order for the gate fits into one record")
{
    GateOrder one;
    one.rules.assign(gate_rule_limit, {std::string(gate_host_bytes, 'a'), 443, std::string(gate_where_bytes, 'w')});
    GateProvider largest = provider();
    largest.key.assign(gate_key_bytes, 'k');
    largest.methods.assign(64, "POST");
    largest.paths.assign(64, "/" + std::string(255, 'p'));
    one.providers.assign(gate_provider_limit, largest);
    one.authorities.assign(gate_authorities, 'c');
    one.via = {one.rules.front()};
    one.direct = one.rules;
    one.login.assign(gate_key_bytes, 'l');
    CHECK(encode(one).size() < record_limit);
    CHECK(reread(one).rules.size() == gate_rule_limit);
    one.rules.push_back({"a", 1, {}});
    CHECK_THROWS_AS(reread(one), ProtocolError);
}

TEST_CASE("an order for the gate that is cut off or goes on breaks the protocol")
{
    const std::string bytes = encode(order());
    using One = std::variant<GateOrder>;
    for (std::size_t length = 0; length < bytes.size(); ++length)
        REQUIRE_THROWS_AS(decode_one_of<One>(std::string_view(bytes).substr(0, length), "none"), ProtocolError);
    CHECK_THROWS_AS(decode_one_of<One>(bytes + std::string(1, '\0'), "none"), ProtocolError);
}

TEST_CASE("a rule of the gate names a host and a port in harmless letters")
{
    for (const std::string host : {"a", "*.b.example", "localhost", "10.0.0.1", "fd00::/8", "xn--bcher-kva.example", "a_b.example"})
        CHECK_NOTHROW(reread({{{host, 443, {}}}}));
    for (const std::string &host : {std::string(), std::string("*"), std::string("*."), std::string("A.example"), std::string("a b"),
                                    std::string("a\n"), std::string("a\0b", 3), std::string("a.*"), std::string(254, 'a')})
        CHECK_THROWS_AS(reread({{{host, 443, {}}}}), ProtocolError);
    CHECK_THROWS_AS(reread({{{"a", 0, {}}}}), ProtocolError);
}

TEST_CASE("a key of the gate is one word in a header that is known")
{
    const auto refused = [](auto change) {
        GateOrder one = order();
        change(one.providers.front());
        CHECK_THROWS_AS(reread(one), ProtocolError);
    };
    refused([](GateProvider &one) { one.key.clear(); });
    refused([](GateProvider &one) { one.key = "a\r\nx: y"; });
    refused([](GateProvider &one) { one.key = "two words"; });
    refused([](GateProvider &one) { one.key.assign(gate_key_bytes + 1, 'k'); });
    refused([](GateProvider &one) { one.header = "cookie"; });
    refused([](GateProvider &one) { one.prefix = "Basic "; });
    refused([](GateProvider &one) { one.host = "a b"; });
    refused([](GateProvider &one) { one.host = std::string("a\0b", 3); });
    refused([](GateProvider &one) { one.methods = {"post"}; });
    refused([](GateProvider &one) { one.methods.emplace_back("GET"); }); // and no path for it
    refused([](GateProvider &one) { one.paths = {"v1"}; });
    refused([](GateProvider &one) {
        one.paths = {"/v1 /"};
        one.paths.front().push_back('\n');
    });
}

TEST_CASE("keys are overwritten when they are forgotten")
{
    GateOrder one = order();
    const char *place = one.providers.front().key.data();
    const std::size_t size = one.providers.front().key.size();
    forget_keys(one);
    CHECK(one.providers.front().key.empty());
    CHECK(std::string(place, size) == std::string(size, '\0'));
}

TEST_CASE("a listener of the gate comes with one descriptor")
{
    auto [ours, theirs] = make_channel();
    const UniqueFd socket = UniqueFd::adopt(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    send_gate_listener(ours, {ListenerKind::transparent, 443}, socket, in_seconds(5));
    const ReceivedListener came = receive_gate_listener(theirs, in_seconds(5));
    CHECK(came.about.kind == ListenerKind::transparent);
    CHECK(came.about.port == 443);
    CHECK(came.socket.is_open());
    send_packet(ours, encode(GateListener{ListenerKind::proxy, 1}), {}, in_seconds(5));
    CHECK_THROWS_AS(receive_gate_listener(theirs, in_seconds(5)), ProtocolError);
    send_packet(ours, encode(GateListener{ListenerKind::proxy, 1}), {socket.get(), socket.get()}, in_seconds(5));
    CHECK_THROWS_AS(receive_gate_listener(theirs, in_seconds(5)), ProtocolError);
    send_packet(ours, Encoder().number(GateListener::type).number(5).number(1).bytes(), {socket.get()}, in_seconds(5));
    CHECK_THROWS_AS(receive_gate_listener(theirs, in_seconds(5)), ProtocolError);
    ours.reset();
    CHECK_THROWS_AS(receive_gate_listener(theirs, in_seconds(5)), ProtocolError);
}

TEST_CASE("what the gate says comes back as it was")
{
    CHECK(std::holds_alternative<GateReady>(decode_gate_message(encode(GateReady{}))));
    CHECK(std::holds_alternative<GateAlive>(decode_gate_message(encode(GateAlive{}))));
    CHECK(std::holds_alternative<GateFarewell>(decode_gate_message(encode(GateFarewell{}))));
    CHECK(encode(decode_gate_message(encode(denial()))) == encode(denial()));
}

TEST_CASE("what the gate says is believed by nobody who would show or count it")
{
    const auto refused = [](auto change) {
        GateDenial one = denial();
        change(one);
        CHECK_THROWS_AS(decode_gate_message(encode(one)), ProtocolError);
    };
    refused([](GateDenial &one) { one.host = "\x1b[2J"; });
    refused([](GateDenial &one) { one.host = "Evil.example"; });
    refused([](GateDenial &one) { one.host = std::string("a\0b", 3); });
    refused([](GateDenial &one) { one.where = "\xff"; });
    refused([](GateDenial &one) { one.address = "10.0.0.1\x1b[2J"; });
    refused([](GateDenial &one) { one.address = "see-your-mail"; });
    refused([](GateDenial &one) { one.address = "10.0.0.0/8"; });
    refused([](GateDenial &one) { one.reason = DenialReason::no_rule; }); // which is about no address
    refused([](GateDenial &one) { one.reason = static_cast<DenialReason>(std::size(denial_texts)); });
    refused([](GateDenial &one) { one.count = 0; });
    CHECK_THROWS_AS(decode_gate_message(Encoder().number(99).bytes()), ProtocolError);
    CHECK_THROWS_AS(decode_gate_message(Encoder().number(GateDenial::type).number(4).bytes()), ProtocolError);
}

TEST_CASE("each reason of a denial is one word with a meaning")
{
    std::set<std::string> words;
    for (const auto &text : denial_texts) {
        CHECK(&text_of(text.reason) == &text);
        CHECK(words.insert(text.word).second);
        CHECK(std::string(text.word).find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos);
        CHECK(std::string(text.meaning).size() > 10);
    }
}

} // namespace gate_messages_test
