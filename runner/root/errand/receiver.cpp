// The receiver's end, what it opened, what ends a session that is being prepared, and the hand-over of its record.
#include "runner/root/errand/errand.hpp"

#include "runner/as_user/project.hpp"

#include <sys/signalfd.h>

#include <csignal>

namespace pi_agent {

// --- The receiver's end, what ends a session that is being prepared, and the hand-over of its record.

namespace {

constexpr const char *ended_text = "the session was ended while it was being prepared; try again";

constexpr int record_patience_seconds = 5;

} // namespace

UniqueFd watch_termination()
{
    sigset_t watched;
    sigemptyset(&watched);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT})
        sigaddset(&watched, number);
    if (sigprocmask(SIG_BLOCK, &watched, nullptr) != 0) throw_errno("blocking signals");
    UniqueFd fd = UniqueFd::adopt(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) throw_errno("watching signals");
    return fd;
}

std::optional<std::size_t> SessionWatch::wait(const std::vector<FdRef> &channels, Deadline deadline) const
{
    std::vector<pollfd> polled{{receiver.get(), POLLIN, 0}, {wrapper.get(), POLLRDHUP, 0}, {termination.get(), POLLIN, 0}};
    const std::size_t own = polled.size();
    for (const FdRef channel : channels)
        polled.push_back({channel.get(), POLLIN, 0});
    const int ready = poll(polled.data(), polled.size(), milliseconds_left(deadline));
    if (ready < 0 && errno != EINTR) throw_errno("waiting for a child");
    if (ready <= 0) return std::nullopt;
    if (polled[0].revents != 0) hear_receiver(); // first, because it tells why
    if ((polled[1].revents != 0 || polled[2].revents != 0) && defence_is_on("sync-ends-with-session"))
        throw Failure(FailureKind::changed_meanwhile, ended_text);
    for (std::size_t index = own; index < polled.size(); ++index)
        if (polled[index].revents != 0) return index - own;
    return std::nullopt;
}

void EarlyMessages::hear()
{
    constexpr std::size_t limit = 64; // more than these say nothing new
    const ReceiverEvent event = receiver_.receive();
    const auto *bytes = std::get_if<std::string>(&event);
    if (bytes == nullptr && defence_is_on("sync-ends-with-session")) throw Failure(FailureKind::changed_meanwhile, ended_text);
    if (bytes == nullptr) return;
    WrapperMessage message = decode_wrapper_message(*bytes);
    const auto *signal = std::get_if<ForwardSignal>(&message);
    if (signal != nullptr && asks_for_end(signal->number)) throw EndedBySignal{signal->number};
    if (messages_.size() < limit) messages_.push_back(message);
}

void hand_record_over(const AsRoot &root, const Policy &policy, const EnvironmentInput &environment, const LaunchRecord &record,
                      FdRef control, FdRef terminal, FdRef mode_changer)
{
    if (policy.env_files.empty() || !defence_is_on("late-secrets"))
        return send_launch(control, record, terminal, mode_changer, in_seconds(record_patience_seconds));
    Child sender(root, "sender of the policy's variables", [&] {
        EnvironmentInput with_values = environment;
        with_values.managed_files = read_managed_env_files(policy.env_files);
        LaunchRecord complete = record;
        complete.environment = compose_environment(with_values);
        send_launch(control, complete, terminal, mode_changer, in_seconds(record_patience_seconds));
        return std::string();
    });
    sender.receive_long(record_patience_seconds + child_patience_seconds);
}

Receiver::Receiver(const AsRoot &root, const Account &caller, const AccessRules &rules, const ToolchainsPolicy &toolchains, FdRef wrapper)
    : child_(root, "receiver of the request", caller, {wrapper.get()},
             [&](const AsUser & /*user*/, FdRef channel) { serve_caller(caller, rules, toolchains, wrapper, channel); })
{
}

Request Receiver::request()
{
    // The child gives up first, and says why.
    return decode_request(child_.receive_long(request_patience_seconds + child_patience_seconds));
}

