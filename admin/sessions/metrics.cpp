// Sums up sessions and starts, and writes the sums in the text form of Prometheus: `pi-agentctl metrics`.
#include "admin/sessions/sessions.hpp"
#include "admin/text/terminal.hpp"
#include "common/decide/explained.hpp"

#include <fmt/format.h>

namespace pi_agent {

namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

constexpr std::uint64_t second_in_usec = 1'000'000;

std::string to_seconds(std::uint64_t microseconds)
{
    return fmt::format("{}.{:06}", microseconds / second_in_usec, microseconds % second_in_usec);
}

// All samples of a family follow its head, and no family comes twice.
class Exposition {
public:
    void begin_family(const char *name, const char *help)
    {
        name_ = name;
        text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name, help);
    }
    void add(const Labels &labels, const std::string &value)
    {
        std::string list;
        for (const auto &[name, label] : labels) {
            // Values of labels have these three characters escaped, and nothing else.
            std::string text;
            for (const char byte : label)
                if (byte == '\n')
                    text += "\\n";
                else if (byte == '\\' || byte == '"')
                    text += std::string("\\") + byte;
                else
                    text += byte;
            list += fmt::format("{}{}=\"{}\"", list.empty() ? "" : ",", name, text);
        }
        text_ += name_ + (list.empty() ? "" : "{" + list + "}") + " " + value + "\n";
    }
    void add_single(const char *name, const char *help, const std::string &value)
    {
        begin_family(name, help);
        add({}, value);
    }
    void add_flag(const char *name, const char *help, bool value) { add_single(name, help, value ? "1" : "0"); }
    void add_time(const char *name, const char *help, const std::optional<std::uint64_t> &microseconds)
    {
        if (microseconds) add_single(name, help, to_seconds(*microseconds)); // a time that is not known has no sample
    }
    [[nodiscard]] std::string finish() && { return std::move(text_) + "# EOF\n"; }

private:
    std::string name_;
    std::string text_;
};

using Sums = std::map<Labels, std::uint64_t>;

void add_counts(Exposition &metrics, const char *name, const char *help, const Sums &sums)
{
    metrics.begin_family(name, help);
    for (const auto &[labels, sum] : sums)
        metrics.add(labels, std::to_string(sum));
}

void add_durations(Exposition &metrics, const char *name, const char *help, const Sums &sums)
{
    metrics.begin_family(name, help);
    for (const auto &[labels, sum] : sums)
        metrics.add(labels, to_seconds(sum));
}

void add_sessions(Exposition &metrics, const MetricsInput &input)
{
    Sums running, preparing, oldest, memory, processes;
    for (const auto &session : input.sessions) {
        const std::string name = without_escapes(session.user); // as the record's starts have it
        const Labels user = {{"user", name}};
        if (!session.started_usec) {
            ++preparing[user];
            continue;
        }
        ++running[{{"user", name}, {"method", session.method}}];
        oldest[user] = std::max(oldest[user], input.now_usec - std::min(input.now_usec, *session.started_usec));
        if (session.usage.memory) memory[user] += *session.usage.memory;
        if (session.usage.processes) processes[user] += *session.usage.processes;
    }
    add_counts(metrics, "pi_agent_sessions", "Sessions that run now.", running);
    add_counts(metrics, "pi_agent_sessions_preparing", "Sessions that are being prepared now.", preparing);
    add_durations(metrics, "pi_agent_sessions_oldest_age_seconds", "How long the oldest running session of the user has run.", oldest);
    add_counts(metrics, "pi_agent_sessions_memory_bytes", "Memory of the user's running sessions.", memory);
    add_counts(metrics, "pi_agent_sessions_processes", "Processes and threads of the user's running sessions.", processes);
}

std::string exit_label(const PastStart &start)
{
    if (start.exit_code) return std::to_string(*start.exit_code);
    if (start.exit_signal) return fmt::format("signal {}", *start.exit_signal);
    return "unknown";
}

