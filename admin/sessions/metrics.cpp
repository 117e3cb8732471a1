// Collects what the metrics are made of, and writes them: `pi-agentctl metrics`.
#include "admin/sessions/metrics.hpp"

#include "admin/host/root_files.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_load.hpp"

#include <algorithm>
#include <fcntl.h>

namespace pi_agent {

namespace {

constexpr mode_t metrics_mode = 0644; // the collector runs as nobody special

// A policy that cannot be read is one with an error: everything else is still worth knowing.
PolicyFacts look_at_policy(const AsRoot &root)
{
    PolicyFacts facts;
    facts.applied_usec = last_apply(root);
    try {
        Problems problems;
        const PolicyFiles files = read_policy_sources(policy_path, std::nullopt, problems);
        for (const auto &file : files)
            facts.changed_usec = std::max(facts.changed_usec, time_of_file(file.name));
        const PolicyReading reading = read_policy_as_far_as_possible(policy_path);
        facts.errors = reading.problems.size();
        facts.is_enabled = reading.policy.wrapper.enable;
        const auto applied = read_applied(root).last;
        facts.is_applied = applied && are_same(*applied, files);
    } catch (const Failure &) {
        facts.errors = std::max<std::size_t>(facts.errors, 1);
    }
    return facts;
}

void write_output(const std::string &path, const std::string &text)
{
    if (!path.starts_with('/') || !path.ends_with(".prom") || path.ends_with("/.prom"))
        throw Failure(ExitStatus::usage, "--output " + quote(path) +
                                             ": name a file by its absolute path, which ends in .prom; the collector "
                                             "reads no other");
    const auto [directory, name] = split_last(path);
    const auto holder = open_trusted(directory.empty() ? "/" : directory, O_RDONLY | O_DIRECTORY, "directory of the metrics");
    replace_root_file(holder, name, text, metrics_mode, path);
}

} // namespace

void run_metrics(const MetricsOptions &options, std::ostream &out, std::ostream &notes)
{
    const auto root = claim_root("metrics", "looks at the sessions of all users, so only root can run it");
    MetricsInput input;
    input.now_usec = now_microseconds();
    const std::uint64_t since = parse_time(options.since, input.now_usec);
    if (since >= input.now_usec) throw Failure(ExitStatus::usage, "--since " + quote(options.since) + " is not in the past");
    input.window_usec = input.now_usec - since;
    input.sessions = list_sessions(root, std::nullopt);
    HistoryQuery query;
    query.since = since;
    const auto record = read_record(since);
    tell_if_cut(record, notes);
    input.starts = to_history(record.entries, query, [](const std::string & /*id*/) { return false; });
    input.policy = look_at_policy(root);
    const std::string text = to_metrics(input);
    if (options.output) return write_output(*options.output, text);
    out << text;
}

} // namespace pi_agent
