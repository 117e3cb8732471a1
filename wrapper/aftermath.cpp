// Looks at a tree by descriptor, marks what is found, compares two looks; the child that looks twice, and a session between its looks.
#include "wrapper/aftermath.hpp"

#include "common/base/files.hpp"
#include "common/seams/seams.hpp"

#include <linux/openat2.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <future>

namespace pi_agent {

namespace {

constexpr unsigned entries_between_clocks = 32;

// Opens what an O_PATH descriptor stands for; it has been judged, so nothing else can be behind the name.
UniqueFd reopen(FdRef place, int flags)
{
    return UniqueFd::adopt(open(("/proc/self/fd/" + std::to_string(place.get())).c_str(), flags | O_NOCTTY | O_CLOEXEC));
}

bool is_same(const Mark &before, const Mark &after)
{
    return before.identity == after.identity || (before.content && after.content && *before.content == *after.content);
}

bool has_appeared(const Snapshot &before, const std::string &path, const Mark &mark, const timespec &start)
{
    if (mark.appearing == Appearing::is_ordinary) return false;
    if (mark.appearing == Appearing::counts_in_known_directory && !before.program_directories.contains(path.substr(0, path.rfind('/'))))
        return false;
    const bool was_looked_for = before.is_complete || (mark.found_first && before.has_first_places);
    return was_looked_for || is_later(mark.changed, start);
}

constexpr off_t content_limit = 64UL * 1024; // bytes of one file that are kept; of a larger one its identity has to do

std::string identity_of(const struct stat &facts)
{
    const auto joined = [](auto... numbers) { return ((std::to_string(numbers) + " ") + ...); };
    return joined(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mode, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec,
                  facts.st_ctim.tv_sec, facts.st_ctim.tv_nsec);
}

// npm's links to the programs of installed packages: as ordinary as the packages.
bool leads_to_a_package(const std::string &directory, const std::string &target)
{
    return ("/" + directory).ends_with("/node_modules/.bin") && target.starts_with("../") && target.find("..", 3) == std::string::npos;
}

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
    const bool had_time = !has_input_now(channel);
    if (!wait_for_input(channel, in_seconds(1))) release_start_up_memory(); // as StartUpMemory does
    while (!wait_for_input(channel, in_seconds(60))) {
    }
    const std::optional<Packet> asked = receive_packet(channel, in_seconds(1));
    if (!asked) return; // the agent never ran
    fault_point("looking-back");
    Budget budget(defence_is_on("aftermath-bounds") ? aftermath_entries : ~std::size_t{0},
                  in_seconds(defence_is_on("aftermath-bounds") ? aftermath_seconds : 600), [&] { return has_input_now(channel); });
    Snapshot after = look_at_doors(plan, budget, false);
    const std::vector<Finding> findings = compare(before, after, plan.start);
    const auto links_after = look_at_links(plan, channel);
    if (after.has_project && had_time && !before.is_complete)
        after.is_complete = true; // a root that was too large before does not tell what this session did
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

void look_for_doors(const EarlyLook &look, const timespec &start, FdRef channel, bool /*has_person*/)
{
    look_twice(plan_of(look, start), look.cwd, channel);
}

// A child that looks before the session and after it.
class LookChild {
public:
    using Work = void (*)(const EarlyLook &look, const timespec &start, FdRef channel, bool has_person);

    // `remedy`: what a user does who hears nothing from it.
    LookChild(const EarlyLook &look, const timespec &start, Work work, const char *remedy) : remedy_(remedy)
    {
        auto [own, theirs] = make_channel();
        const pid_t parent = getpid();
        pid_ = fork();
        if (pid_ < 0) throw_errno("starting the look at what the session will leave");
        if (pid_ == 0) run_child(parent, look, start, theirs.get(), work);
        channel_ = std::move(own);
        has_screen_ = isatty(STDOUT_FILENO) == 1; // while it is open
    }
    LookChild(const LookChild &) = delete;
    LookChild &operator=(const LookChild &) = delete;
    ~LookChild()
    {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, WNOHANG); // not waited for: a file system that does not answer would hold it, and us
    }

