// The fields of a copied file of /etc.
#include "runner/wire/etc_file.hpp"

#include "common/base/channel.hpp"

namespace pi_agent {

std::string EtcFile::encode() const
{
    return Encoder().number(static_cast<std::uint64_t>(state)).text(target).text(content).bytes();
}

EtcFile EtcFile::decode(std::string_view bytes)
{
    Decoder decoder(bytes);
    const std::uint64_t state = decoder.number();
    if (state > static_cast<std::uint64_t>(EtcFileState::too_large)) throw ProtocolError("a file of /etc is in an unknown state");
    EtcFile file{static_cast<EtcFileState>(state), decoder.text(), decoder.text()};
    decoder.end();
    return file;
}

} // namespace pi_agent
