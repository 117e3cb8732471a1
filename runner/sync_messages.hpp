// What the reader (as the user) sends to the writer (as the agent): names and open descriptors, never paths to follow.
#pragma once

#include "common/channel.hpp"

#include <cstdint>
#include <string>

namespace pi_agent {

enum class SyncStep : std::uint64_t {
    settings = 1,  // with a descriptor, or without one when the host has no settings.json; always the first message
    directory = 2, // exists on the host
    file = 3,      // with a descriptor
    seed = 4,      // like file, but only where the agent has none
    end = 5,
};

struct SyncMessage {
    SyncStep step;
    std::string path; // relative to the config directory; for settings the host file, for messages
    std::uint64_t mode = 0;
    std::int64_t modified_seconds = 0;
    std::int64_t modified_nanoseconds = 0;
    std::uint64_t size = 0;
};

inline std::string encode(const SyncMessage &message)
{
    return Encoder()
        .number(static_cast<std::uint64_t>(message.step))
        .text(message.path)
        .number(message.mode)
        .number(static_cast<std::uint64_t>(message.modified_seconds))
        .number(static_cast<std::uint64_t>(message.modified_nanoseconds))
        .number(message.size)
        .bytes();
}

inline SyncMessage decode_sync_message(std::string_view bytes)
{
    Decoder decoder(bytes);
    SyncMessage message{static_cast<SyncStep>(decoder.number()), decoder.text(), 0, 0, 0, 0};
    message.mode = decoder.number();
    message.modified_seconds = static_cast<std::int64_t>(decoder.number());
    message.modified_nanoseconds = static_cast<std::int64_t>(decoder.number());
    message.size = decoder.number();
    decoder.end();
    return message;
}

} // namespace pi_agent
