// The fields of git's answer.
#include "runner/wire/git_identity.hpp"

#include "common/base/channel.hpp"

#include <utility>

namespace pi_agent {

namespace {

constexpr std::size_t answer_limit = 16UL * 1024;

} // namespace

std::string FoundIdentity::encode() const
{
    Encoder encoder;
    for (const auto &value : {identity.name, identity.email})
        encoder.number(value ? 1 : 0).text(value.value_or(""));
    return encoder.texts(identity.safe_directories).text(problem).texts(notices).bytes();
}

FoundIdentity FoundIdentity::decode(std::string_view bytes)
{
    Decoder decoder(bytes);
    FoundIdentity found;
    for (auto *value : {&found.identity.name, &found.identity.email}) {
        const bool is_set = decoder.flag();
        std::string text = decoder.text();
        if (text.size() > answer_limit || text.find('\0') != std::string::npos) throw ProtocolError("git's answer is no name or address");
        if (is_set) *value = std::move(text);
    }
    found.identity.safe_directories = decoder.texts();
    found.problem = decoder.text();
    found.notices = decoder.texts(git_notice_limit);
    decoder.end();
    return found;
}

} // namespace pi_agent
