// Picks the sandbox that the policy names, and checks what the kernel reports about it against the policy.
#include "runner/root/method/sandbox.hpp"

#include "common/base/build_settings.hpp"
#include "common/host/beneath.hpp"
#include "runner/root/session/session_directory.hpp"

#include <sys/epoll.h>
#include <sys/mman.h>

namespace pi_agent {

namespace {

constexpr std::size_t overheard_limit = 4096;
constexpr std::size_t drop_in_limit = std::size_t{1} << 20U;

// best_effort, for notices and the record: a look that fails ends no session, and hides no exit status.
template <typename Look>
auto if_it_can_be_read(const Look &look) -> decltype(look())
{
    try {
        return look();
    } catch (const Failure &) {
        return {};
    }
}

// What is known of a method, whatever the session.
struct MethodRow {
    SandboxMethod method;
    const char *builder; // what makes the sandbox
    SandboxFacts facts;
    std::vector<MethodProgram> programs = {};
};

const MethodRow &row_of(SandboxMethod method)
{
    static const std::array<MethodRow, 5> rows = {
        {{SandboxMethod::systemd, "systemd", {Restrictions::beside_unit, {"mnt", "ipc", "uts", "user"}}},
         {SandboxMethod::none, "systemd", {Restrictions::none, {"mnt"}}},
         {SandboxMethod::bwrap,
          "bwrap",
          {Restrictions::all, {"mnt", "ipc", "uts", "pid"}},
          {{build::bwrap_path, "bubblewrap"}, {build::setpriv_path, "util-linux"}}},
         {SandboxMethod::podman, // podman 4.3 cannot leave /etc/hostname out. Its file has the host's name again.
          "podman",
          {Restrictions::all, {"mnt", "ipc", "uts", "pid"}, {"hostname"}},
          {{build::podman_path, "podman"}, {build::crun_path, "crun"}, {build::conmon_path, "conmon"}}},
         {SandboxMethod::docker, "docker", {Restrictions::all, {"mnt", "ipc", "uts", "pid"}}, {{build::docker_path, "docker.io"}}}}};
    for (const auto &row : rows)
        if (row.method == method) return row;
    throw Failure(ExitStatus::internal, "a sandbox method without facts");
}

} // namespace

UniqueFd Overheard::open()
{
    auto [ours, theirs] = make_pipe(O_NONBLOCK);
    pipe_ = std::move(ours);
    return std::move(theirs); // cppcheck-suppress returnStdMoveLocal ; it is a part of a pipe
}

const std::string &Overheard::text()
{
    std::array<char, 256> part{};
    ssize_t length = -1;
    while (pipe_ && (length = read(pipe_.get(), part.data(), part.size())) > 0)
        if (text_.size() < overheard_limit) text_.append(part.data(), static_cast<std::size_t>(length));
    if (length == 0) close();
    while (!text_.empty() && text_.back() == '\n')
        text_.pop_back();
    return text_;
}

Sandbox::Sandbox(const AsRoot &root, SandboxMethod method, std::string session_id, Uid user)
    : facts_(row_of(method).facts), root_(root), method_(method), id_(std::move(session_id)), user_(user),
      events_(UniqueFd::adopt(epoll_create1(EPOLL_CLOEXEC)))
{
    if (!events_) throw_errno("watching the sandbox");
    facts_.name = has_unit(method) ? "the session's unit " + service_name(id_) : "the session's sandbox (bwrap)";
    if (has_unit(method)) watch(systemd_.emplace(root).fd());
}

void Sandbox::watch(FdRef fd)
{
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) throw_errno("watching the sandbox");
}

void Sandbox::forget(FdRef fd)
{
    if (epoll_ctl(events_.get(), EPOLL_CTL_DEL, fd.get(), nullptr) != 0) throw_errno("watching the sandbox");
}

void Sandbox::kill()
{
    if (!systemd_) return stop(); // which asks the kernel alone
    kill_group(*group());
}

Deadline Sandbox::next_look(Deadline otherwise) const
{
    const Deadline next = std::min(otherwise, due_);
    return systemd_ ? systemd_->next_look(next) : next;
}

// The launcher is then alone in the unit, except for the process that started it and is about to end. That one is in the network namespace
// already, and in no mount namespace of the session's.
UniqueFd Sandbox::namespace_of_launcher(const std::string &kind)
{
    struct stat own {};
    if (stat(("/proc/self/ns/" + kind).c_str(), &own) != 0) throw_errno("reading an own namespace");
    UniqueFd found;
    ino_t inode = 0;
    for (const pid_t pid : processes()) {
        UniqueFd one = UniqueFd::adopt(open(("/proc/" + std::to_string(pid) + "/ns/" + kind).c_str(), O_RDONLY | O_CLOEXEC));
        struct stat facts {};
        if (!one || fstat(one.get(), &facts) != 0 || facts.st_ino == own.st_ino) continue;
        if (found && kind == "net" && facts.st_ino == inode) continue;
        if (found) throw Failure(ExitStatus::internal, "the session has more processes than its launcher before its agent starts");
        const std::vector<pid_t> still = processes(); // so nobody else has its number by now
        if (std::find(still.begin(), still.end(), pid) != still.end()) {
            found = std::move(one);
            inode = facts.st_ino;
        }
    }
    if (!found)
        throw Failure(FailureKind::sandbox_method,
                      builder() + " made no " + (kind == "net" ? "network" : "mount") + " namespace for the session");
    return found;
}

// Where there is no systemd, the kernel ends it with its runner. The runner may have given up the session's lock while it removes the
// session.
bool Sandbox::may_live(const std::string &session_id)
{
    if (!systemd_) return has_living_runner(session_id) && defence_is_on("bwrap:one-remover");
    return systemd_->unit_exists(service_name(session_id)) || systemd_->unit_exists(scope_name(session_id)) ||
           systemd_->unit_exists(cleanup_name(session_id));
}

