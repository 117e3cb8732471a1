// The aftermath notice: looks at the shown tree before the agent runs and after it has ended, and lists what came that runs code outside.
#pragma once

#include "wrapper/refusal.hpp"
#include "wrapper/shown_tree.hpp"

namespace pi_agent {

// One look at everything that a session was shown: what there would run code outside.
struct LookPlan {
    std::string root;                           // the shown root; canonical
    std::string repository;                     // below it, nearest to the working directory; searched first
    std::vector<std::string> git_directories;   // of that repository, if they are elsewhere; canonical, absolute
    std::vector<std::string> path_entries;      // of the user's PATH, inside the root; canonical, absolute
    std::string home;                           // the user's
    timespec start{};                           // before anything of the session ran
    AgentPlaces agents = {};                    // links do not leave these (common/as_user/root_path.hpp)
    std::vector<std::string> read_as_user = {}; // by the next start
};

// The first look may still run when the agent starts. So anything newer than `start` does not count as old.
Snapshot look_at_doors(const LookPlan &plan, Budget &budget, bool is_first_look);

// `root` holds `cwd`; `path` is the user's PATH, whose relative entries count from `cwd`. With the scope `project` only the repository is
// shown.
LookPlan plan_look(const std::string &root, const std::string &cwd, const std::string &home, const std::string &path, ProjectScope scope);

// The text of a session's aftermath notice, for the user and for the record.

// At most a dozen lines, each beginning with "pi: "; empty if there is nothing to report. Paths below `cwd` are relative to it. `after`
// says whether the look was complete. `recorded_session` is the session in the journal's record; empty if the journal took none.
std::string aftermath_notice(const std::vector<Finding> &findings, const Snapshot &after, const std::string &cwd,
                             const std::string &recorded_session);

// Text about new links that no start follows (common/as_user/root_path.hpp); else empty.
std::string links_notice(const std::set<std::string> &before, const std::set<std::string> &after);

// A JSON array of {path, kind, change}; the first few hundred. Names are escaped as for people.
std::string aftermath_json(const std::vector<Finding> &findings);

// The user's own entry in the journal. Anybody could write it, and the journal says who did (_UID). Waits for a busy
// journal, at most half a second; false if it refused the entry, or if there is no journal.
bool record_aftermath(const std::vector<Finding> &findings, const std::string &session);

// The aftermath notice: looks at the shown tree before the agent runs and after it has ended, and lists what came that runs code outside.
// It works with the user's rights, in a child process for which only the notice waits.

constexpr int aftermath_seconds = 2;                   // for one look
constexpr std::size_t aftermath_entries = 300'000;     // in one look
constexpr std::size_t aftermath_link_entries = 20'000; // of what a start reads as the user

class Aftermath {
public:
    Aftermath() = default; // switched off
    // Begins the first look. `plan` is called in the child: it follows what an agent may have written, to file systems that may not answer.
    // Paths are shown relative to `cwd`, the working directory.
    Aftermath(const std::function<LookPlan()> &plan, const std::string &cwd);
    Aftermath(Aftermath &&other) noexcept;
    Aftermath(const Aftermath &) = delete;
    Aftermath &operator=(const Aftermath &) = delete;
    Aftermath &operator=(Aftermath &&) = delete;
    ~Aftermath();

    // The agent has ended, and the terminal is the user's again. A signal such as INT ends the wait silently.
    void tell(const std::string &session);

private:
    UniqueFd channel_;
    pid_t pid_ = -1;
    bool has_screen_ = false; // standard output is a terminal, not a pager
};

using RunSession = std::function<AgentEnded(std::string &session)>;
// Runs a session and looks at what it leaves, on the host where it runs.
AgentEnded run_watched(const EarlyLook &look, Program program, const RunSession &run);

} // namespace pi_agent
