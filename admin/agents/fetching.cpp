// Fetching an agent as an account that exists only for this, and taking over what it fetched.
#include "admin/agents/agents.hpp"
#include "admin/programs/program.hpp"
#include "common/base/build_settings.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"

#include <fmt/format.h>
#include <sys/sendfile.h>

#include <csignal>
#include <cstdlib>
#include <thread>

namespace pi_agent {

// --- Fetches in a transient unit: as an account that exists only for this, has no rights, and can write to one directory.

namespace {

constexpr const char *fetch_unit = "pi-agent-fetch.service"; // one for the host: two would share one directory
constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
constexpr std::uint64_t second_in_microseconds = 1'000'000;
constexpr std::uint64_t fetch_seconds = 1800;
constexpr int stop_seconds = 10;
constexpr std::size_t npm_file_limit = std::size_t{1} << 20U;
constexpr std::size_t npm_certificates_limit = std::size_t{8} << 20U;

std::optional<std::string> host_variable(const std::string &name)
{
    const char *value = std::getenv(name.c_str()); // NOLINT(concurrency-mt-unsafe): this program has one thread
    return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

// The host's configuration of npm; a later file overrides an earlier one. All of these files belong to root.
NpmSettings npm_settings_of_host()
{
    const auto account = find_account(Uid(0));
    NpmSettings settings;
    for (const auto &path : {std::string("/usr/etc/npmrc"), std::string("/usr/local/etc/npmrc"), std::string("/etc/npmrc"),
                             (account ? account->home : "/root") + "/.npmrc"}) {
        const auto text = if_there([&] { return std::optional(read_trusted_file(path, npm_file_limit, "configuration of npm")); });
        if (!text) continue;
        for (auto &[key, value] : read_npmrc(*text, host_variable))
            settings[key] = value;
    }
    return settings;
}

// The first of these variables that is set, in npm's order.
void take_variable(NpmSettings &settings, const char *key, const std::vector<const char *> &names)
{
    for (const auto *name : names)
        if (const auto value = host_variable(name)) {
            settings[key] = *value;
            return;
        }
}

// Reads the program's lines. An incomplete line stays in `text`.
void hear_lines(std::string &text, FetchLine &last, const HearFetch &hear)
{
    for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
        if (const auto line = read_fetch_line(std::string_view(text).substr(0, end))) {
            if (line->kind == FetchLine::Kind::done || line->kind == FetchLine::Kind::failure) last = *line;
            hear(*line);
        }
        text.erase(0, end + 1);
    }
    if (text.size() > mebibyte) text.clear(); // the program writes no line this long
}

void wait_until_gone(SystemdBus &systemd)
{
    for (const auto deadline = in_seconds(stop_seconds); systemd.unit_exists(fetch_unit);) {
        if (Clock::now() >= deadline)
            throw Failure(ExitStatus::limit, std::string("the unit ") + fetch_unit + " of an earlier run does not end; run it again");
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

std::string how_it_ended(const SandboxResult &result)
{
    if (result.result == "timeout") return "it took longer than " + std::to_string(fetch_seconds / 60) + " minutes";
    if (result.result == "oom-kill") return "it needed more memory than it may use";
    if (result.code == 0) return "systemd could not start it (" + result.result + ")";
    return result.code == CLD_EXITED ? "it ended with status " + std::to_string(result.status)
                                     : "it was killed by signal " + std::to_string(result.status);
}

// --- Copies what was fetched, by descriptor: the agent gets no inode, owner or mode of the fetching account.

constexpr std::uint64_t most_entries = 300'000;
constexpr std::uint64_t most_bytes = std::uint64_t{4} << 30U;
constexpr std::ptrdiff_t deepest_tree = 64;
constexpr mode_t program_mode = 0755;
constexpr mode_t plain_mode = 0644;

[[noreturn]] void refuse_entry(const std::string &path, const std::string &problem)
{
    throw Failure(ExitStatus::denied, "the package is not installed: " + escape_for_display(path) + " " + problem);
}

void copy_bytes(FdRef from, FdRef to, std::uint64_t size, const std::string &path)
{
    while (size > 0) {
        const auto copied = ::sendfile(to.get(), from.get(), nullptr, size); // also from one file system to another
        if (copied < 0 && errno == EINTR) continue;
        if (copied < 0) throw_errno("cannot write " + std::string(agents_directory) + " (" + escape_for_display(path) + ")");
        if (copied == 0) return;
        size -= std::min(size, static_cast<std::uint64_t>(copied));
    }
}

// Copies one tree. It counts what it has seen, so that no tree keeps root busy for ever.
class TreeCopy {
public:
    explicit TreeCopy(uid_t owner) : owner_(owner) {}

    // `path` is for messages.
    void copy_directory(FdRef from, FdRef to, const std::string &path, std::ptrdiff_t depth)
    {
        if (depth > deepest_tree) refuse_entry(path, "nests too deep");
        for (const auto &name : names_in(from)) {
            const auto below = join_path(path, name);
            if (++entries_ > most_entries) refuse_entry(path, "is one of too many files");
            if (escape_for_display(name) != name) refuse_entry(below, "has an unsafe name");
            const auto entry = open_or_throw("opening " + below, from, name, O_PATH | O_NOFOLLOW);
            const auto facts = examine(entry, "examining " + below);
            if (const auto problem = problem_of_entry(facts, owner_)) refuse_entry(below, *problem);
            if (S_ISDIR(facts.st_mode))
                make_and_copy(from, to, name, below, depth + 1);
            else if (S_ISLNK(facts.st_mode))
                copy_link(entry, to, name, below, depth);
            else
                copy_file(from, to, name, below);
        }
    }

private:
    void make_and_copy(FdRef from, FdRef to, const std::string &name, const std::string &path, std::ptrdiff_t depth)
    {
        const auto inner = open_or_throw("opening " + path, from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (::mkdirat(to.get(), name.c_str(), program_mode) != 0) throw_errno("cannot create " + path);
        const auto made = open_or_throw("opening " + path, to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (::fchmod(made.get(), program_mode) != 0) throw_errno("cannot set the mode of " + path);
        copy_directory(inner, made, path, depth);
    }

    static void copy_link(FdRef entry, FdRef to, const std::string &name, const std::string &path, std::ptrdiff_t depth)
    {
        const auto text = read_link(entry, "");
        if (const auto problem = problem_of_link(text, depth)) refuse_entry(path, *problem);
        if (::symlinkat(text.c_str(), to.get(), name.c_str()) != 0) throw_errno("cannot create " + path);
    }

    void copy_file(FdRef from, FdRef to, const std::string &name, const std::string &path)
    {
        const auto file = open_or_throw("opening " + path, from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        const auto facts = examine(file, "examining " + path);
        if (const auto problem = problem_of_entry(facts, owner_); problem || !S_ISREG(facts.st_mode))
            refuse_entry(path, problem.value_or("is not a file"));
        const auto size = static_cast<std::uint64_t>(facts.st_size);
        if (bytes_ += size; bytes_ > most_bytes) refuse_entry(path, "is one of too many bytes");
        const auto made = open_or_throw("cannot create " + path, to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        copy_bytes(file, made, size, path);
        mode_t mode = (facts.st_mode & S_IXUSR) != 0 ? program_mode : plain_mode;
        if (!defence_is_on("agent-tree-modes")) mode |= facts.st_mode & (S_ISUID | S_ISGID);
        if (::fchmod(made.get(), mode) != 0) throw_errno("cannot set the mode of " + path);
    }

    uid_t owner_;
    std::uint64_t entries_ = 0;
    std::uint64_t bytes_ = 0;
};

void write_program(FdRef tree, const std::string &name, const std::string &text)
{
    if (::mkdirat(tree.get(), "bin", program_mode) != 0) throw_errno("cannot create bin of the agent");
    const auto bin = open_or_throw("opening bin of the agent", tree, "bin", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (::fchmod(bin.get(), program_mode) != 0) throw_errno("cannot set the mode of bin");
    const auto file = open_or_throw("cannot create bin/" + name, bin, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    write_whole(file, text, "bin/" + name);
    if (::fchmod(file.get(), program_mode) != 0) throw_errno("cannot set the mode of bin/" + name);
}

// What the launcher starts must exist, and be a file.
void require_file(FdRef tree, const std::string &path)
{
    const auto found = open_beneath(tree, path, O_PATH);
    if (!S_ISREG(examine(found, "examining " + path).st_mode)) refuse_entry(path, "is not a file, so it cannot be started");
}

} // namespace

std::vector<UnitProperty> fetch_unit_properties()
{
    return {
        {"Description", std::string("pi-agent-fetch")},
        {"CollectMode", std::string("inactive-or-failed")},
        {"AddRef", true}, // keeps the result readable until it is read
        {"Type", std::string("exec")},
        {"ExecStart", Command{{build::fetch_path}}},
        {"DynamicUser", true}, // an account that exists only while the unit runs
        {"StateDirectory", std::vector<std::string>{fetch_name}},
        {"StateDirectoryMode", std::uint32_t{0700}},
        {"ExecPaths", std::vector<std::string>{fetch_directory}}, // the node is started there, which newer systemds would forbid
        {"WorkingDirectory", std::string(fetch_directory)},
        {"UMask", std::uint32_t{077}},
        {"ProtectSystem", std::string("strict")},
        {"ProtectHome", std::string("yes")},
        {"ProtectProc", std::string("invisible")},
        {"ProtectKernelTunables", true},
        {"ProtectKernelModules", true},
        {"ProtectKernelLogs", true},
        {"ProtectControlGroups", true},
        {"ProtectClock", true},
        {"ProtectHostname", true},
        {"PrivateTmp", true},
        {"PrivateDevices", true},
        {"PrivateIPC", true},
        {"NoNewPrivileges", true},
        {"CapabilityBoundingSet", std::uint64_t{0}},
        {"AmbientCapabilities", std::uint64_t{0}},
        {"RestrictSUIDSGID", true},
        {"RestrictRealtime", true},
        {"RestrictNamespaces", std::uint64_t{0}},
        {"RestrictAddressFamilies", NameFilter{true, {"AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"}}},
        {"LockPersonality", true},
        {"SystemCallArchitectures", std::vector<std::string>{"native"}},
        {"SystemCallFilter", NameFilter{true, {"@system-service"}}},
        {"KeyringMode", std::string("private")},
        {"MemoryMax", 4096 * mebibyte},
        {"TasksMax", std::uint64_t{512}},
        {"LimitFSIZE", 1024 * mebibyte},
        {"LimitCORE", std::uint64_t{0}},
        {"KillMode", std::string("control-group")},
        {"KillSignal", SignedNumber{SIGKILL}},
        {"SendSIGKILL", true},
        {"TimeoutStopUSec", 5 * second_in_microseconds},
        {"RuntimeMaxUSec", fetch_seconds * second_in_microseconds},
    };
}

void configure_fetch(const AsRoot & /*root*/, const std::string &registry, FetchOrder &order)
{
    auto settings = npm_settings_of_host();
    take_variable(settings, "registry", {"npm_config_registry", "NPM_CONFIG_REGISTRY"});
    take_variable(settings, "https-proxy", {"npm_config_https_proxy", "HTTPS_PROXY", "https_proxy"});
    take_variable(settings, "proxy", {"npm_config_proxy", "HTTP_PROXY", "http_proxy"});
    take_variable(settings, "noproxy", {"npm_config_noproxy", "NO_PROXY", "no_proxy"});
    take_variable(settings, "cafile", {"npm_config_cafile", "NPM_CONFIG_CAFILE"});
    if (!registry.empty()) settings["registry"] = registry;
    order.registry = settings["registry"];
    if (!order.registry.empty()) {
        if (!is_registry_url(order.registry))
            throw Failure(ExitStatus::usage,
                          escape_for_display(without_secrets(order.registry)) +
                              " is not the URL of a registry; it begins with https://, and has no name and password in it");
        order.registry = registry_directory(order.registry);
        if (registry.empty() && !is_safe_on_the_way(order.registry))
            throw Failure(ExitStatus::configuration,
                          "the registry " + escape_for_display(order.registry) +
                              " of this host's npm configuration is reached without encryption, so that others on the way could choose "
                              "what is installed; write it with https://, or name it with --registry to take it anyway");
    }
    if (const auto file = settings.find("cafile"); file != settings.end())
        order.certificates = read_trusted_file(file->second, npm_certificates_limit, "cafile of npm's configuration");
    for (const auto &[key, value] : settings)
        if (is_npm_setting_of_fetch(key)) order.settings[key] = value;
}

void end_fetch(const AsRoot &root)
{
    if (has_systemd()) {
        SystemdBus systemd(root);
        if (systemd.unit_exists(fetch_unit)) {
            systemd.stop_unit(fetch_unit);
            wait_until_gone(systemd);
        }
    }
    remove_trees({std::string("/var/lib/private/") + fetch_name, std::string("/var/lib/") + fetch_name}, "what was fetched");
}

FetchLine fetch_in_unit(const AsRoot &root, const FetchOrder &order, const HearFetch &hear, const std::function<void()> &wait)
{
    if (!has_systemd())
        throw Failure(ExitStatus::unavailable, "install-agent needs systemd, which gives the download an account of its own, and this host "
                                               "does not run it; copy /usr/lib/pi-agent from a host that does");
    FetchLine last;
    UnitProgram program(root, fetch_unit, fetch_unit_properties(), write_fetch_order(order));
    const auto result = program.wait(in_seconds(static_cast<int>(fetch_seconds) + stop_seconds), [&] {
        hear_lines(program.output, last, hear);
        wait();
    });
    if (last.kind == FetchLine::Kind::failure) throw Failure(ExitStatus::unavailable, escape_for_display(last.text));
    const bool is_done = result.ended && result.code == CLD_EXITED && result.status == 0 && last.kind == FetchLine::Kind::done;
    if (!is_done)
        throw Failure(ExitStatus::unavailable,
                      std::string("fetching failed: ") + how_it_ended(result) + "; see: journalctl -u " + fetch_unit);
    return last;
}

std::optional<std::string> problem_of_entry(const struct stat &facts, uid_t owner)
{
    const auto kind = facts.st_mode & S_IFMT;
    if (kind != S_IFREG && kind != S_IFDIR && kind != S_IFLNK) return "is a device, fifo or socket, which no package needs";
    if (kind != S_IFLNK && (facts.st_mode & (S_ISUID | S_ISGID)) != 0 && defence_is_on("agent-tree-modes"))
        return "is setuid or setgid, which no package needs";
    if (!defence_is_on("agent-tree-owner")) return std::nullopt;
    if (facts.st_uid != owner) return "belongs to another account than the one that fetched it";
    if (kind == S_IFREG && facts.st_nlink != 1) return "has another name, which may lie elsewhere (a hard link)";
    return std::nullopt;
}

std::optional<std::string> problem_of_link(std::string_view text, std::ptrdiff_t depth)
{
    if (!defence_is_on("agent-tree-links")) return std::nullopt;
    if (text.empty() || text[0] == '/') return "is a symlink to an absolute path";
    bool is_below = false;
    for (const auto part : split(text, '/')) {
        const bool up = part == "..";
        // Behind a name that is a link itself, ".." would lead elsewhere than its text says.
        if (up && (is_below || depth-- == 0)) return "is a symlink that leads out of the package";
        is_below = is_below || (!up && !part.empty() && part != ".");
    }
    return std::nullopt;
}

std::string launcher_text(const KnownAgent &agent, const FetchLine &fetched)
{
    // Uses the tree's own name, because another version may take the link's place during a start. Where only the link is shown, uses the
    // link.
    const auto text = fmt::format("#!/bin/sh\n# {0} {1}, installed by pi-agentctl install-agent.\ntree={2}/{0}/{1}\n"
                                  "[ -d \"$tree\" ] || tree=${{0%/bin/*}}\n",
                                  agent.name, fetched.version, agents_directory);
    const bool is_native = !agent.platform_package.empty();
    return text + (is_native ? "exec" : "exec \"$tree/node/bin/node\"") + " \"$tree/" + fetched.program + "\" \"$@\"\n";
}

void take_over(const AsRoot & /*root*/, const KnownAgent &agent, const FetchLine &fetched)
{
    const auto private_directory = open_trusted("/var/lib/private", O_PATH | O_DIRECTORY, "directory of private state");
    const auto from = open_beneath(private_directory, std::string(fetch_name) + "/" + fetched_tree, O_RDONLY | O_DIRECTORY);
    const auto parent = open_trusted(agents_directory, O_RDONLY | O_DIRECTORY, "directory of agents");
    if (::mkdirat(parent.get(), unfinished_name, 0700) != 0) throw_errno("cannot create a directory in " + std::string(agents_directory));
    const auto to = open_or_throw("opening the new tree", parent, unfinished_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    fault_point("agent-copying");
    TreeCopy(examine(from, "examining what was fetched").st_uid).copy_directory(from, to, "", 0);
    require_file(to, fetched.program);
    if (agent.platform_package.empty()) require_file(to, "node/bin/node");
    write_program(to, agent.name, launcher_text(agent, fetched));
    if (::fchmod(to.get(), program_mode) != 0) throw_errno("cannot set the mode of the new tree");
    if (::syncfs(to.get()) != 0) throw_errno("cannot write the new tree to disk");
    fault_point("agent-copied");
}

} // namespace pi_agent
