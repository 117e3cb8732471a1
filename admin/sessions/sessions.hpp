// pi-agentctl sessions and stop: which sessions there are, and ending them.
#pragma once

#include "common/host/identity.hpp"
#include "runner/root/method/session_usage.hpp"
#include "runner/root/session/session_list.hpp"

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

struct SessionView {
    std::string id;
    Uid uid;
    std::string user;                                // "uid 1000" where the user database has none of that number
    std::string account, project, directory, method; // each empty until the agent starts, as are the others
    std::string unit, program;                       // unit: with method systemd
    std::optional<std::uint64_t> started_usec;       // since 1970
    SessionUsage usage;
};

// In the order in which they started, those that are still being prepared at the end. Of `user` alone where one is given. Values of the
// record are harmless (common/record/record_event.hpp), names are plain.
std::vector<SessionView> list_sessions(const AsRoot &root, const std::optional<std::string> &user);

// Which of these `id`, a whole one or its beginning, names. Throws Nothing when there is none, with `listing`, the command that lists them,
// and Failure(usage) for several.
std::string choose_session(const std::vector<std::string> &ids, const std::string &id, const char *listing);

// The commands. `user` is a name of the user database, or Failure(usage).
void run_sessions(const std::optional<std::string> &user, bool json, std::ostream &out);

// Which sessions to end: one, those of a user, or, with neither, all.
struct StopOrder {
    std::optional<std::string> id;
    std::optional<std::string> user;
};
// Returns when they are gone. Throws Nothing when there is none to end, Failure(system_failure) when one does not end.
void run_stop(const StopOrder &order, std::ostream &out);

} // namespace pi_agent
