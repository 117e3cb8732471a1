// Fetches in a transient unit: as an account that exists only for this, has no rights, and can write to one directory.
#include "admin/agents/agents.hpp"

#include "admin/programs/program.hpp"
#include "common/base/build_settings.hpp"
#include "common/host/trusted_file.hpp"
#include "common/seams/seams.hpp"

#include <csignal>
#include <cstdlib>
#include <thread>

namespace pi_agent {

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

} // namespace pi_agent