    // What happens to it is seen where its answer is waited for.
    void say(const std::string &word) const noexcept { pi_agent::tell(channel_, word); }

    // The agent has ended, and the terminal is the user's again. A signal such as INT, in `impatience`, ends the wait silently: then false.
    bool tell(FdRef impatience) const
    {
        const std::string unknown = "pi: what this session left could not be looked at: the look ";
        std::string text = unknown + "was killed" + remedy_;
        try {
            const Deadline deadline = in_seconds(look_patience_seconds);
            ProgressLine progress(ProgressLine::Place::behind_output); // gone before anything else is written
            Came came = wait_for_either(channel_, impatience, Clock::now() + silence);
            if (came == Came::nothing) {
                if (has_screen_) progress.show("looking at what this session left");
                came = wait_for_either(channel_, impatience, deadline);
            }
            if (came == Came::impatience) return false;
            if (const auto answer = receive_record(channel_, deadline)) text = answer->bytes;
        } catch (const SystemFailure &) { // NOLINT(bugprone-empty-catch): a look that was killed has no end of the channel any more
        } catch (const DeadlineExceeded &) {
            text = unknown + "took longer than " + std::to_string(look_patience_seconds) + " seconds" + remedy_;
        } catch (const Failure &failure) {
            text = unknown + "did not end (" + failure.what() + ")" + remedy_;
        }
        tell_lines(text);
        return true;
    }

private:
    // Plans are made here: that follows what an agent may have written, to file systems that may not answer.
    [[noreturn]] static void run_child(pid_t parent, const EarlyLook &look, const timespec &start, int channel, Work work)
    {
        const bool has_person = isatty(STDERR_FILENO) == 1;
        try {
            if (keep_only(channel) && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent)
                work(look, start, FdRef(3), has_person);
        } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): the parent sees the end, and says so
        }
        _exit(0);
    }

    const char *remedy_;
    UniqueFd channel_;
    pid_t pid_ = -1;
    bool has_screen_ = false; // standard output is a terminal, not a pager
};

// Both looks, as far as the policy wants them. They begin before anything of the session runs.
class Aftermath {
public:
    Aftermath(const EarlyLook &look, Program program)
    {
        timespec start{};
        clock_gettime(CLOCK_REALTIME, &start);
        if (look.projects.aftermath)
            doors_.emplace(look, start, look_for_doors, "; look at the project yourself before you run git, an editor or programs there\n");
        const bool has_hands = program == Program::agent || program == Program::shell;
        if (look.projects.undo.on && !look.projects.read_only && has_hands)
            undo_.emplace(look, start, keep_undo, "; what pi-agentctl changes says may be too much\n");
    }

    void begin(const std::string &session) const
    {
        if (undo_) undo_->say(session);
    }

    void tell(const std::string &session) const
    {
        if (session.empty()) return;
        const UniqueFd impatience = watch_impatience();
        for (const auto *child : {&doors_, &undo_})
            if (*child) (*child)->say(session);
        for (const auto *child : {&doors_, &undo_})
            if (*child && !(*child)->tell(impatience)) return;
    }

private:
    std::optional<LookChild> doors_, undo_;
};
} // namespace

// Looking at a tree by descriptor.

void Budget::take_one() noexcept
{
    spent_ = spent_ || entries_-- == 0;
    if (spent_ || --until_clock_ != 0) return;
    until_clock_ = entries_between_clocks;
    spent_ = Clock::now() >= deadline_ || is_cancelled_();
}

std::optional<ShownTree> ShownTree::open(const std::string &path, Budget &budget)
{
    UniqueFd root = UniqueFd::adopt(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!root) return std::nullopt;
    return ShownTree(path, std::move(root), budget);
}

std::optional<std::string> ShownTree::below(const std::string &absolute) const
{
    return is_within(absolute, path_) ? std::optional(absolute.substr(std::min(path_.size() + 1, absolute.size()))) : std::nullopt;
}

