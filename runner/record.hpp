// What the runner writes to the journal: events of sessions, no prompts, no values, every foreign byte escaped.
#pragma once

#include "common/account.hpp"
#include "common/request.hpp"

#include <string>

namespace pi_agent {

void record_started(const std::string &id, const Account &user, const Account &agent, const std::string &project, Program program);
void record_ended(const std::string &id, const AgentEnded &ended);
// The caller's name and why; the text is escaped here.
void record_refused(const std::string &user, const std::string &text);
void record_problem(const std::string &id, const std::string &text);

} // namespace pi_agent
