// The child that looks twice, waiting for it, and a session between its looks.
#include "wrapper/aftermath.hpp"

#include "common/as_user/root_path.hpp"
#include "common/base/process.hpp"
#include "common/seams/seams.hpp"
#include "wrapper/start_watch.hpp"

#include <csignal>
#include <cstdlib>
#include <exception>
#include <future>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

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

// None of the caller's descriptors: a pipe that is kept open has no end for who reads it. The keyboard's signals are not for this process.
bool leave_everything(pid_t parent, int channel)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 || dup2(channel, 3) < 0) return false;
    if (fcntl(3, F_SETFD, FD_CLOEXEC) != 0 || close_range(4, ~0U, 0) != 0 || setsid() < 0) return false;
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent;
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

[[noreturn]] void run_child(pid_t parent, const std::function<LookPlan()> &make_plan, const timespec &start, const std::string &cwd,
                            int channel)
{
    try {
        if (leave_everything(parent, channel)) {
            LookPlan plan = make_plan();
            plan.start = start;
            look_twice(plan, cwd, FdRef(3));
        }
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): the parent sees the end, and says so
    }
    _exit(0);
}

// The user has had enough.
UniqueFd watch_impatience()
{
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) {
        struct sigaction present {};
        if (sigaction(number, nullptr, &present) == 0 && present.sa_handler != SIG_IGN) sigaddset(&signals, number);
    }
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    return UniqueFd::adopt(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

// False when nothing has come by then.
bool wait_for_either(std::array<pollfd, 2> &waits, Deadline deadline)
{
    for (;;) {
        const int ready = poll(waits.data(), waits.size(), milliseconds_left(deadline));
        if (ready >= 0 || errno != EINTR) return ready > 0;
    }
}

} // namespace

Aftermath::Aftermath(const std::function<LookPlan()> &plan, const std::string &cwd)
{
    timespec start{};
    clock_gettime(CLOCK_REALTIME, &start);
    auto [own, theirs] = make_channel();
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) throw_errno("starting the look at what the session will leave");
    if (pid_ == 0) run_child(parent, plan, start, cwd, theirs.get());
    channel_ = std::move(own);
    has_screen_ = isatty(STDOUT_FILENO) == 1; // while it is open
}

Aftermath::Aftermath(Aftermath &&other) noexcept
    : channel_(std::move(other.channel_)), pid_(std::exchange(other.pid_, -1)), has_screen_(other.has_screen_)
{
}

Aftermath::~Aftermath()
{
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, WNOHANG); // not waited for: a file system that does not answer would hold it, and us
}

void Aftermath::tell(const std::string &session)
{
    if (pid_ <= 0 || session.empty()) return;
    const UniqueFd impatience = watch_impatience();
    std::string text = "pi: what this session left could not be looked at: the look ";
    try {
        send_packet(channel_, session, {}, in_seconds(1));
        const Deadline deadline = in_seconds(look_patience_seconds);
        std::array<pollfd, 2> waits = {pollfd{channel_.get(), POLLIN, 0}, pollfd{impatience.get(), POLLIN, 0}};
        ProgressLine progress(ProgressLine::Place::behind_output); // gone before anything else is written
        if (!wait_for_either(waits, Clock::now() + silence)) {
            if (has_screen_) progress.show("looking at what this session left");
            wait_for_either(waits, deadline);
        }
        if (waits[1].revents != 0) return;
        if (const auto answer = receive_record(channel_, deadline))
            text = answer->bytes;
        else
            text += "was killed\n";
    } catch (const Failure &failure) {
        text += std::string("did not end (") + failure.what() + ")\n";
    }
    say(text);
}

namespace {

Aftermath begin_aftermath(const EarlyLook &look)
{
    if (!look.projects.aftermath) return {};
    const char *path = std::getenv("PATH");
    const std::string search_path = path == nullptr ? "" : path;
    const auto make_plan = [&] {
        LookPlan plan = plan_look(look.root, look.cwd, look.home, search_path, look.projects.shown());
        plan.agents = look.agents;
        plan.read_as_user = look.read_as_user;
        return plan;
    };
    return {make_plan, look.cwd};
}

} // namespace

AgentEnded run_watched(const EarlyLook &look, Program program, const RunSession &run)
{
    Aftermath aftermath = begin_aftermath(look); // before anything of the session runs
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