void Sandbox::require_enforced(const Policy &policy)
{
    require_confined();
    if (facts_.restrictions == Restrictions::all && defence_is_on((builder() + ":require-confined").c_str())) require_own_namespaces();
    require_network(policy.network);
    require_limits(policy.limits);
}

SystemdBus &Sandbox::systemd()
{
    if (systemd_) return *systemd_;
    throw Failure(FailureKind::network_not_enforced, std::string("sandbox.method ") + to_string(method_) +
                                                         " starts no gate, which the policy's hosts need; use the method systemd, or "
                                                         "another network");
}

void Sandbox::require_harmless_drop_ins(const std::string &unit)
{
    if (!defence_is_on("unit-drop-ins")) return;
    for (const auto &file : systemd().drop_ins(unit))
        require_harmless_drop_in(file, read_trusted_file(file, drop_in_limit, "drop-in of systemd"));
}

// Of what systemd makes, the properties make sure.
void Sandbox::require_own_namespaces()
{
    const std::vector<pid_t> inside = processes();
    for (const auto &kind : facts_.namespaces)
        if (!have_own_namespace(inside, kind).value_or(false))
            throw Failure(FailureKind::sandbox_method, builder() + " made no namespace of its own for the session (" + kind + ")");
}

void Sandbox::require_network(const NetworkPolicy &network)
{
    if (has_own_network(network.mode))
        require_own_network(processes(), network);
    else if (network.mode != NetworkMode::full && has_unit(method_))
        require_packet_filters(root_, *group(), network);
}

void Sandbox::require_limits(const LimitsPolicy &limits)
{
    const auto said = first_for_group(limits);
    if (!said || !defence_is_on("limits-check")) return;
    const auto own = group();
    if (!own)
        throw Failure(FailureKind::limits_not_enforced, "this host cannot enforce the policy's " + to_string(*said) + ": " +
                                                            control_groups +
                                                            " is not a hierarchy of version 2 that root can write, where sandbox.method "
                                                            "bwrap makes the session's control group; or remove the key from the policy");
    require_limits_in(*own, limits,
                      has_unit(method_) ? "is it kept from its slice (DisableControllers=)?"
                                        : "is it handed to this container, and is the container's first group without processes of its own "
                                          "(cgroups(7))?");
}

// Asks the kernel while there is a group: systemd's answer takes long where it matters. Empty where there is neither.
UnitUsage Sandbox::usage()
{
    return if_it_can_be_read([&] {
        const auto own = group();
        const UnitUsage usage = own ? usage_of(*own) : UnitUsage{};
        return usage.cpu_usec || !systemd_ ? usage : systemd_->service_usage();
    });
}

LimitEvents Sandbox::limit_events()
{
    return if_it_can_be_read([&] {
        const auto own = group();
        return own ? read_limit_events(*own) : LimitEvents{};
    });
}

bool Sandbox::has_limits() const
{
    if (has_unit(method_)) return true;
    const auto own = group();
    return own && access((own->path + "/pids.max").c_str(), F_OK) == 0;
}

std::string Sandbox::builder() const
{
    return row_of(method_).builder;
}

std::string Sandbox::explain(const SandboxResult &result)
{
    std::string why = complaint_.text();
    if (why.empty()) why = (result.result == "success" ? "" : result.result + ", ") + "status " + std::to_string(result.status);
    return builder() + " could not prepare the sandbox (" + escape_for_display(why) + ")";
}

std::string Sandbox::where_to_look() const
{
    return has_unit(method_) ? "; the administrator finds more with: journalctl -u " + service_name(id_) : "";
}

std::vector<std::string> Sandbox::own_namespaces(const NetworkPolicy &network) const
{
    std::vector<std::string> kinds = facts_.namespaces;
    if (has_own_network(network.mode)) kinds.emplace_back("net");
    return kinds;
}

std::vector<MethodProgram> programs_of(SandboxMethod method)
{
    return row_of(method).programs;
}

std::optional<std::string> problem_of_program(SandboxMethod method, const MethodProgram &program)
{
    try {
        open_trusted(program.path, O_PATH, "program");
        return std::nullopt;
    } catch (const SystemFailure &failure) {
        return std::string(to_string(method)) + " needs " + program.path + ", and " + failure.what() + "; install the package " +
               program.package + ", or choose another method";
    }
}

void require_method_programs(SandboxMethod method)
{
    for (const auto &program : programs_of(method))
        if (const auto problem = problem_of_program(method, program))
            throw Failure(FailureKind::sandbox_method, "sandbox.method " + *problem);
}

UniqueFd write_arguments(const std::string &program, const std::vector<std::string> &arguments)
{
    std::string text;
    for (const auto &argument : arguments)
        text.append(argument).push_back('\0');
    UniqueFd file = UniqueFd::adopt(memfd_create(program.c_str(), MFD_CLOEXEC));
    if (!file || pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
        throw_errno("writing " + program + "'s arguments");
    return file;
}

std::unique_ptr<Sandbox> make_sandbox(const AsRoot &root, const SandboxPolicy &policy, const std::string &session_id, Uid user)
{
    switch (policy.method) {
    case SandboxMethod::systemd:
    case SandboxMethod::none:
        return std::make_unique<SystemdSandbox>(root, policy.method, session_id, user);
    case SandboxMethod::bwrap:
        return make_bwrap_sandbox(root, session_id, user);
    case SandboxMethod::podman:
    case SandboxMethod::docker:
        return make_engine_sandbox(root, policy, session_id, user);
    }
    throw Failure(ExitStatus::internal, "a sandbox method without a sandbox");
}

} // namespace pi_agent
