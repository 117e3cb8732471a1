// The record: what a start writes to it, where, and how its file is kept.
#pragma once

#include "common/record/journal.hpp"
#include "common/record/record_event.hpp"

#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace pi_agent {

// --- Where the runner's events go: the journal, or where there is none a file of root's. No prompts, no values, every foreign byte
// escaped.

// Throws Failure(system_failure) when neither takes it. `identifier` is the program that says so.
void record_event(const RecordSubject &subject, const RecordEvent &event, const std::string &identifier = "pi-agent-runner");

// best_effort: what went wrong beside a session. `id` is the session's, or names what else it is about.
void record_problem(const std::string &id, const std::string &text) noexcept;

// best_effort: does `step`. What it throws is recorded as such a problem, after `words`; false then.
template <typename Step>
bool attempt_recorded(const std::string &id, const Step &step, const char *words = "")
{
    try {
        step();
        return true;
    } catch (const std::exception &failure) {
        record_problem(id, std::string(words) + failure.what());
        return false;
    }
}

// --- The record where there is no journal: one JSON line an event, in a file that only root can read.

extern const char *const record_file_path; // /var/log/pi-agent/record.jsonl

// Appends one event. Throws Failure when it is not there as a whole afterwards.
void append_to_record_file(const std::vector<JournalField> &fields);

// Every line, oldest first, without its end; none where there is no such file. Throws Failure(configuration) when others could have written
// it. For root: nobody else can look.
void read_record_file(const std::function<void(const std::string &line)> &visit);

} // namespace pi_agent