UniqueFd ShownTree::open_path(const std::string &path, Links last) const
{
    budget_->take_one();
    if (budget_->is_spent()) return UniqueFd(); // whoever is in the middle of something comes to its end
    // Mounts inside were not shown to the session either.
    const std::uint64_t resolve = defence_is_on("aftermath-beneath") ? RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS : 0;
    return open_resolved(root_, path, O_PATH | (last == Links::refuse ? O_NOFOLLOW : 0), resolve);
}

std::optional<struct stat> ShownTree::look(const std::string &path, Links last) const
{
    const UniqueFd place = open_path(path, last);
    struct stat facts {};
    return place && fstat(place.get(), &facts) == 0 ? std::optional(facts) : std::nullopt;
}

std::optional<std::string> ShownTree::link_target(const std::string &path) const
{
    const UniqueFd place = open_path(path, Links::refuse);
    std::string target = place ? read_link(place, "") : "";
    return target.empty() ? std::nullopt : std::optional(target);
}

std::optional<std::string> ShownTree::read(const std::string &path, std::size_t limit) const
{
    const UniqueFd place = open_path(path, Links::follow);
    struct stat facts {};
    if (!place || fstat(place.get(), &facts) != 0) return std::nullopt;
    // Opening a pipe waits for its other end, and opening a device does things.
    const bool regular = defence_is_on("aftermath-regular-files");
    if (regular && !S_ISREG(facts.st_mode)) return std::nullopt;
    const UniqueFd file = reopen(place, O_RDONLY | (regular ? O_NONBLOCK : 0));
    if (!file) return std::nullopt;
    std::string content(std::min(limit, static_cast<std::size_t>(std::max<off_t>(facts.st_size, 0)) + 1), '\0');
    std::size_t length = 0;
    while (length < content.size()) {
        const ssize_t count = ::read(file.get(), content.data() + length, content.size() - length);
        if (count < 0) return std::nullopt;
        if (count == 0) break;
        length += static_cast<std::size_t>(count);
    }
    content.resize(length);
    return content;
}

