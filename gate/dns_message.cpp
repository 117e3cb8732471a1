// Reading questions and writing answers of DNS.
#include "gate/dns_message.hpp"

#include <optional>

namespace pi_agent {

namespace {

constexpr std::size_t head_size = 12;
constexpr unsigned type_a = 1;
constexpr unsigned type_aaaa = 28;
constexpr unsigned type_opt = 41;
constexpr unsigned class_in = 1;
constexpr unsigned seconds_to_keep = 60;

enum class Result : unsigned { no_error = 0, no_such_name = 3, not_implemented = 4, refused = 5, bad_version = 16 };

unsigned number_at(std::string_view bytes, std::size_t at)
{
    return static_cast<unsigned>(static_cast<unsigned char>(bytes[at])) << 8U | static_cast<unsigned char>(bytes[at + 1]);
}

void put(std::string &bytes, unsigned value)
{
    bytes.push_back(static_cast<char>(value >> 8U));
    bytes.push_back(static_cast<char>(value & 0xffU));
}

struct Question {
    std::string name;    // with dots; may be any bytes
    std::size_t end = 0; // of the whole question
    unsigned type = 0;
    unsigned in_class = 0;
};

// Without pointers: a question has nothing before it that they could mean.
std::optional<Question> read_question(std::string_view bytes)
{
    Question question;
    std::size_t at = head_size;
    for (;;) {
        if (at >= bytes.size()) return std::nullopt;
        const std::size_t length = static_cast<unsigned char>(bytes[at]);
        if (length == 0) break;
        if (length > 63 || at + 1 + length >= bytes.size() || at + 1 + length - head_size > 254) return std::nullopt;
        const std::string_view label = bytes.substr(at + 1, length);
        if (label.find('.') != label.npos) return std::nullopt; // it would read as two labels
        question.name.append(question.name.empty() ? "" : ".").append(label);
        at += 1 + length;
    }
    if (at + 5 > bytes.size()) return std::nullopt;
    question.type = number_at(bytes, at + 1);
    question.in_class = number_at(bytes, at + 3);
    question.end = at + 5;
    return question;
}

// What a question may have after it: one OPT (EDNS, RFC 6891). Its version, or none for a question without; false if anything else is
// there.
struct Extension {
    bool is_there = false;
    unsigned version = 0;
};
std::optional<Extension> read_extension(std::string_view bytes, std::size_t at, unsigned count)
{
    if (count == 0) return at == bytes.size() ? std::optional(Extension{}) : std::nullopt;
    constexpr std::size_t opt_size = 11;
    if (count != 1 || bytes.size() - at < opt_size || bytes[at] != 0 || number_at(bytes, at + 1) != type_opt) return std::nullopt;
    if (bytes.size() - at - opt_size != number_at(bytes, at + 9)) return std::nullopt;
    return Extension{true, static_cast<unsigned char>(bytes[at + 6])};
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

Answer answer_to(const Question &question, NameTable &names, bool has_v6)
{
    if (question.in_class != class_in) return {Result::refused};
    if (question.name.empty()) return {}; // the root
    const auto host = read_host(question.name);
    if (!host || host->address) return {Result::no_such_name};
    const bool is_v4 = question.type == type_a;
    if (!is_v4 && (question.type != type_aaaa || !has_v6)) return {};
    namespace ip = boost::asio::ip;
    if (is_loopback(*host))
        return {Result::no_error, is_v4 ? text_of(ip::address_v4::loopback().to_bytes()) : text_of(ip::address_v6::loopback().to_bytes())};
    const NameAddresses found = names.addresses_of(host->text);
    return {Result::no_error, is_v4 ? text_of(found.v4.to_bytes()) : text_of(found.v6.to_bytes())};
}

std::string write_answer(std::string_view asked, std::size_t question_end, bool has_extension, const Answer &answer)
{
    const auto result = static_cast<unsigned>(answer.result);
    std::string bytes(asked.substr(0, 2));
    const unsigned recursion_desired = number_at(asked, 2) & 0x0100U;
    put(bytes, 0x8080U | recursion_desired | (number_at(asked, 2) & 0x7800U) | (result & 0xfU));
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

} // namespace

std::string answer_dns(std::string_view question, NameTable &names, bool has_v6)
{
    if (question.size() < head_size || question.size() > dns_message_limit) return {};
    const unsigned flags = number_at(question, 2);
    if ((flags & 0x8000U) != 0) return {}; // an answer
    if ((flags & 0x7800U) != 0) return write_answer(question, head_size, false, {Result::not_implemented, {}});
    if (number_at(question, 4) != 1 || number_at(question, 6) != 0 || number_at(question, 8) != 0) return {};
    const auto asked = read_question(question);
    if (!asked) return {};
    const auto extension = read_extension(question, asked->end, number_at(question, 10));
    if (!extension) return {};
    const Answer answer = extension->version != 0 ? Answer{Result::bad_version, {}} : answer_to(*asked, names, has_v6);
    return write_answer(question, asked->end, extension->is_there, answer);
}

} // namespace pi_agent
