// The child that looks twice, waiting for it, and a session between its looks.
#include "wrapper/aftermath.hpp"

#include "common/as_user/callers_view.hpp"
#include "common/base/files.hpp"
#include "common/seams/seams.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <cstdlib>
#include <exception>
#include <future>

namespace pi_agent {

namespace {

constexpr int look_patience_seconds = aftermath_seconds + 2; // and for the record
constexpr int first_look_niceness = 10;
constexpr auto silence = std::chrono::milliseconds(500); // longer, and the terminal says what is waited for

bool has_input_now(FdRef fd)
{
    pollfd wait{fd.get(), POLLIN, 0};
    return poll(&wait, 1, 0) != 0;
}

// None where there is more than is looked at.
std::optional<std::set<std::string>> look_at_links(const LookPlan &plan, FdRef channel)
{
    Budget budget(aftermath_link_entries, in_seconds(1), [&] { return has_input_now(channel); });
    const auto go_on = [&] {
        budget.take_one();
        return !budget.is_spent();
    };
    std::set<std::string> links = find_links_out(UserPaths(plan.agents), plan.read_as_user, go_on);
    return budget.is_spent() ? std::nullopt : std::optional(std::move(links));
}

void look_twice(const LookPlan &plan, const std::string &cwd, FdRef channel)
{
    // An agent that ends early has its user waiting: what was not looked at yet is not.
    Budget first_budget(aftermath_entries, in_seconds(aftermath_seconds), [&] { return has_input_now(channel); });
    // In a thread of low priority, which no process can take back: everybody waits for the start of the session, and nobody for this look.
    const auto look_first = [&] {
        setpriority(PRIO_PROCESS, 0, first_look_niceness); // on Linux of the calling thread alone (setpriority(2)); best_effort
        return std::pair(look_at_doors(plan, first_budget, true), look_at_links(plan, channel));
    };
    const auto [before, links_before] = std::async(std::launch::async, look_first).get();
    if (!wait_for_input(channel, in_seconds(1))) release_start_up_memory(); // as StartUpMemory does
    while (!wait_for_input(channel, in_seconds(60))) {
    }
    const std::optional<Packet> asked = receive_packet(channel, in_seconds(1));
    if (!asked) return; // the agent never ran
    fault_point("looking-back");
    Budget budget(defence_is_on("aftermath-bounds") ? aftermath_entries : ~std::size_t{0},
                  in_seconds(defence_is_on("aftermath-bounds") ? aftermath_seconds : 600), [&] { return has_input_now(channel); });
    const Snapshot after = look_at_doors(plan, budget, false);
    const std::vector<Finding> findings = compare(before, after, plan.start);
    const auto links_after = look_at_links(plan, channel);
    // Recorded first: once the user is told, `pi` ends, and this process with it.
    const std::string record = findings.empty() || record_aftermath(findings, asked->bytes) ? asked->bytes : "";
    const std::string links = links_before && links_after ? links_notice(*links_before, *links_after) : "";
    send_record(channel, aftermath_notice(findings, after, cwd, record) + links, {}, in_seconds(1));
}

// The user has had enough.
UniqueFd watch_impatience()
{
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP})
        if (!is_ignored(number)) sigaddset(&signals, number);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    return UniqueFd::adopt(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

LookPlan plan_of(const EarlyLook &look, const timespec &start)
{
    const char *path = std::getenv("PATH");
    LookPlan plan = plan_look(look.root, look.cwd, look.home, path == nullptr ? "" : path, look.projects.shown());
    plan.start = start;
    plan.agents = look.agents;
    plan.read_as_user = look.read_as_user;
    return plan;
}

class Aftermath {
public:
    // Begins the first look, unless it is switched off.
    explicit Aftermath(const EarlyLook &look)
    {
        if (!look.projects.aftermath) return;
        timespec start{};
        clock_gettime(CLOCK_REALTIME, &start);
        auto [own, theirs] = make_channel();
        const pid_t parent = getpid();
        pid_ = fork();
        if (pid_ < 0) throw_errno("starting the look at what the session will leave");
        if (pid_ == 0) run_child(parent, look, start, theirs.get());
        channel_ = std::move(own);
        has_screen_ = isatty(STDOUT_FILENO) == 1; // while it is open
    }
    Aftermath(const Aftermath &) = delete;
    Aftermath &operator=(const Aftermath &) = delete;
    ~Aftermath()
    {
        if (pid_ <= 0) return;
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, WNOHANG); // not waited for: a file system that does not answer would hold it, and us
    }

    // The agent has ended, and the terminal is the user's again. A signal such as INT ends the wait silently.
    void tell(const std::string &session) const
    {
        if (pid_ <= 0 || session.empty()) return;
        const UniqueFd impatience = watch_impatience();
        std::string text = "pi: what this session left could not be looked at: the look ";
        try {
            send_packet(channel_, session, {}, in_seconds(1));
            const Deadline deadline = in_seconds(look_patience_seconds);
            ProgressLine progress(ProgressLine::Place::behind_output); // gone before anything else is written
            Came came = wait_for_either(channel_, impatience, Clock::now() + silence);
            if (came == Came::nothing) {
                if (has_screen_) progress.show("looking at what this session left");
                came = wait_for_either(channel_, impatience, deadline);
            }
            if (came == Came::impatience) return;
            if (const auto answer = receive_record(channel_, deadline))
                text = answer->bytes;
            else
                text += "was killed\n";
        } catch (const Failure &failure) {
            text += std::string("did not end (") + failure.what() + ")\n";
        }
        say(text);
    }

private:
    // The plan is made here: that follows what an agent may have written, to file systems that may not answer.
    [[noreturn]] static void run_child(pid_t parent, const EarlyLook &look, const timespec &start, int channel)
    {
        try {
            if (keep_only(channel) && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent)
                look_twice(plan_of(look, start), look.cwd, FdRef(3));
        } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): the parent sees the end, and says so
        }
        _exit(0);
    }

    UniqueFd channel_;
    pid_t pid_ = -1;
    bool has_screen_ = false; // standard output is a terminal, not a pager
};

} // namespace

AgentEnded run_watched(const EarlyLook &look, Program program, const RunSession &run)
{
    const Aftermath aftermath(look); // before anything of the session runs
    std::string session;
    try {
        const AgentEnded ended = run(session);
        aftermath.tell(session);
        if (const auto notice = closed_network_notice(look.network, ended); program == Program::agent && !notice.empty())
            say("pi: " + notice + "\n");
        return ended;
    } catch (const Failure &) { // the agent may have run for long before that
        aftermath.tell(session);
        throw;
    }
}

} // namespace pi_agent
