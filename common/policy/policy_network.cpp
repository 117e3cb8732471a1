// Reads `network:` and `limits:`.
#include "common/policy/policy_sections.hpp"

#include "common/base/text.hpp"

#include <array>
#include <charconv>
#include <string_view>

namespace pi_agent {

namespace {

std::optional<NetworkPolicy> read_mode(const PolicyValue &value)
{
    const std::string &text = value.node.text;
    if (value.is(YamlNode::Kind::scalar) && std::holds_alternative<IpRange>(parse_ip_range(text))) {
        value.refuse(text, RangeProblem{"is a range of addresses without a list around it", "write [\"" + text + "\"]"});
        return std::nullopt;
    }
    const auto choice = read_choice(value);
    if (!choice) return std::nullopt;
    const auto mode = static_cast<NetworkMode>(*choice); // the table has them in this order
    return NetworkPolicy{mode, mode == NetworkMode::loopback ? loopback_ranges() : std::vector<IpRange>(), value.where};
}

// One way of writing an amount, with what it may come to.
struct Measure {
    std::string_view suffixes;            // letters; none: a plain number
    std::array<std::uint64_t, 4> factors; // of these
    std::uint64_t least;
    std::uint64_t most;
    const char *form;   // how it is written
    const char *bounds; // in the words of the policy, with the reason where there is one
};

constexpr std::uint64_t hour = 3600;
constexpr const char *form_of_memory =
    "a whole number with K, M, G or T (powers of 1024), or with % (of the host's memory), e.g. 8G or 50%";
constexpr std::uint64_t most_memory = std::uint64_t{1} << 50U; // far from what overflows, and more than any host has
constexpr std::uint64_t most_tasks = std::uint64_t{1} << 22U;  // the most numbers of processes that the kernel has

constexpr Measure memory_measure{
    "KMGT",         {std::uint64_t{1} << 10U, std::uint64_t{1} << 20U, std::uint64_t{1} << 30U, std::uint64_t{1} << 40U},
    least_memory,   most_memory,
    form_of_memory, "at least 128M, as the agent itself takes more than half of that, and at most 1024T"};
constexpr Measure share_measure{"%", {1}, 1, 100, form_of_memory, "between 1% and 100%"};
constexpr Measure tasks_measure{"",
                                {},
                                least_tasks,
                                most_tasks,
                                "a whole number of processes and threads, e.g. 4096",
                                "at least 32, as the agent itself takes a dozen, and at most 4194304"};
constexpr Measure cpu_measure{"%",
                              {1},
                              least_cpu,
                              100'000,
                              "a whole number with % (of one processor; more than 100% is more than one), e.g. 400%",
                              "at least 10%, with which a start takes many seconds, and at most 100000%"};
constexpr Measure runtime_measure{"smhd",
                                  {1, 60, hour, hour * 24},
                                  least_runtime,
                                  hour * 24 * 365,
                                  "a whole number with s, m, h or d, e.g. 12h",
                                  "at least 10s, as a start is part of it, and at most 365d"};
constexpr Measure disk_measure{"KMGT",
                               {std::uint64_t{1} << 10U, std::uint64_t{1} << 20U, std::uint64_t{1} << 30U, std::uint64_t{1} << 40U},
                               least_disk,
                               most_memory,
                               "a whole number with K, M, G or T (powers of 1024), e.g. 10G",
                               "at least 64M, as an agent with a few packages takes more, and at most 1024T"};
constexpr Measure sessions_measure{"", {}, 1, most_sessions_of_user, "a whole number of sessions, e.g. 8", "between 1 and 64"};

enum class Verdict { amount, no_amount, out_of_bounds };

// Digits without a leading zero and one suffix; nothing else is an amount.
Verdict parse(std::string_view text, const Measure &measure, std::uint64_t &amount)
{
    std::uint64_t factor = 1;
    if (!measure.suffixes.empty()) {
        const std::size_t suffix = text.empty() ? std::string_view::npos : measure.suffixes.find(text.back());
        if (suffix == std::string_view::npos) return Verdict::no_amount;
        factor = measure.factors.at(suffix);
        text.remove_suffix(1);
    }
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
    if (!digits || (text.front() == '0' && text.size() > 1)) return Verdict::no_amount;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
    if (error != std::errc() || amount > measure.most / factor) return Verdict::out_of_bounds;
    amount *= factor;
    return amount < measure.least ? Verdict::out_of_bounds : Verdict::amount;
}

std::optional<SaidLimit> read_amount(const PolicyValue &value, const Measure &measure)
{
    const bool scalar = value.is(YamlNode::Kind::scalar);
    // A number in quotes is text. A number without quotes has no suffix.
    const bool kind = scalar && value.means(ScalarMeaning::text) != measure.suffixes.empty();
    SaidLimit limit{0, scalar ? value.node.text : "", value.where};
    switch (kind ? parse(limit.text, measure, limit.amount) : Verdict::no_amount) {
    case Verdict::amount:
        return limit;
    case Verdict::no_amount:
        value.report(std::string("must be ") + measure.form + ", found " + describe(value.node), "correct it, or remove the key");
        break;
    case Verdict::out_of_bounds:
        value.report(escape_for_display(limit.text) + " is out of bounds", std::string("say ") + measure.bounds);
        break;
    }
    return std::nullopt;
}

} // namespace

std::optional<NetworkPolicy> read_network(const PolicyValue &value)
{
    if (value.is(YamlNode::Kind::mapping)) return read_hosts(value);
    if (!value.is(YamlNode::Kind::sequence)) return read_mode(value);
    const auto items = read_items(value);
    NetworkPolicy network{NetworkMode::listed, {}, value.where};
    if (items->empty()) value.report("is an empty list", "say 'network: none', or name ranges of addresses");
    for (const auto &item : *items) {
        const auto text = read_line(item);
        if (!text) continue;
        auto parsed = parse_ip_range(*text);
        if (const auto *problem = std::get_if<RangeProblem>(&parsed))
            item.refuse(*text, *problem);
        else
            network.allowed.push_back(std::get<IpRange>(std::move(parsed)));
    }
    return network;
}

void read_limits(const PolicyValue &section, Rules &rules)
{
    auto &limits = rules.limits;
    const auto noting = [&rules](const char *key, Reader read) { return with_place(rules, key, std::move(read)); };
    const auto read_memory = [&](const PolicyValue &value) {
        const bool share = value.is(YamlNode::Kind::scalar) && value.node.text.ends_with('%');
        (share ? limits.memory_share : limits.memory) = read_amount(value, share ? share_measure : memory_measure);
    };
    const auto into_limit = [](std::optional<SaidLimit> &limit, const Measure &measure) {
        return [&limit, &measure](const PolicyValue &value) { limit = read_amount(value, measure); };
    };
    read_section(section,
                 {{"memory", noting("limits.memory", read_memory)},
                  {"tasks", noting("limits.tasks", into_limit(limits.tasks, tasks_measure))},
                  {"cpu", noting("limits.cpu", into_limit(limits.cpu, cpu_measure))},
                  {"runtime", noting("limits.runtime", into_limit(limits.runtime, runtime_measure))},
                  {"sessions", noting("limits.sessions", into_limit(limits.sessions, sessions_measure))},
                  {"disk", noting("limits.disk", into_limit(limits.disk, disk_measure))},
                  {"disk_without_quota", noting("limits.disk_without_quota", into_choice(limits.without_quota, WithoutQuota::tell))}});
}

const std::optional<SaidLimit> &said_memory(const LimitsPolicy &limits) noexcept
{
    return limits.memory ? limits.memory : limits.memory_share;
}

} // namespace pi_agent
