// The journal first, then the file.
#include "runner/root/session/record.hpp"

#include "common/seams/defence.hpp"
#include "runner/root/session/record_file.hpp"

namespace pi_agent {

namespace {

constexpr int journal_patience_milliseconds = 1000;

} // namespace

void record_event(const RecordSubject &subject, const RecordEvent &event, const std::string &identifier)
{
    const std::vector<JournalField> fields = record_fields(subject, event, identifier);
    if (send_to_journal(fields, journal_patience_milliseconds)) return;
    try {
        append_to_record_file(fields);
    } catch (const Failure &failure) {
        if (!defence_is_on("record-required")) return;
        throw Failure(ExitStatus::system_failure, std::string("nothing can be recorded: the journal takes no entry (does "
                                                              "systemd-journald run?), and the file in its place cannot be written: ") +
                                                      failure.what() + "; the administrator mends one of them");
    }
}

void record_problem(const std::string &id, const std::string &text) noexcept
{
    try {
        RecordSubject subject;
        subject.session = id;
        record_event(subject, ProblemEvent{text});
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): there is nobody else to tell
    }
}

} // namespace pi_agent
