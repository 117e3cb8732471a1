// One description of a message's fields, for writing and for reading it.
#pragma once

#include "common/base/channel.hpp"

#include <map>
#include <type_traits>
#include <variant>

namespace pi_agent {

// A message has a function `static void fields(auto &archive, auto &self)`, which hands its fields to `archive` in the order of the bytes:
// numbers, flags, enumerations, texts, other messages, lists of these, what may be missing of these, and descriptors, which go beside the
// bytes. A reader throws ProtocolError for anything else.

class FieldWriter {
public:
    explicit FieldWriter(Encoder &to) noexcept : to_(to) {}
    // Of the fields that are open; they are borrowed.
    [[nodiscard]] const std::vector<int> &descriptors() const noexcept { return descriptors_; }
    void operator()(const auto &...fields) { (put(fields), ...); }
    // A reader accepts no larger number, and no longer list or text.
    void bounded(const auto &field, auto /*limit*/, const char * /*problem*/ = nullptr) { put(field); }
    // Cut to `limit` bytes. A reader refuses a longer text with `problem`, if there is one.
    void cut(const std::string &text, std::size_t limit, const char * /*problem*/ = nullptr)
    {
        to_.text(std::string_view(text).substr(0, limit));
    }
    // A check by the reader.
    void require(const auto & /*holds*/, const char * /*problem*/) {}

private:
    void put(const std::string &text) { to_.text(text); }
    template <typename Field>
    void put(const std::optional<Field> &field)
    {
        to_.number(field ? 1 : 0);
        if (field) put(*field);
    }
    void put(const std::map<std::string, std::string> &pairs)
    {
        to_.number(2 * pairs.size());
        for (const auto &[key, value] : pairs)
            to_.text(key).text(value);
    }
    void put(const UniqueFd &descriptor)
    {
        to_.number(descriptor ? 1 : 0);
        if (descriptor) descriptors_.push_back(descriptor.get());
    }
    template <typename Field>
    void put(const std::vector<Field> &list)
    {
        to_.number(list.size());
        for (const auto &one : list)
            put(one);
    }
    template <typename Field>
    void put(const Field &field)
    {
        if constexpr (std::is_class_v<Field>)
            Field::fields(*this, field);
        else
            to_.number(static_cast<std::uint64_t>(field));
    }

    Encoder &to_;
    std::vector<int> descriptors_;
};

class FieldReader {
public:
    explicit FieldReader(Decoder &from, std::vector<UniqueFd> descriptors = {}) noexcept : from_(from), descriptors_(std::move(descriptors))
    {
    }
    void operator()(auto &...fields) { (take(fields), ...); }
    template <typename Number>
    void bounded(Number &number, std::type_identity_t<Number> limit, const char *problem)
    {
        const std::uint64_t value = from_.number();
        require([&] { return value <= static_cast<std::uint64_t>(limit); }, problem);
        number = static_cast<Number>(value);
    }
    void bounded(std::string &text, std::size_t limit, const char *problem)
    {
        text = from_.text();
        require([&] { return text.size() <= limit; }, problem);
    }
    void bounded(std::vector<std::string> &texts, std::size_t limit) { texts = from_.texts(limit); }
    template <typename Field>
    void bounded(std::vector<Field> &list, std::uint64_t limit, const char *problem)
    {
        std::uint64_t left = from_.number();
        for (require([&] { return left <= limit; }, problem); left > 0; --left)
            take(list.emplace_back());
    }
    void bounded(std::map<std::string, std::string> &pairs, std::uint64_t limit, const char *problem)
    {
        std::uint64_t left = from_.number();
        for (require([&] { return left % 2 == 0 && left / 2 <= limit; }, problem); left > 0; left -= 2) {
            std::string key = from_.text();
            pairs[key] = from_.text();
        }
    }
    void cut(std::string &text, std::size_t limit, const char *problem = nullptr)
    {
        text = from_.text();
        require([&] { return problem == nullptr || text.size() <= limit; }, problem);
    }
    void require(const auto &holds, const char *problem)
    {
        if (!holds()) throw ProtocolError(problem);
    }
    // Nothing is left over.
    void end() const
    {
        from_.end();
        if (taken_ != descriptors_.size()) throw ProtocolError(other_descriptors);
    }

private:
    static constexpr const char *other_descriptors = "a message came with the wrong number of descriptors";

    void take(bool &flag) { flag = from_.flag(); }
    void take(std::string &text) { text = from_.text(); }
    template <typename Field>
    void take(std::optional<Field> &field)
    {
        if (from_.flag()) take(field.emplace());
    }
    void take(std::vector<std::string> &texts) { texts = from_.texts(); }
    void take(UniqueFd &descriptor)
    {
        if (!from_.flag()) return;
        if (taken_ == descriptors_.size()) throw ProtocolError(other_descriptors);
        descriptor = std::move(descriptors_[taken_++]);
    }
    void take(auto &field)
    {
        using Field = std::remove_reference_t<decltype(field)>;
        if constexpr (requires { field.emplace_back(); })
            bounded(field, UINT64_MAX, "");
        else if constexpr (std::is_class_v<Field>)
            Field::fields(*this, field);
        else
            field = static_cast<Field>(from_.number());
    }

    Decoder &from_;
    std::vector<UniqueFd> descriptors_;
    std::size_t taken_ = 0;
};

// Each of several messages has its own number, `static constexpr std::uint64_t type`, before its fields.
template <typename Message>
std::string encode(const Message &message)
{
    Encoder encoder;
    FieldWriter write(encoder);
    if constexpr (requires { Message::type; }) write(Message::type);
    write(message);
    return encoder.bytes();
}

template <typename First, typename... Others>
std::string encode(const std::variant<First, Others...> &message)
{
    return std::visit([](const auto &one) { return encode(one); }, message);
}

template <typename Message>
Message decode_packet(Packet packet)
{
    Decoder decoder(packet.bytes);
    Message message{};
    FieldReader read(decoder, std::move(packet.fds));
    read(message);
    read.end();
    return message;
}

template <typename Message>
Message decode_fields(std::string_view bytes)
{
    return decode_packet<Message>({std::string(bytes), {}});
}

// A list of texts only, of at most `limit`.
inline std::vector<std::string> decode_texts(std::string_view bytes, std::size_t limit)
{
    Decoder decoder(bytes);
    std::vector<std::string> texts = decoder.texts(limit);
    decoder.end();
    return texts;
}

// Reads the message with that number; false if there is no such message.
template <typename... Messages>
bool read_one_of(Decoder &decoder, std::uint64_t type, std::variant<Messages...> &message)
{
    return ((type == Messages::type && (FieldReader{decoder}(message.template emplace<Messages>()), true)) || ...);
}

template <typename Variant>
Variant decode_one_of(std::string_view bytes, const char *unknown)
{
    Decoder decoder(bytes);
    const std::uint64_t type = decoder.number();
    Variant message;
    if (!read_one_of(decoder, type, message)) throw ProtocolError(unknown);
    decoder.end();
    return message;
}

} // namespace pi_agent
