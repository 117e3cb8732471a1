// A file of the host's /etc on its way from the child that reads it.
#pragma once

#include <string>
#include <string_view>

namespace pi_agent {

enum class EtcFileState { missing, read, too_large };

struct EtcFile {
    EtcFileState state;
    std::string target = {};  // where its links lead, canonical
    std::string content = {}; // of one that was read

    [[nodiscard]] std::string encode() const;
    static EtcFile decode(std::string_view bytes); // throws ProtocolError
};

} // namespace pi_agent