Listing ShownTree::list(const std::string &path, Links links) const
{
    Listing listing;
    const UniqueFd place = open_path(path, links);
    if (!place || fstat(place.get(), &listing.facts) != 0 || !S_ISDIR(listing.facts.st_mode)) return listing;
    UniqueFd directory = reopen(place, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    listing.found = directory ? Listing::Found::listed : Listing::Found::unreadable;
    if (!directory) return listing;
    DirectoryStream stream(std::move(directory));
    if (!stream) return listing;
    while (!budget_->is_spent()) {
        const dirent *entry = stream.next();
        if (entry == nullptr) break;
        budget_->take_one();
        unsigned char type = entry->d_type;
        struct stat facts {};
        if (type == DT_UNKNOWN && fstatat(stream.fd().get(), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0)
            type = static_cast<unsigned char>(IFTODT(facts.st_mode));
        listing.entries.push_back(DirectoryEntry{entry->d_name, type});
    }
    return listing;
}

std::string normal_path(const std::string &path)
{
    std::string text = std::filesystem::path(path).lexically_normal().string();
    while (text.size() > 1 && text.back() == '/')
        text.pop_back();
    return text == "." ? "" : text;
}

// Comparing two looks.

bool is_later(const timespec &time, const timespec &than) noexcept
{
    return time.tv_sec != than.tv_sec ? time.tv_sec > than.tv_sec : time.tv_nsec > than.tv_nsec;
}

std::vector<Finding> compare(const Snapshot &before, const Snapshot &after, const timespec &start)
{
    std::vector<Finding> findings, others;
    for (const auto &[key, mark] : after.marks) {
        std::vector<Finding> &list = mark.found_first ? findings : others; // the nearest repository is what the user goes on with
        const auto earlier = before.marks.find(key);
        // What the first look found younger than the session's start may be the agent's own.
        const bool was_there = earlier != before.marks.end() && !is_later(earlier->second.changed, start);
        if (!was_there && has_appeared(before, key.first, mark, start))
            list.push_back(Finding{key.first, key.second, true});
        else if (was_there && !is_same(earlier->second, mark))
            list.push_back(Finding{key.first, key.second, false});
    }
    findings.insert(findings.end(), others.begin(), others.end());
    return findings;
}

// Marks: what a file is known again by.

void Marker::add(const std::string &path, const std::string &what, Mark mark)
{
    mark.found_first = first_;
    if (mark.content && mark.content->size() > content_left_) mark.content.reset();
    content_left_ -= mark.content ? mark.content->size() : 0;
    snapshot_.marks.emplace(std::pair(tree_.absolute(path), what), std::move(mark)); // the first time it is met
}

void Marker::file(const std::string &path, const std::string &what, Appearing appearing)
{
    auto facts = tree_.look(path, Links::refuse);
    if (!facts || S_ISDIR(facts->st_mode)) return;
    Mark mark{identity_of(*facts), std::nullopt, facts->st_ctim, appearing};
    std::string link;
    if (S_ISLNK(facts->st_mode)) {
        link = "link to " + tree_.link_target(path).value_or("") + '\0';
        const auto behind = tree_.look(path, Links::follow);
        if (behind) mark.identity += identity_of(*behind);
        if (behind && is_later(behind->st_ctim, mark.changed)) mark.changed = behind->st_ctim;
        if (!behind || S_ISDIR(behind->st_mode)) mark.content = link;
        facts = behind;
    }
    if (facts && S_ISREG(facts->st_mode) && facts->st_size <= content_limit)
        if (auto content = tree_.read(path, content_limit)) mark.content = link + ((facts->st_mode & 0111U) != 0 ? "x" : "-") + *content;
    add(path, what, std::move(mark));
}

void Marker::part(const std::string &path, const std::string &what, const struct stat &facts, std::optional<std::string> content,
                  Appearing appearing)
{
    add(path, what, Mark{identity_of(facts), std::move(content), facts.st_ctim, appearing});
}

void Marker::other_names(const std::string &path, const std::string &what)
{
    if (const auto facts = tree_.look(path, Links::follow); facts && S_ISREG(facts->st_mode) && facts->st_nlink > 1)
        part(path, what + " with another name (a hard link)", *facts, std::to_string(facts->st_nlink));
}

std::vector<DirectoryEntry> Marker::entries(const std::string &directory)
{
    Listing listing = tree_.list(directory, Links::follow);
    if (listing.found == Listing::Found::unreadable) unreadable(directory, listing.facts);
    return std::move(listing.entries);
}

void Marker::programs(const std::string &directory, Appearing appearing)
{
    const Listing listing = tree_.list(directory, Links::follow);
    if (listing.found == Listing::Found::unreadable) return unreadable(directory, listing.facts);
    if (listing.found == Listing::Found::nothing) return;
    snapshot_.program_directories.insert(tree_.absolute(directory));
    for (const auto &entry : listing.entries) {
        if (entry.type == DT_DIR) continue;
        const std::string path = join_path(directory, entry.name);
        const auto facts = tree_.look(path, Links::follow);
        const bool is_run = entry.type == DT_LNK || (facts && (facts->st_mode & 0111U) != 0) || entry.name.starts_with("activate");
        if (!is_run) continue;
        const bool may_be_ordinary = entry.type == DT_LNK && appearing != Appearing::counts;
        if (may_be_ordinary && leads_to_a_package(directory, tree_.link_target(path).value_or(""))) continue;
        file(path, "program", appearing);
    }
}

// A session between two looks.

AgentEnded run_watched(const EarlyLook &look, Program program, const RunSession &run)
{
    const Aftermath aftermath(look, program);
    SessionId session([&](const std::string &id) { aftermath.begin(id); });
    try {
        const AgentEnded ended = run(session);
        aftermath.tell(session);
        if (const auto notice = closed_network_notice(look.network, ended); program == Program::agent && !notice.empty()) tell(notice);
        return ended;
    } catch (const Failure &) { // the agent may have run for long before that
        aftermath.tell(session);
        throw;
    }
}

} // namespace pi_agent
