// Answers questions about names, over UDP and TCP.
#include "gate/gate.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

namespace pi_agent {

namespace asio = boost::asio;
namespace ip = asio::ip;
using boost::system::error_code;
using ip::tcp;
using ip::udp;

namespace {

constexpr std::uint32_t first_v4 = 0xC6120000; // 198.18.0.0
constexpr std::uint32_t count_v4 = 1U << 17U;  // of a /15
// A unique local prefix (RFC 4193) whose forty random bits are these.
constexpr ip::address_v6::bytes_type prefix_v6 = {0xfd, 0x70, 0x69, 0x2d, 0x67, 0x61, 0x74, 0x65, 0, 0, 0, 0, 0, 0, 0, 0};
constexpr std::size_t prefix_bytes = 12;

ip::address_v6 to_v6(const ip::address_v4 &address)
{
    ip::address_v6::bytes_type bytes = prefix_v6;
    const auto last = address.to_bytes();
    std::copy(last.begin(), last.end(), bytes.begin() + prefix_bytes);
    return ip::address_v6(bytes);
}

// The address of IPv4 that it is, or has at its end; 0.0.0.0 for any other.
ip::address_v4 to_v4(const Address &address)
{
    if (address.is_v4()) return address.to_v4();
    const auto bytes = address.to_v6().to_bytes();
    if (address.to_v6().is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, address.to_v6());
    if (!std::equal(bytes.begin(), bytes.begin() + prefix_bytes, prefix_v6.begin())) return {};
    return ip::address_v4({bytes[12], bytes[13], bytes[14], bytes[15]});
}

constexpr std::size_t head_size = 12;
constexpr unsigned type_a = 1;
constexpr unsigned type_aaaa = 28;
constexpr unsigned type_opt = 41;
constexpr unsigned class_in = 1;
constexpr unsigned seconds_to_keep = 60;

enum class Result : unsigned { no_error = 0, no_such_name = 3, not_implemented = 4, refused = 5, bad_version = 16 };

void put(std::string &bytes, unsigned value)
{
    bytes.push_back(static_cast<char>(value >> 8U));
    bytes.push_back(static_cast<char>(value & 0xffU));
}

struct Question {
    std::string name = {}; // with dots; may be any bytes
    unsigned type = 0;
    unsigned in_class = 0;
};

// Without pointers: a question has nothing before it that they could mean.
Question read_question(ByteReader &rest)
{
    constexpr std::size_t most_of_label = 63, most_of_name = 253;
    Question question;
    for (std::string_view label = rest.counted(1); !label.empty(); label = rest.counted(1)) {
        if (label.size() > most_of_label || label.find('.') != label.npos) throw Malformed(); // one with a dot would read as two
        question.name.append(question.name.empty() ? "" : ".").append(label);
        if (question.name.size() > most_of_name) throw Malformed();
    }
    question.type = rest.number(2);
    question.in_class = rest.number(2);
    return question;
}

// What a question may have after it: one OPT (EDNS, RFC 6891). Its version, or none for a question without.
std::optional<unsigned> read_extension(ByteReader &rest, unsigned count)
{
    std::optional<unsigned> version;
    if (count > 1) throw Malformed();
    if (count == 1) {
        if (rest.number(1) != 0 || rest.number(2) != type_opt) throw Malformed();
        rest.take(3); // how much its sender takes, and the rest of a result
        version = rest.number(1);
        rest.take(2);
        rest.counted(2);
    }
    if (!rest.is_at_end()) throw Malformed();
    return version;
}

struct Answer {
    Result result = Result::no_error;
    std::string address = {}; // the bytes of one; empty: there is none of this type
};

template <typename Bytes>
std::string text_of(const Bytes &bytes)
{
    return {bytes.begin(), bytes.end()};
}

Answer answer_to(const Question &question, NameTable &names, bool has_v6, bool exists)
{
    if (question.in_class != class_in) return {Result::refused};
    if (question.name.empty()) return {}; // the root
    const auto host = read_host(question.name);
    if (!host || host->address) return {Result::no_such_name};
    if (!exists && !is_loopback(*host)) return {Result::no_such_name};
    const bool is_v4 = question.type == type_a;
    if (!is_v4 && (question.type != type_aaaa || !has_v6)) return {};
    if (is_loopback(*host))
        return {Result::no_error, is_v4 ? text_of(ip::address_v4::loopback().to_bytes()) : text_of(ip::address_v6::loopback().to_bytes())};
    const NameAddresses found = names.addresses_of(host->text);
    return {Result::no_error, is_v4 ? text_of(found.v4.to_bytes()) : text_of(found.v6.to_bytes())};
}

std::string write_answer(std::string_view asked, unsigned flags, std::size_t question_end, bool has_extension, const Answer &answer)
{
    const auto result = static_cast<unsigned>(answer.result);
    std::string bytes(asked.substr(0, 2));
    put(bytes, 0x8080U | (flags & 0x7900U) | (result & 0xfU)); // the kind of question, and whether it asked for recursion
    put(bytes, question_end == head_size ? 0 : 1);
    put(bytes, answer.address.empty() ? 0 : 1);
    put(bytes, 0);
    put(bytes, has_extension ? 1 : 0);
    bytes.append(asked.substr(head_size, question_end - head_size));
    if (!answer.address.empty()) {
        put(bytes, 0xc000U | head_size); // the question's name
        bytes.append(asked.substr(question_end - 4, 4));
        put(bytes, 0);
        put(bytes, seconds_to_keep);
        put(bytes, static_cast<unsigned>(answer.address.size()));
        bytes.append(answer.address);
    }
    if (has_extension) {
        bytes.push_back(0);
        put(bytes, type_opt);
        put(bytes, dns_message_limit);
        put(bytes, (result >> 4U) << 8U); // the rest of the result, and version 0
        put(bytes, 0);
        put(bytes, 0);
    }
    return bytes;
}

constexpr auto until_answered = std::chrono::seconds(2); // less than the session's own resolver waits

// The name of the only question in there, where a rule names that host; empty for any other.
std::string ruled_name(std::string_view question, const GateRules &rules)
try {
    ByteReader rest(question);
    rest.take(head_size);
    const Question asked = read_question(rest);
    const auto host = read_host(asked.name);
    if (!host || host->address || is_loopback(*host)) return {};
    const RuleAnswer found = rules.find(*host, 443); // or at another port
    return found.rule != nullptr || found.almost != nullptr ? host->text : "";
} catch (const Malformed &) {
    return {};
}

// Calls `then` with the answer, at once or later. Of a name that a session may reach, the host's own resolver says first whether there is
// such a name, as it would say at the connection. Of any other name nobody is asked, and its connection is denied in words.
template <typename Then>
void answer_question(Gate &gate, std::string question, Then then)
{
    const std::string name = ruled_name(question, gate.rules);
    if (name.empty() || gate.above)
        return then(answer_dns(question, gate.names, gate.has_v6)); // the proxy may know names that the host does not
    const auto timer = std::make_shared<asio::steady_timer>(gate.loop, until_answered);
    const auto answer = [&gate, question = std::move(question), then = std::move(then), timer,
                         is_open = std::make_shared<bool>(true)](bool exists) {
        if (!std::exchange(*is_open, false)) return;
        timer->cancel();
        then(answer_dns(question, gate.names, gate.has_v6, exists));
    };
    gate.lookup.find(name, [answer](const Lookup::Answer &found) { answer(!found.is_known || !found.addresses.empty()); });
    timer->async_wait([answer](const error_code &problem) {
        if (!problem) answer(true); // the connection waits for the same look-up
    });
}

constexpr unsigned questions_a_second = 1000;
constexpr int questions_at_once = 16; // then others have their turn
constexpr unsigned questions_a_connection = 1000;
constexpr auto for_a_question = std::chrono::seconds(10);

class NameServer : public std::enable_shared_from_this<NameServer> {
public:
    NameServer(Gate &gate, udp::socket socket) : gate_(gate), socket_(std::move(socket)) {}

