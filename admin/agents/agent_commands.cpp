// agent install, list, upgrade, rollback and prune: the order of their steps, what they print, and the unit that fetches.
#include "admin/agents/agents.hpp"

#include "admin/host/host_things.hpp"
#include "admin/programs/program.hpp"
#include "admin/text/terminal.hpp"
#include "common/host/beneath.hpp"
#include "runner/root/session/session_directory.hpp"

#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <iostream>
#include <spdlog/spdlog.h>
#include <thread>

namespace pi_agent {

namespace {

// --- Fetches in a transient unit: as an account that exists only for this, has no rights, and can write to one directory.

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

// The first of these variables that is set, in npm's order.
void take_variable(NpmSettings &settings, const char *key, const std::vector<const char *> &names)
{
    for (const auto *name : names)
        if (const auto value = host_variable(name)) {
            settings[key] = *value;
            return;
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

constexpr auto before_progress = std::chrono::milliseconds(500);

AsRoot begin_agent_command(const std::string &command)
{
    if (build::is_system_managed)
        throw Failure(ExitStatus::usage, command + ": the configuration of this system brings the agent; name its package there, and "
                                                   "rebuild the system");
    return claim_root(command, "reads and changes the agent's directories, so only root can run it");
}

// Shows the current step: on a terminal in one line that it overwrites, elsewhere each step once.
class FetchProgress {
public:
    explicit FetchProgress(std::ostream &out) : out_(out), is_terminal_(::isatty(STDERR_FILENO) != 0) {}
    ~FetchProgress() { clear(); }
    FetchProgress(const FetchProgress &) = delete;
    FetchProgress &operator=(const FetchProgress &) = delete;

    void hear(const FetchLine &line)
    {
        if (line.kind == FetchLine::Kind::size) {
            size_ = to_size(line.got) + (line.all > 0 ? " of " + to_size(line.all) : "");
        } else if (line.kind == FetchLine::Kind::step) {
            begin(escape_for_display(line.text));
        }
    }
    void begin(const std::string &step)
    {
        clear();
        step_ = step;
        size_.clear();
        began_ = Clock::now();
        if (!is_terminal_) out_ << step_ << '\n' << std::flush;
    }
    void show()
    {
        const auto since = Clock::now() - began_;
        if (!is_terminal_ || step_.empty() || since < before_progress) return;
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since).count();
        std::cerr << "\r\033[K" << step_.substr(0, 70) << "  " << (size_.empty() ? std::to_string(seconds) + "s" : size_) << std::flush;
        is_shown_ = true;
    }
    void clear()
    {
        if (is_shown_) std::cerr << "\r\033[K" << std::flush;
        is_shown_ = false;
    }

private:
    std::ostream &out_;
    bool is_terminal_;
    bool is_shown_ = false;
    std::string step_, size_;
    Clock::time_point began_ = Clock::now();
};

void require_no_session_of_hand(const AsRoot &root, const std::string &name)
{
    if (name != default_agent || !is_installed_by_hand(root) || live_sessions(root).empty()) return;
    throw Failure(ExitStatus::limit, std::string("sessions run the agent in ") + default_agent_link +
                                         ", which was installed by hand and has to make room; end them first: pi-agentctl stop --all");
}

std::string fetch_version(const AsRoot &root, const KnownAgent &agent, const std::string &version, const std::string &registry,
                          std::ostream &out)
{
    FetchOrder order = agent;
    if (version != agent.version) order.manifest = order.lock = "";
    order.version = version;
    configure_fetch(root, registry, order);
    if (!registry.empty() && !is_safe_on_the_way(order.registry))
        out << "warning: " << order.registry << " is reached without encryption, so others on the way can choose what is installed\n";
    FetchProgress progress(out);
    try {
        const auto fetched = fetch_in_unit(
            root, order, [&](const FetchLine &line) { progress.hear(line); }, [&] { progress.show(); });
        if (is_package_version(order.version) && fetched.version != order.version)
            throw Failure(ExitStatus::unavailable,
                          fmt::format("the registry gave {} {} instead of {}", agent.name, fetched.version, order.version));
        progress.begin(fmt::format("installing {} {}", agent.name, fetched.version));
        make_agents_directory(root, agent.name);
        if (!has_version(installed_agents(root), agent.name, fetched.version)) {
            take_over(root, agent, fetched);
            place_version(root, agent.name, fetched.version);
        }
        auto installed = fetched.version;
        end_fetch(root);
        return installed;
    } catch (const std::exception &) {
        try {
            remove_unfinished(root); // it may be large, and the disk full
        } catch (const Failure &failure) {
            spdlog::debug("{}", failure.what()); // the next run removes it; the caller reports the first failure
        }
        throw;
    }
}

void tell_what_starts(std::ostream &out)
{
    const auto expected = Policy().agent.binary;
    try {
        if (const auto policy = load_policy(policy_path); policy.agent.binary != expected)
            out << fmt::format("sessions still start {} ({}); remove agent.binary from the policy to start this one\n",
                               escape_for_display(policy.agent.binary), to_string(policy.agent.binary_where));
    } catch (const Failure &failure) {
        out << (failure.kind() == FailureKind::no_policy
                    ? "next: 'sudo pi-agentctl init' writes a policy, and 'sudo pi-agentctl apply' lets users start pi\n"
                    : "nobody can start it, because the policy has errors: 'sudo pi-agentctl check' lists them\n");
    }
}

InstalledAgent require_current(const AsRoot &root, const std::string &name)
{
    const auto current = current_agent(installed_agents(root), name);
    if (!current) throw NothingToDo(fmt::format("{} is not installed here; 'sudo pi-agentctl agent install {}' installs it", name, name));
    return *current;
}

} // namespace

void run_install_agent(const InstallOrder &order, std::ostream &out)
{
    const auto root = begin_agent_command(order.is_upgrade ? "agent upgrade" : "agent install");
    require_known_agent(order.request.substr(0, order.request.find('@')));
    const auto request = read_agent_request(order.request);
    const auto agent = read_known_agent(request.agent);
    const auto lock = take_agents_lock(root);
    require_no_session_of_hand(root, agent.name);
    remove_unfinished(root);
    auto version = request.version.empty() ? agent.version : request.version;
    if (order.is_upgrade) {
        const auto current = require_current(root, agent.name);
        if (request.version.empty() && is_package_version(current.version) && !is_older_version(current.version, agent.version)) {
            out << fmt::format("{} {} is in use; this release was tested with {}. '{}@latest' asks the registry for its latest one\n",
                               agent.name, current.version, agent.version, agent.name);
            return;
        }
    }
    if (!has_version(installed_agents(root), agent.name, version)) version = fetch_version(root, agent, version, order.registry, out);
    const auto before = current_agent(installed_agents(root), agent.name);
    if (before && before->version == version && is_linked(root, agent.name) && !is_installed_by_hand(root)) {
        out << fmt::format("{} {} is in use already\n", agent.name, version);
    } else {
        require_no_session_of_hand(root, agent.name);
        const auto applying = take_apply_lock(root); // apply looks at the same program
        switch_to(root, agent.name, version);
        out << fmt::format("done: {} {} starts from now on; sessions that run keep the version that they began with\n", agent.name,
                           version);
    }
    // Removes all versions but the current one and the one before. Removes nothing while a session lives, which may run any of them.
    for (const auto &old : installed_agents(root)) {
        if (old.is_current || old.is_previous || old.name != agent.name) continue;
        if (!live_sessions(root).empty()) {
            out << fmt::format("{} {} stays while sessions run; 'pi-agentctl agent prune' removes it later\n", old.name, old.version);
            continue;
        }
        remove_version(root, old.name, old.version);
        out << fmt::format("done: remove {} {}\n", old.name, old.version);
    }
    if (agent.name == default_agent) tell_what_starts(out);
}

void run_agent_list(bool json, std::ostream &out)
{
    const auto root = begin_agent_command("agent list");
    const auto all = installed_agents(root);
    const auto known = known_agents();
    const auto is_tested = [&](const InstalledAgent &agent) {
        return std::ranges::find(known, agent.name) != known.end() && read_known_agent(agent.name).version == agent.version;
    };
    if (json) {
        const nlohmann::json list = mapped(all, [&](const auto &agent) {
            return nlohmann::json{{"agent", agent.name},         {"version", agent.version},
                                  {"current", agent.is_current}, {"previous", agent.is_previous},
                                  {"tested", is_tested(agent)},  {"installed_at", to_utc_time(agent.since)}};
        });
        return print_json({{"agents", list}, {"installed_by_hand", is_installed_by_hand(root)}}, out);
    }
    if (is_installed_by_hand(root))
        out << default_agent_link << " was installed by hand; 'sudo pi-agentctl agent install' keeps it as an earlier version\n";
    else if (all.empty())
        out << "no agent is installed; 'sudo pi-agentctl agent install' installs pi\n";
    if (all.empty()) return;
    const auto rows = mapped(all, [&](const auto &agent) {
        return Row{agent.name, escape_for_display(agent.version),
                   agent.is_current    ? "current"
                   : agent.is_previous ? "previous"
                                       : "",
                   is_tested(agent) ? "yes" : "no", to_local_time(agent.since)};
    });
    out << to_table({"AGENT", "VERSION", "USE", "TESTED", "INSTALLED"}, rows);
}

void run_agent_rollback(const std::string &name, bool yes, std::ostream &out)
{
    const auto root = begin_agent_command("agent rollback");
    const auto request = read_agent_request(name);
    if (!request.version.empty())
        throw Failure(ExitStatus::usage, "agent rollback goes back to the version before; 'pi-agentctl agent install " + request.agent +
                                             "@" + request.version + "' switches to another one");
    const auto lock = take_agents_lock(root);
    const auto current = require_current(root, request.agent);
    const auto all = installed_agents(root);
    const auto former = std::ranges::find_if(
        all, [&](const InstalledAgent &agent) { return agent.name == request.agent && agent.is_previous && !agent.is_current; });
    if (former == all.end())
        throw NothingToDo(fmt::format("there is no version of {} before {} on this host", request.agent, current.version));
    require_consent(fmt::format("Start {} {} instead of {} from now on?", request.agent, former->version, current.version), yes);
    const auto applying = take_apply_lock(root);
    switch_back(root, request.agent);
    out << fmt::format("done: {} {} starts from now on; sessions that run keep the version that they began with\n", request.agent,
                       former->version);
}

void run_agent_prune(bool yes, std::ostream &out)
{
    const auto root = begin_agent_command("agent prune");
    const auto lock = take_agents_lock(root);
    remove_unfinished(root);
    std::vector<InstalledAgent> old;
    for (auto &agent : installed_agents(root))
        if (!agent.is_current && !agent.is_previous) old.push_back(std::move(agent));
    if (old.empty()) throw NothingToDo("there is nothing to remove: of each agent only the version in use and the one before are here");
    if (!live_sessions(root).empty())
        throw Failure(ExitStatus::limit, "sessions run, and may still read an old version; try again when they have ended");
    std::string question = "Remove";
    for (const auto &agent : old)
        question += " " + agent.name + " " + agent.version;
    require_consent(question + "?", yes);
    for (const auto &agent : old) {
        remove_version(root, agent.name, agent.version);
        out << fmt::format("done: remove {} {}\n", agent.name, agent.version);
    }
}

std::vector<UnitProperty> fetch_unit_properties()
{
    std::vector<UnitProperty> properties = {
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
        {"CapabilityBoundingSet", std::uint64_t{0}},
        {"AmbientCapabilities", std::uint64_t{0}},
        {"RestrictNamespaces", std::uint64_t{0}},
        {"RestrictAddressFamilies", NameFilter{true, {"AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"}}},
        {"SystemCallArchitectures", std::vector<std::string>{"native"}},
        {"SystemCallFilter", NameFilter{true, {"@system-service"}}},
        {"KeyringMode", std::string("private")},
        {"MemoryMax", 4096 * mebibyte},
        {"TasksMax", std::uint64_t{512}},
        {"LimitFSIZE", 1024 * mebibyte},
        {"LimitCORE", std::uint64_t{0}},
        {"KillMode", std::string("control-group")},
        {"KillSignal", SignedNumber{SIGKILL}},
        {"TimeoutStopUSec", 5 * second_in_microseconds},
        {"RuntimeMaxUSec", fetch_seconds * second_in_microseconds},
    };
    for (const char *on : {"ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs", "ProtectControlGroups", "ProtectClock",
                           "ProtectHostname", "PrivateTmp", "PrivateDevices", "PrivateIPC", "NoNewPrivileges", "RestrictSUIDSGID",
                           "RestrictRealtime", "LockPersonality", "SendSIGKILL"})
        properties.push_back({on, true});
    return properties;
}

void configure_fetch(const AsRoot & /*root*/, const std::string &registry, FetchOrder &order)
{
    // The host's configuration of npm; a later file overrides an earlier one. All of these files belong to root.
    const auto account = find_account(Uid(0));
    NpmSettings settings;
    for (const auto &path : {std::string("/usr/etc/npmrc"), std::string("/usr/local/etc/npmrc"), std::string("/etc/npmrc"),
                             (account ? account->home : "/root") + "/.npmrc"}) {
        const auto text = if_there([&] { return std::optional(read_trusted_file(path, npm_file_limit, "configuration of npm")); });
        if (!text) continue;
        for (auto &[key, value] : read_npmrc(*text, host_variable))
            settings[key] = value;
    }
    take_variable(settings, "registry", {"npm_config_registry", "NPM_CONFIG_REGISTRY"});
    take_variable(settings, "https-proxy", {"npm_config_https_proxy", "HTTPS_PROXY", "https_proxy"});
    take_variable(settings, "proxy", {"npm_config_proxy", "HTTP_PROXY", "http_proxy"});
    take_variable(settings, "noproxy", {"npm_config_noproxy", "NO_PROXY", "no_proxy"});
    take_variable(settings, "cafile", {"npm_config_cafile", "NPM_CONFIG_CAFILE"});
    if (!registry.empty()) settings["registry"] = registry;
    order.registry = settings["registry"];
    // Nothing on this host knows one: npm would.
    if (order.registry.empty() && !has_program("npm") && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1)
        order.registry = ask_line("The URL of your npm registry, as 'npm config get registry' prints it wherever npm is:", "").value_or("");
    if (!order.registry.empty()) {
        if (!is_registry_url(order.registry))
            throw Failure(ExitStatus::usage,
                          escape_for_display(without_secrets(order.registry)) +
                              " is not the URL of a registry, which 'npm config get registry' prints wherever npm is; write "
                              "https://HOST/PATH, or http:// where the way to it is safe, without name and password");
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
            for (const auto deadline = in_seconds(stop_seconds); systemd.unit_exists(fetch_unit);) {
                if (Clock::now() >= deadline)
                    throw Failure(ExitStatus::limit,
                                  std::string("the unit ") + fetch_unit + " of an earlier run does not end; run it again");
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
            }
        }
    }
    remove_trees({std::string("/var/lib/private/") + fetch_name, std::string("/var/lib/") + fetch_name}, "what was fetched");
}

FetchLine fetch_in_unit(const AsRoot &root, const FetchOrder &order, const HearFetch &hear, const std::function<void()> &wait)
{
    if (!has_systemd())
        throw Failure(ExitStatus::unavailable, "agent install needs systemd, which gives the download an account of its own, and this host "
                                               "does not run it; copy /usr/lib/pi-agent from a host that does");
    FetchLine last;
    UnitProgram program(root, fetch_unit, fetch_unit_properties(), write_fetch_order(order));
    const auto result = program.wait(in_seconds(static_cast<int>(fetch_seconds) + stop_seconds), [&] {
        // Reads the program's lines. An incomplete line stays in `output`.
        for (auto end = program.output.find('\n'); end != std::string::npos; end = program.output.find('\n')) {
            if (const auto line = read_fetch_line(std::string_view(program.output).substr(0, end))) {
                if (line->kind == FetchLine::Kind::done || line->kind == FetchLine::Kind::failure) last = *line;
                hear(*line);
            }
            program.output.erase(0, end + 1);
        }
        if (program.output.size() > mebibyte) program.output.clear(); // the program writes no line this long
        wait();
    });
    if (last.kind == FetchLine::Kind::failure) throw Failure(ExitStatus::unavailable, escape_for_display(last.text));
    const bool is_done = result.ended && result.code == CLD_EXITED && result.status == 0 && last.kind == FetchLine::Kind::done;
    if (!is_done)
        throw Failure(ExitStatus::unavailable,
                      std::string("fetching failed: ") + how_it_ended(result) + "; see: journalctl -u " + fetch_unit);
    return last;
}

} // namespace pi_agent