ReceiverEvent Receiver::receive()
{
    try {
        const std::optional<Packet> packet = child_.receive_one();
        if (packet && packet->bytes == std::string(1, handed_over_tag)) return StdioHandedOver{};
        if (packet && packet->bytes[0] == message_tag) return packet->bytes.substr(1);
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): its user may kill the child: that ends the session like the wrapper's death
    }
    return WrapperGone{};
}

// --- Decides where a session works, on descriptors alone.

namespace {

constexpr std::ptrdiff_t levels_limit = 128;

// The caller's roots as they were opened.
struct OpenedRoots {
    std::vector<RootCandidate> candidates;
    std::vector<UniqueFd> descriptors;
};

std::string beneath(const std::string &path, const std::string &directory)
{
    return path.size() > directory.size() ? path.substr(directory.size() + 1) : std::string();
}

// Each directory on the way to what is shown occupies memory that all sessions share, and must be removed again.
void require_few_levels(const ShownTree &tree)
{
    if (std::count(tree.inside.begin(), tree.inside.end(), '/') < levels_limit) return;
    throw Failure(FailureKind::too_large, "limit: " + escape_for_display(tree.path()) + " lies more than " + std::to_string(levels_limit) +
                                              " directories below its root, too deep to be shown alone (projects.scope: project); ask the "
                                              "administrator for a root nearer to it");
}

// A git directory elsewhere is shown only where the caller may have an agent anyway.
void add_git_directory(OpenedProject &project, GitDirectory place, const OpenedRoots &roots, const Account &caller,
                       const AccessRules &rules, const IsShown &is_shown)
{
    const ProjectsPolicy &projects = project.policy.projects;
    const auto leave_out = [&](const std::string &why) {
        if (!project.notices.empty()) return; // both belong to one repository
        project.notices.push_back("git's own directory of this project, " + escape_for_display(place.told) +
                                  ", is not shown to the agent: " + why + "; git will not work in this session");
    };
    if (!place.directory) return leave_out(place.problem);
    const std::string path = path_of_directory(place.directory);
    const auto holds = [&](const ShownTree &tree) { return is_within(path, tree.path()); };
    if (holds(project.shown) || std::any_of(project.git_directories.begin(), project.git_directories.end(), holds)) return;
    if (!place.problem.empty()) return leave_out(place.problem);
    if (is_within(project.shown.path(), path)) return leave_out("the project is in it");
    if (projects.paths == ProjectPaths::alias) return leave_out("it is outside of the project, and projects.paths is 'alias'");
    std::optional<std::size_t> best;
    for (std::size_t index = 0; index < roots.candidates.size(); ++index)
        if (is_within(path, roots.candidates[index].path) &&
            (!best || roots.candidates[index].path.size() > roots.candidates[*best].path.size()))
            best = index;
    if (!best) return leave_out("it is in none of your project roots; ask the administrator to make a directory that holds it a root");
    const RootCandidate &root = roots.candidates[*best];
    if (root.mount != place.mount) return leave_out("it lies on another file system, mounted inside the root " + root.path);
    const PolicyPath *mask = mask_over(projects.mask, beneath(path, root.path));
    if (mask != nullptr && defence_is_on("masked-git-directories"))
        return leave_out("the policy masks what holds it (projects.mask: " + quote(mask->path) + ")");
    const std::string &own = project.shown.root_path;
    if (root.rules != roots.candidates[project.root].rules && root.rules && defence_is_on("root-rules"))
        return leave_out("its root " + root.path + " has rules of its own (" + to_string(root.where) +
                         "), which this session does not keep");
    if (root.path != own && are_nested(root.path, own))
        return leave_out("its root " + root.path + " and the project's root " + own + " are one inside the other");
    if (root.path != own) require_place_of_root(root, rules, projects.paths, is_shown);
    require_harmless_grant(caller, root.path, root.by_group);
    // The main repository's directory holds the worktree's own.
    std::erase_if(project.git_directories, [&](const ShownTree &tree) { return is_within(tree.path(), path); });
    project.git_directories.push_back(ShownTree{root.path, beneath(path, root.path), std::move(place.directory), root.by_group});
    require_few_levels(project.git_directories.back());
}

} // namespace

bool is_at_its_path(const ShownTree &tree)
{
    return path_of_directory(tree.directory) == tree.path();
}

