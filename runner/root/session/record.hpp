// Where the runner's events go: the journal, or where there is none a file of root's. No prompts, no values, every foreign byte escaped.
#pragma once

#include "common/record/record_event.hpp"

#include <string>

namespace pi_agent {

// Throws Failure(system_failure) when neither takes it. `identifier` is the program that says so.
void record_event(const RecordSubject &subject, const RecordEvent &event, const std::string &identifier = "pi-agent-runner");

// best_effort: what went wrong beside a session. `id` is the session's, or names what else it is about.
void record_problem(const std::string &id, const std::string &text) noexcept;

} // namespace pi_agent