    void start()
    {
        error_code ignored;
        socket_.non_blocking(true, ignored);
        wait();
    }

private:
    void wait()
    {
        socket_.async_wait(udp::socket::wait_read, [self = shared_from_this()](const error_code &problem) {
            if (problem) return;
            for (int count = 0; count < questions_at_once && self->answer_one(); ++count) {
            }
            self->wait();
        });
    }

    // False when no question is left.
    bool answer_one()
    {
        std::array<char, dns_message_limit + 1> bytes{};
        udp::endpoint from;
        error_code problem;
        const std::size_t count = socket_.receive_from(asio::buffer(bytes), from, 0, problem);
        if (problem) return problem != asio::error::would_block; // an answer that nobody took any more
        if (!may_answer()) return true;
        answer_question(gate_, {bytes.data(), count}, [self = shared_from_this(), from](const std::string &answer) {
            error_code unsent; // who does not get it asks again
            if (!answer.empty()) self->socket_.send_to(asio::buffer(answer), from, 0, unsent);
        });
        return true;
    }

    bool may_answer()
    {
        if (const auto now = std::chrono::steady_clock::now(); now - second_ >= std::chrono::seconds(1)) {
            second_ = now;
            answered_ = 0;
        }
        return ++answered_ <= questions_a_second;
    }

