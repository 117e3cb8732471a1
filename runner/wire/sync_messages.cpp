// The messages of the config sync as bytes.
#include "runner/wire/sync_messages.hpp"

#include "common/policy/policy_paths.hpp"

namespace pi_agent {

namespace {

ListedEntry decode_entry(Decoder &decoder)
{
    ListedEntry entry{static_cast<EntryKind>(decoder.number()), decoder.text(), {}};
    if (entry.kind < EntryKind::file || entry.kind > EntryKind::unreadable || !is_plain_relative(entry.path))
        throw ProtocolError("the reader of the config listed what it may not");
    if (entry.kind == EntryKind::file) entry.facts = decode_facts(decoder);
    return entry;
}

Content decode_content(Decoder &decoder)
{
    Content content{decoder.number(), decoder.flag(), {}};
    if (content.readable) content.facts = decode_facts(decoder);
    return content;
}

} // namespace

void encode(const HostFacts &facts, Encoder &encoder)
{
    encoder.number(facts.inode).number(facts.size).number(static_cast<std::uint64_t>(facts.modified));
    encoder.number(static_cast<std::uint64_t>(facts.changed)).number(facts.mode);
}

HostFacts decode_facts(Decoder &decoder)
{
    HostFacts facts;
    facts.inode = decoder.number();
    facts.size = decoder.number();
    facts.modified = static_cast<std::int64_t>(decoder.number());
    facts.changed = static_cast<std::int64_t>(decoder.number());
    facts.mode = decoder.number();
    return facts;
}

HostFacts facts_of(const struct stat &facts) noexcept
{
    return HostFacts{facts.st_ino, static_cast<std::uint64_t>(facts.st_size), nanoseconds_of(facts.st_mtim), nanoseconds_of(facts.st_ctim),
                     facts.st_mode & 0777U};
}

std::string encode(const SyncMessage &message)
{
    Encoder encoder;
    encoder.number(static_cast<std::uint64_t>(message.step));
    if (message.step == SyncStep::document) encoder.text(message.name).text(message.place).number(message.by_agents ? 1 : 0);
    if (message.step == SyncStep::listing) {
        encoder.number(message.entries.size());
        for (const auto &entry : message.entries) {
            encoder.number(static_cast<std::uint64_t>(entry.kind)).text(entry.path);
            if (entry.kind == EntryKind::file) encode(entry.facts, encoder);
        }
    }
    if (message.step == SyncStep::contents) {
        encoder.number(message.contents.size());
        for (const auto &content : message.contents) {
            encoder.number(content.number).number(content.readable ? 1 : 0);
            if (content.readable) encode(content.facts, encoder);
        }
    }
    return encoder.bytes();
}

SyncMessage decode_sync_message(std::string_view bytes)
{
    Decoder decoder(bytes);
    SyncMessage message;
    message.step = static_cast<SyncStep>(decoder.number());
    switch (message.step) {
    case SyncStep::document:
        message.name = decoder.text();
        message.place = decoder.text();
        message.by_agents = decoder.flag();
        break;
    case SyncStep::listing:
        for (std::uint64_t left = decoder.number(); left > 0; --left)
            message.entries.push_back(decode_entry(decoder));
        break;
    case SyncStep::end_of_listing:
        break;
    case SyncStep::contents:
        for (std::uint64_t left = decoder.number(); left > 0; --left)
            message.contents.push_back(decode_content(decoder));
        break;
    default:
        throw ProtocolError("the reader of the config sent an unknown message");
    }
    decoder.end();
    return message;
}

std::string encode_wanted(const std::vector<std::uint64_t> &numbers)
{
    Encoder encoder;
    encoder.number(numbers.size());
    for (const std::uint64_t number : numbers)
        encoder.number(number);
    return encoder.bytes();
}

std::vector<std::uint64_t> decode_wanted(std::string_view bytes)
{
    Decoder decoder(bytes);
    std::vector<std::uint64_t> numbers;
    const std::uint64_t count = decoder.number();
    if (count > wanted_limit) throw ProtocolError("the writer of the config wants too much at once");
    for (std::uint64_t index = 0; index < count; ++index)
        numbers.push_back(decoder.number());
    decoder.end();
    return numbers;
}

bool is_plain_relative(std::string_view path) noexcept
{
    return path.size() <= 4096 && path.find('\0') == std::string_view::npos && !has_odd_component(path);
}

} // namespace pi_agent
