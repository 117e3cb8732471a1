// Control messages between wrapper, runner and launcher, and questions about sessions: each is taken only in the one form in which it is
// sent.
#include "common/base/request.hpp"
#include "runner/wire/answer.hpp"
#include "support/property.hpp"

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

template <typename Decode>
void require_canonical(std::string_view bytes, const Decode &decode)
{
    const auto message = unless_refused([&] { return decode(bytes); });
    if (message) require(encode(*message) == bytes, "taken, and not what is sent");
}

void try_all(std::string_view bytes)
{
    require_canonical(bytes, decode_runner_message);
    require_canonical(bytes, decode_wrapper_message);
    require_canonical(bytes, decode_exec_message);
    require_canonical(bytes, decode_question);
    unless_refused([&] { return decode_reply(bytes); }); // root's own, whose texts may be longer than they are sent
}

// What follows the first number of a question, which nobody finds by trying.
void try_question(std::string_view fields)
{
    require_canonical(Encoder().number(OwnQuestion::type).bytes() + std::string(fields), decode_question);
}

} // namespace

// The bytes as they are; and as fields: a small number takes one byte, so that types and lengths are found soon.
void pi_agent::fuzz::try_input(std::string_view input)
{
    try_all(input);
    try_question(input);
    if (input.size() < 2) return;
    Encoder encoder;
    encoder.number(static_cast<unsigned char>(input[0]) % 32);
    const auto numbers = static_cast<unsigned char>(input[1]) % 4U;
    input.remove_prefix(2);
    for (unsigned index = 0; index < numbers && !input.empty(); ++index, input.remove_prefix(1))
        encoder.number(static_cast<unsigned char>(input[0]));
    try_all(encoder.bytes());
    try_question(encoder.bytes());
    try_all(encoder.text(input).bytes());
    try_question(encoder.bytes());
}