    Gate &gate_;
    udp::socket socket_;
    std::chrono::steady_clock::time_point second_ = {};
    unsigned answered_ = 0;
};

// Questions with their length before them, one after the other (RFC 7766).
class NameVisit : public std::enable_shared_from_this<NameVisit> {
public:
    NameVisit(Gate &gate, tcp::socket socket, std::shared_ptr<void> counted)
        : gate_(gate), socket_(std::move(socket)), counted_(std::move(counted)), timer_(gate.loop)
    {
    }

    void read_length()
    {
        if (++questions_ > questions_a_connection) return close();
        timer_.expires_after(for_a_question);
        timer_.async_wait([self = shared_from_this()](const error_code &problem) {
            if (!problem) self->close();
        });
        asio::async_read(socket_, asio::buffer(length_), [self = shared_from_this()](const error_code &problem, std::size_t) {
            const std::size_t length =
                static_cast<std::size_t>(static_cast<unsigned char>(self->length_[0])) << 8U | static_cast<unsigned char>(self->length_[1]);
            if (problem || length > dns_message_limit) return self->close();
            self->message_.assign(length, '\0');
            self->read_question();
        });
    }

private:
    void read_question()
    {
        asio::async_read(socket_, asio::buffer(message_), [self = shared_from_this()](const error_code &problem, std::size_t) {
            if (problem) return self->close();
            answer_question(self->gate_, self->message_, [self](const std::string &answer) { self->write_answer(answer); });
        });
    }

    void write_answer(const std::string &answer)
    {
        if (answer.empty()) return close();
        message_ = {static_cast<char>(answer.size() >> 8U), static_cast<char>(answer.size() & 0xffU)};
        message_ += answer;
        asio::async_write(socket_, asio::buffer(message_), [self = shared_from_this()](const error_code &problem, std::size_t) {
            if (problem) return self->close();
            self->read_length();
        });
    }

    void close()
    {
        timer_.cancel();
        error_code ignored;
        socket_.close(ignored);
    }

    Gate &gate_;
    tcp::socket socket_;
    std::shared_ptr<void> counted_;
    asio::steady_timer timer_;
    std::array<char, 2> length_{};
    std::string message_ = {};
    unsigned questions_ = 0;
};

} // namespace

// Handing out addresses for names, and finding the names again.

NameAddresses NameTable::addresses_of(const std::string &name)
{
    auto found = numbers_.find(name);
    if (found == numbers_.end()) {
        constexpr std::uint32_t last = count_v4 - 2; // then it begins anew with 1
        if (numbers_.size() == name_table_limit) {
            const auto oldest = names_.find((next_ - 1 + last - std::uint32_t{name_table_limit}) % last + 1);
            numbers_.erase(oldest->second);
            names_.erase(oldest);
        }
        found = numbers_.emplace(name, next_).first;
        names_.emplace(next_, name);
        next_ = next_ % last + 1;
    }
    const ip::address_v4 address(first_v4 + found->second);
    return {address, to_v6(address)};
}

std::string NameTable::name_of(const Address &address) const
{
    if (!is_synthetic(address)) return {};
    const auto found = names_.find(to_v4(address).to_uint() - first_v4);
    return found == names_.end() ? "" : found->second;
}

bool NameTable::is_synthetic(const Address &address)
{
    const std::uint32_t number = to_v4(address).to_uint();
    return number >= first_v4 && number - first_v4 < count_v4;
}

// Reading questions and writing answers of DNS.

std::string answer_dns(std::string_view question, NameTable &names, bool has_v6, bool exists)
try {
    if (question.size() > dns_message_limit) return {};
    ByteReader rest(question);
    rest.take(2);
    const unsigned flags = rest.number(2), questions = rest.number(2), answers = rest.number(2), authorities = rest.number(2),
                   more = rest.number(2);
    if ((flags & 0x8000U) != 0) return {}; // an answer
    if ((flags & 0x7800U) != 0) return write_answer(question, flags, head_size, false, {Result::not_implemented, {}});
    if (questions != 1 || answers != 0 || authorities != 0) return {};
    const Question asked = read_question(rest);
    const std::size_t end = question.size() - rest.size();
    const auto version = read_extension(rest, more);
    const Answer answer = version.value_or(0) != 0 ? Answer{Result::bad_version, {}} : answer_to(asked, names, has_v6, exists);
    return write_answer(question, flags, end, version.has_value(), answer);
} catch (const Malformed &) {
    return {};
}

// Answering questions about names, over UDP and TCP.

void serve_names(Gate &gate, udp::socket socket)
{
    std::make_shared<NameServer>(gate, std::move(socket))->start();
}

void visit_name_server(Gate &gate, tcp::socket socket, std::shared_ptr<void> counted)
{
    std::make_shared<NameVisit>(gate, std::move(socket), std::move(counted))->read_length();
}

} // namespace pi_agent