std::vector<const ShownTree *> OpenedProject::trees() const
{
    std::vector<const ShownTree *> all{&shown};
    for (const auto &tree : git_directories)
        all.push_back(&tree);
    return all;
}

std::string OpenedProject::repository_path() const
{
    if (!repository) return "";
    return repository->empty() ? shown.path() : join_path(shown.path(), *repository);
}

std::variant<OpenedProject, Refused> open_project(Child &child, const Account &caller, const AccessRules &all, const HostView &view,
                                                  Policy callers, const AskedOfStart &asked)
{
    auto [cwd, cwd_facts] = decode_packet<OpenedPlace>(child.receive());
    if (!cwd) throw ProtocolError("the receiver sent no working directory");
    OpenedProject project;
    project.cwd_device = cwd_facts.device;
    project.cwd_inode = cwd_facts.inode;

    std::vector<OpenedPlace> places;
    std::vector<bool> there;
    while (there.size() < all.roots.size()) {
        auto place = decode_packet<OpenedPlace>(child.receive());
        there.push_back(place.directory.is_open());
        if (place.directory) places.push_back(std::move(place));
    }
    const AccessRules rules = with_roots_there(all, there);
    OpenedRoots roots;
    for (std::size_t index = 0; index < places.size(); ++index) {
        OpenedPlace &place = places[index];
        const GrantedRoot &granted = rules.roots[index];
        roots.candidates.push_back(
            RootCandidate{path_of_directory(place.directory), granted.by_group, granted.spec.where, granted.spec.rules, place.facts.mount});
        project.roots.push_back({roots.candidates.back().path, place.facts.device, place.facts.inode});
        roots.descriptors.push_back(std::move(place.directory));
    }
    auto repository = decode_packet<Repository>(child.receive());
    // The paths come from the descriptors, not from the child: the decision is about exactly what will be mounted.
    const std::string cwd_path = path_of_directory(cwd);
    const IsShown is_in_view = [&](const std::string &path) { return is_shown(view, path); };
    auto decision = decide_start(caller, rules, std::move(callers), {roots.candidates, cwd_path, cwd_facts.mount}, asked, is_in_view);
    if (auto *refused = std::get_if<Refused>(&decision)) return *refused;
    const std::size_t allowed = std::get<Start>(decision).root;
    const RootCandidate &root = roots.candidates[allowed];
    require_harmless_grant(caller, root.path, root.by_group);
    project.root = allowed;
    project.policy = std::move(std::get<Start>(decision).policy);
    const ProjectsPolicy &projects = project.policy.projects;
    for (std::size_t index = 0; index < roots.candidates.size(); ++index) {
        const RootCandidate &other = roots.candidates[index];
        if (other.rules && other.rules != root.rules && other.path != root.path && is_within(other.path, root.path))
            project.closed.push_back(project.roots[index]);
    }

    const std::string top = repository.top ? path_of_directory(repository.top) : std::string();
    const bool in_repository =
        repository.top && is_within(top, root.path) && is_within(cwd_path, top) && repository.mount == cwd_facts.mount;
    if (projects.shown() == ProjectScope::root || !defence_is_on("project-scope"))
        project.shown = ShownTree{root.path, "", std::move(roots.descriptors[allowed]), root.by_group};
    else if (in_repository)
        project.shown = ShownTree{root.path, beneath(top, root.path), std::move(repository.top), root.by_group};
    else
        project.shown = ShownTree{root.path, beneath(cwd_path, root.path), std::move(cwd), root.by_group};
    require_few_levels(project.shown);
    if (const auto refused = masked_start(projects, project.shown.path(), cwd_path)) throw Failure(FailureKind::masked, refused->text);
    if (!project.shown.inside.empty()) project.root_directory = std::move(roots.descriptors[allowed]);
    project.below = beneath(cwd_path, project.shown.path());
    if (!in_repository) return project;
    project.repository = beneath(top, project.shown.path());
    for (auto &place : repository.elsewhere)
        add_git_directory(project, std::move(place), roots, caller, rules, is_in_view);
    return project;
}

} // namespace pi_agent
