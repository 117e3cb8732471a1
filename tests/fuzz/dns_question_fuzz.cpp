// Questions to the name server of a session: each answer is one to its question, fits into a datagram, and is no larger than is told.
#include "gate/gate.hpp"
#include "support/property.hpp"

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

void try_question(std::string_view question)
{
    NameTable names;
    for (const bool has_v6 : {false, true}) {
        const std::string answer = answer_dns(question, names, has_v6);
        if (answer.empty()) continue;
        require(question.size() <= dns_message_limit && answer.size() <= question.size() + 64,
                "an answer that is much larger than its question");
        require(answer.size() >= 12 && answer.substr(0, 2) == question.substr(0, 2), "an answer to another question");
        require((static_cast<unsigned char>(answer[2]) & 0x80U) != 0, "an answer that is a question");
        require(answer == answer_dns(question, names, has_v6), "two answers to one question");
        require(answer_dns(answer, names, has_v6).empty(), "an answer is answered"); // two of them would never end
    }
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    try_question(input);
    // As the name of an otherwise sound question.
    const std::string head("id\1\0\0\1\0\0\0\0\0\0", 12);
    for (const char type : {'\x01', '\x1c', 'A'})
        try_question(head + std::string(input) + std::string("\0\0", 2) + type + std::string("\0\1", 2));
}
