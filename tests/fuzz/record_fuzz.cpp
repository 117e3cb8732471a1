// The record: what users name reaches the journal as the value of its own field and no other, in harmless words.
#include "common/record/record_event.hpp"
#include "support/property.hpp"

#include <fuzzer/FuzzedDataProvider.h>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

std::string take_text(FuzzedDataProvider &choices)
{
    return choices.ConsumeRandomLengthString(40);
}

RecordSubject make_subject(FuzzedDataProvider &choices)
{
    return {choices.ConsumeBool() ? std::string(32, 'a') : "",
            take_text(choices),
            Uid(1000),
            take_text(choices),
            take_text(choices),
            take_text(choices),
            take_text(choices),
            take_text(choices)};
}

std::optional<std::uint64_t> take_number(FuzzedDataProvider &choices)
{
    return choices.ConsumeBool() ? std::optional(choices.ConsumeIntegral<std::uint64_t>()) : std::nullopt;
}

RecordEvent make_event(FuzzedDataProvider &choices)
{
    switch (choices.ConsumeIntegralInRange(0, 4)) {
    case 0:
        return DeniedEvent{ExitStatus::denied, take_text(choices)};
    case 1:
        return StartedEvent{};
    case 2: {
        const std::optional<AgentEnded> how = choices.ConsumeBool() ? std::optional(AgentEnded{choices.ConsumeBool(), 9}) : std::nullopt;
        return EndedEvent{how, take_text(choices), take_number(choices), take_number(choices), take_number(choices)};
    }
    case 3:
        return PreflightEvent{take_text(choices)};
    default:
        return ProblemEvent{take_text(choices)};
    }
}

// One line a field, as the journal reads it.
void require_datagram(const std::vector<JournalField> &fields)
{
    std::string_view rest;
    const std::string datagram = encode_journal_entry(fields);
    rest = datagram;
    for (const auto &field : fields) {
        require_harmless(field.value);
        require(field.value.find('\n') == std::string::npos, "a value of two lines");
        const std::string line = field.name + "=" + field.value + "\n";
        require(rest.starts_with(line), "a field that the journal reads otherwise");
        rest.remove_prefix(line.size());
    }
    require(rest.empty(), "a field that nobody wrote");
    require(datagram.size() < 160UL * 1024, "an entry that no datagram holds");
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    FuzzedDataProvider choices(reinterpret_cast<const std::uint8_t *>(input.data()), input.size());
    while (choices.remaining_bytes() > 0) {
        const RecordSubject subject = make_subject(choices);
        require_datagram(record_fields(subject, make_event(choices), "pi-agent-runner"));
    }
}
