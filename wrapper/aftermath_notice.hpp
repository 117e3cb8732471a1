// What is said of a session's aftermath: for the user, and for the record.
#pragma once

#include "wrapper/snapshot.hpp"

#include <set>
#include <string>
#include <vector>

namespace pi_agent {

// At most a dozen lines, each beginning with "pi: "; empty when there is nothing to say. Paths below `cwd` are told from there. `after`
// says whether everything was looked at. `recorded_session` is what the journal's record names; empty where it took none.
std::string aftermath_notice(const std::vector<Finding> &findings, const Snapshot &after, const std::string &cwd,
                             const std::string &recorded_session);

// What came of links that no start follows (common/decide/root_path.hpp); empty when nothing did.
std::string links_notice(const std::set<std::string> &before, const std::set<std::string> &after);

// A JSON array of {path, kind, change}; the first few hundred. Names are escaped as for people.
std::string aftermath_json(const std::vector<Finding> &findings);

// An entry of the user's own in the journal: anybody could write it, and the journal says who did (_UID). Waits for a busy
// journal, at most half a second; false where it did not take the entry, or there is none.
bool record_aftermath(const std::vector<Finding> &findings, const std::string &session);

} // namespace pi_agent
