// Numbers for a monitoring system: `pi-agentctl metrics`.
#pragma once

#include "admin/sessions/sessions.hpp"

namespace pi_agent {

// The policy's files, and what apply made of them.
struct PolicyFacts {
    std::size_t errors = 0; // of its text; this host may not fit it even so
    bool is_enabled = false;
    bool is_applied = false;                   // apply has seen these files last
    std::optional<std::uint64_t> changed_usec; // since 1970: the newest of them
    std::optional<std::uint64_t> applied_usec; // when apply succeeded last
};

struct MetricsInput {
    std::uint64_t now_usec = 0;    // since 1970
    std::uint64_t window_usec = 0; // how far back "recent" goes
    std::vector<SessionView> sessions;
    std::vector<PastStart> starts; // that began or ended in the window; of other times they count for nothing
    PolicyFacts policy;
};

// In the text form of Prometheus, as OpenMetrics has it too: families of gauges, each with HELP and TYPE, and "# EOF". No value names a
// path, a session or an argument. Pure.
std::string to_metrics(const MetricsInput &input);

struct MetricsOptions {
    std::optional<std::string> output; // an absolute path that ends in ".prom"; without it standard output
    std::string since = "24h";         // as parse_time (admin/text/terminal.hpp)
};

// The file is replaced in one step, so that nobody reads half of it. Throws Failure(usage) for another path, and Failure(configuration) if
// others than root can change its directory.
void run_metrics(const MetricsOptions &options, std::ostream &out, std::ostream &notes);

} // namespace pi_agent
