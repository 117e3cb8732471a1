// Reads questions and answers about a user's own sessions.
#include "runner/wire/own_messages.hpp"

#include "common/seams/seams.hpp"
#include "runner/wire/answer.hpp"

#include <algorithm>

namespace pi_agent {

bool OwnQuestion::are_whole_ids(const std::vector<std::string> &sessions)
{
    // The beginning of an id may fit another session by the time that root looks, so root is told whole ones alone.
    return std::all_of(sessions.begin(), sessions.end(), is_session_id) || !defence_is_on("whole-id");
}

OwnQuestion decode_question(std::string_view bytes)
{
    if (bytes.size() > question_limit)
        throw ProtocolError("a question larger than " + std::to_string(question_limit) + " bytes was refused");
    return std::get<OwnQuestion>(decode_one_of<std::variant<OwnQuestion>>(bytes, "the first message is not a question"));
}

std::vector<std::uint64_t> to_list(const std::optional<std::uint64_t> &number)
{
    return number ? std::vector<std::uint64_t>{*number} : std::vector<std::uint64_t>();
}

std::optional<std::uint64_t> from_list(const std::vector<std::uint64_t> &list)
{
    if (list.size() > 1) throw ProtocolError("an answer has several numbers for one thing");
    return list.empty() ? std::nullopt : std::optional(list.front());
}

OwnReply decode_reply(std::string_view bytes)
{
    return decode_one_of<OwnReply>(bytes, "the runner sent an unknown answer");
}

} // namespace pi_agent
