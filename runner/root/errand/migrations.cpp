// Brings a home from the version of its stamp to this one.
#include "runner/root/errand/migrations.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/trusted_file.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_agent/hook_process.hpp"
#include "runner/root/errand/errand.hpp"
#include "runner/wire/answer.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace pi_agent {

namespace {

constexpr int hook_look_milliseconds = 250;

struct Move {
    Version from;
    Version to;
};

std::string notice_of(const Move &move)
{
    const std::string begin = "the agent's home was last used by pi-agent " + to_string(move.from) + ", this is ";
    if (move.to < move.from) return begin + "the older " + to_string(move.to) + ": nothing in it is changed back";
    return begin + to_string(move.to) + ": it is brought up to date";
}

// Only root must be able to write it. The agent's account reads it by its name.
void require_trusted_script(const std::string &path)
{
    const UniqueFd script = open_trusted(path, O_RDONLY | O_NONBLOCK, "migration hook");
    if (!S_ISREG(examine(script, "examining " + escape_for_display(path)).st_mode))
        throw Failure(FailureKind::agent_home, "the migration hook " + escape_for_display(path) + " is not a regular file");
}

std::string failure_of(const HookEnd &end, int patience_seconds)
{
    std::string text = "did not end within " + std::to_string(patience_seconds) + " seconds";
    if (end.in_time && WIFSIGNALED(end.status)) text = "was ended by signal " + std::to_string(WTERMSIG(end.status));
    if (end.in_time && WIFEXITED(end.status)) text = "ended with status " + std::to_string(WEXITSTATUS(end.status));
    std::string said = end.output;
    while (!said.empty() && said.back() == '\n')
        said.pop_back();
    return said.empty() ? text : text + " (\"" + escape_for_display(said) + "\")";
}

void wait_for_answer(Child &child, const MigrationAudience &audience, const std::string &doing)
{
    Deadline patience = in_seconds(child_patience_seconds);
    for (;;) {
        const auto [receiver, wrapper, termination] = audience.watch.waits();
        std::array<pollfd, 4> waits{pollfd{child.channel().get(), POLLIN, 0}, receiver, wrapper, termination};
        const int ready = poll(waits.data(), waits.size(), hook_look_milliseconds);
        if (ready < 0 && errno != EINTR) throw_errno("waiting for a migration hook");
        if (Clock::now() >= patience && defence_is_on("hook-deadline"))
            throw Failure(ExitStatus::system_failure, "the process that runs a migration hook was stopped");
        if (ready <= 0) continue;
        audience.watch.obey(&waits[1]);
        if (waits[0].revents == 0) continue;
        if (child.receive_one()) return;
        patience = in_seconds(child_patience_seconds);
        audience.show_progress(doing);
    }
}

void run(const AsRoot &root, const Account &agent, const StateDirectory &state, const MigrationAudience &audience,
         const MigrationPlan &plan, const Move &move, const std::string &name)
{
    const std::string path = plan.directory + "/" + name;
    require_trusted_script(path);
    const HookCall call{path,
                        {"HOME=" + state.home_path, "PATH=/usr/local/bin:/usr/bin:/bin", "PI_AGENT_OLD_VERSION=" + to_string(move.from),
                         "PI_AGENT_NEW_VERSION=" + to_string(move.to)},
                        state.home};
    Child child(root, "migration hook " + escape_for_display(path), agent, {state.home.get()}, [&](const AsUser &self, FdRef channel) {
        fault_point("migrating");
        const HookEnd end = run_hook(self, call, in_seconds(plan.patience_seconds), [&] { send_progress(channel); });
        if (!end.in_time || end.status != 0)
            throw Failure(ExitStatus::system_failure,
                          "the migration hook " + escape_for_display(path) + ", which brings the agent's home from " +
                              to_string(move.from) + " to " + to_string(move.to) + ", " + failure_of(end, plan.patience_seconds) +
                              "; it runs again at the next start: ask the administrator to repair what it reports");
        send_answer(channel, "");
    });
    try {
        wait_for_answer(child, audience, "bringing the agent's home up to date (" + escape_for_display(name) + ")");
    } catch (...) { // whatever it is, end the hook first: a killed child would leave it running
        child.hang_up();
        throw;
    }
}

} // namespace

std::vector<std::string> select_migrations(const std::vector<std::string> &names, const Version &from, const Version &to)
{
    std::vector<std::pair<Version, std::string>> chosen;
    for (const auto &name : names) {
        const std::size_t dash = name.find('-');
        const std::optional<Version> version = parse_version(name.substr(0, std::min(dash, name.size())));
        if (dash == std::string::npos || !version)
            throw Failure(FailureKind::agent_home, "the migration hook " + escape_for_display(name) +
                                                       " is not named VERSION-name.sh, as in 1.2.0-move-cache.sh, so its version is "
                                                       "unknown; ask the administrator to rename it");
        if (from < *version && *version <= to) chosen.emplace_back(*version, name);
    }
    std::sort(chosen.begin(), chosen.end());
    std::vector<std::string> ordered;
    for (auto &[version, name] : chosen)
        ordered.push_back(std::move(name));
    return ordered;
}

void migrate_home(const AsRoot &root, const Account &agent, const StateDirectory &state, const MigrationAudience &audience,
                  const MigrationPlan &plan)
{
    const std::optional<Version> stamp = read_stamp(state);
    if (stamp == plan.version) return;
    if (stamp) {
        const Move move{*stamp, plan.version};
        audience.tell(notice_of(move));
        for (const auto &name :
             select_migrations(list_trusted_directory(plan.directory, ".sh", "directory of migration hooks"), move.from, move.to))
            run(root, agent, state, audience, plan, move, name);
    }
    write_stamp(state, plan.version); // last: a start that ended earlier does all of it again
}

} // namespace pi_agent
