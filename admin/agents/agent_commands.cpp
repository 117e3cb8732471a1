// install-agent, and agent list, upgrade, rollback and prune: the order of their steps, and what they print.
#include "admin/agents/agents.hpp"

#include "admin/host/host_things.hpp"
#include "admin/text/terminal.hpp"
#include "runner/root/session/session_directory.hpp"

#include <fmt/format.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace pi_agent {

namespace {

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

// Returns the version that was installed.
std::string fetch_and_place(const AsRoot &root, const KnownAgent &agent, const FetchOrder &order, FetchProgress &progress)
{
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
    return fetched.version;
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
        auto installed = fetch_and_place(root, agent, order, progress);
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

// Removes all versions but the current one and the one before. Removes nothing while a session lives, which may run any of them.
void remove_old(const AsRoot &root, const std::string &name, std::ostream &out)
{
    for (const auto &agent : installed_agents(root)) {
        if (agent.is_current || agent.is_previous || agent.name != name) continue;
        if (!live_sessions(root).empty()) {
            out << fmt::format("{} {} stays while sessions run; 'pi-agentctl agent prune' removes it later\n", agent.name, agent.version);
            continue;
        }
        remove_version(root, agent.name, agent.version);
        out << fmt::format("done: remove {} {}\n", agent.name, agent.version);
    }
}

void tell_what_starts(std::ostream &out)
{
    const auto expected = Policy().agent.binary;
    try {
        const auto policy = load_policy(policy_path);
        if (policy.agent.binary != expected)
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
    if (!current) throw Nothing(fmt::format("{} is not installed here; 'sudo pi-agentctl install-agent {}' installs it", name, name));
    return *current;
}

} // namespace

void run_install_agent(const InstallOrder &order, std::ostream &out)
{
    const auto root = begin_agent_command(order.is_upgrade ? "agent upgrade" : "install-agent");
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
    remove_old(root, agent.name, out);
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
        auto list = nlohmann::json::array();
        for (const auto &agent : all)
            list.push_back({{"agent", agent.name},
                            {"version", agent.version},
                            {"current", agent.is_current},
                            {"previous", agent.is_previous},
                            {"tested", is_tested(agent)},
                            {"installed_at", to_utc_time(agent.since)}});
        return print_json({{"agents", list}, {"installed_by_hand", is_installed_by_hand(root)}}, out);
    }
    if (is_installed_by_hand(root))
        out << default_agent_link << " was installed by hand; 'sudo pi-agentctl install-agent' keeps it as an earlier version\n";
    else if (all.empty())
        out << "no agent is installed; 'sudo pi-agentctl install-agent' installs pi\n";
    if (all.empty()) return;
    std::vector<Row> rows;
    for (const auto &agent : all)
        rows.push_back({agent.name, escape_for_display(agent.version),
                        agent.is_current    ? "current"
                        : agent.is_previous ? "previous"
                                            : "",
                        is_tested(agent) ? "yes" : "no", to_local_time(agent.since)});
    out << to_table({"AGENT", "VERSION", "USE", "TESTED", "INSTALLED"}, rows);
}

void run_agent_rollback(const std::string &name, bool yes, std::ostream &out)
{
    const auto root = begin_agent_command("agent rollback");
    const auto request = read_agent_request(name);
    if (!request.version.empty())
        throw Failure(ExitStatus::usage, "agent rollback goes back to the version before; 'pi-agentctl install-agent " + request.agent +
                                             "@" + request.version + "' switches to another one");
    const auto lock = take_agents_lock(root);
    const auto current = require_current(root, request.agent);
    const auto all = installed_agents(root);
    const auto former = std::ranges::find_if(
        all, [&](const InstalledAgent &agent) { return agent.name == request.agent && agent.is_previous && !agent.is_current; });
    if (former == all.end()) throw Nothing(fmt::format("there is no version of {} before {} on this host", request.agent, current.version));
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
    if (old.empty()) throw Nothing("there is nothing to remove: of each agent only the version in use and the one before are here");
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

} // namespace pi_agent