void add_starts(Exposition &metrics, const MetricsInput &input)
{
    const std::uint64_t since = input.now_usec - std::min(input.now_usec, input.window_usec);
    Sums starts, refusals, ends, lasted;
    for (const auto &start : input.starts) {
        if (start.is_probe) continue;
        const bool has_ended = start.ended_usec && *start.ended_usec >= since;
        if (start.refused) {
            if (has_ended) {
                // A refusal that the wrapper reports is its user's word. Only codes that exist become labels, so that nobody adds as many
                // as they like.
                const bool is_known = std::ranges::any_of(failure_kinds(), [&](const KindFacts &kind) { return start.code == kind.code; });
                ++refusals[{
                    {"user", start.user}, {"code", is_known ? start.code : "other"}, {"said_by", start.said_by_root ? "root" : "user"}}];
            }
            continue;
        }
        if (start.started_usec && *start.started_usec >= since) ++starts[{{"user", start.user}, {"method", start.method}}];
        if (!has_ended) continue;
        ++ends[{{"user", start.user}, {"exit", exit_label(start)}}];
        if (start.duration_usec) lasted[{{"user", start.user}}] += *start.duration_usec;
    }
    metrics.add_single("pi_agent_recent_window_seconds", "How far back the other families with recent in their names go.",
                       to_seconds(input.window_usec));
    add_counts(metrics, "pi_agent_recent_starts", "Sessions that began in the window.", starts);
    add_counts(metrics, "pi_agent_recent_refusals", "Starts that came to no session in the window, by the code of their message.",
               refusals);
    add_counts(metrics, "pi_agent_recent_ends", "Sessions that ended in the window, by the exit status of the agent.", ends);
    add_durations(metrics, "pi_agent_recent_sessions_duration_seconds", "How long the sessions lasted that ended in the window, together.",
                  lasted);
}

// --- Collects what the metrics are made of, and writes them: `pi-agentctl metrics`.

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

} // namespace

std::string to_metrics(const MetricsInput &input)
{
    Exposition metrics;
    metrics.begin_family("pi_agent_build_info", "The version of pi-agent.");
    metrics.add({{"version", build::version}}, "1");
    metrics.add_time("pi_agent_metrics_written_timestamp_seconds", "When these metrics were written.", input.now_usec);
    add_sessions(metrics, input);
    add_starts(metrics, input);
    metrics.add_flag("pi_agent_policy_valid", "Whether the text of the policy has no error.", input.policy.errors == 0);
    metrics.add_single("pi_agent_policy_errors", "Errors in the text of the policy.", std::to_string(input.policy.errors));
    metrics.add_flag("pi_agent_policy_enabled", "Whether anybody may start the agent (wrapper.enable).", input.policy.is_enabled);
    metrics.add_flag("pi_agent_policy_applied", "Whether the policy is the one that apply saw last.", input.policy.is_applied);
    metrics.add_time("pi_agent_policy_changed_timestamp_seconds", "When the newest file of the policy changed.", input.policy.changed_usec);
    metrics.add_time("pi_agent_last_apply_timestamp_seconds", "When apply succeeded last.", input.policy.applied_usec);
    return std::move(metrics).finish();
}

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
    if (options.output) {
        if (!options.output->starts_with('/') || !options.output->ends_with(".prom") || options.output->ends_with("/.prom"))
            throw Failure(ExitStatus::usage, "--output " + quote(*options.output) +
                                                 ": name a file by its absolute path, which ends in .prom; the collector "
                                                 "reads no other");
        const auto [directory, name] = split_last(*options.output);
        const auto holder = open_trusted(directory.empty() ? "/" : directory, O_RDONLY | O_DIRECTORY, "directory of the metrics");
        replace_root_file(holder, name, text, metrics_mode, *options.output);
        return;
    }
    out << text;
}

} // namespace pi_agent
