// Reads questions and answers about a user's own sessions.
#include "runner/wire/own_messages.hpp"

#include "common/base/text.hpp"
#include "common/seams/seams.hpp"
#include "runner/wire/answer.hpp"

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

std::string LogEntry::field(const std::string &name) const
{
    const auto found = fields_by_name.find(name);
    return found == fields_by_name.end() ? "" : found->second;
}

std::optional<std::uint64_t> LogEntry::number(const std::string &name) const
{
    return to_number<std::uint64_t>(field(name));
}

OwnReply decode_reply(std::string_view bytes)
{
    return decode_one_of<OwnReply>(bytes, "the runner sent an unknown answer");
}

} // namespace pi_agent
