// The text of a session's aftermath notice, for the user and for the record.
#pragma once

#include "wrapper/snapshot.hpp"

#include <set>
#include <string>
#include <vector>

namespace pi_agent {

// At most a dozen lines, each beginning with "pi: "; empty if there is nothing to report. Paths below `cwd` are relative to it. `after`
// says whether the look was complete. `recorded_session` is the session in the journal's record; empty if the journal took none.
std::string aftermath_notice(const std::vector<Finding> &findings, const Snapshot &after, const std::string &cwd,
                             const std::string &recorded_session);

// Text about new links that no start follows (common/decide/root_path.hpp); else empty.
std::string links_notice(const std::set<std::string> &before, const std::set<std::string> &after);

// A JSON array of {path, kind, change}; the first few hundred. Names are escaped as for people.
std::string aftermath_json(const std::vector<Finding> &findings);

// The user's own entry in the journal. Anybody could write it, and the journal says who did (_UID). Waits for a busy
// journal, at most half a second; false if it refused the entry, or if there is no journal.
bool record_aftermath(const std::vector<Finding> &findings, const std::string &session);

} // namespace pi_agent
