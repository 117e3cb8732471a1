// Reads `network:` and `limits:`.
#include "common/policy/policy_sections.hpp"

#include "common/base/text.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace pi_agent {

namespace {

std::optional<NetworkPolicy> read_mode(const PolicyValue &value, Problems &problems)
{
    const bool is_text = value.node.kind == YamlNode::Kind::scalar;
    if (is_text && std::holds_alternative<IpRange>(parse_ip_range(value.node.text))) {
        problems.add(value.where, value.key, quote(value.node.text) + " is a range of addresses without a list around it",
                     "write [\"" + value.node.text + "\"]");
        return std::nullopt;
    }
    const auto mode = read_choice(value, problems);
    if (!mode) return std::nullopt;
    if (*mode == "full") return NetworkPolicy{};
    if (*mode == "none") return NetworkPolicy{NetworkMode::none, {}, value.where};
    return NetworkPolicy{NetworkMode::loopback, loopback_ranges(), value.where};
}

} // namespace

std::optional<NetworkPolicy> read_network(const PolicyValue &value, Problems &problems)
{
    if (value.node.kind != YamlNode::Kind::sequence) return read_mode(value, problems);
    const auto items = read_items(value, problems);
    NetworkPolicy network{NetworkMode::listed, {}, value.where};
    if (items->empty()) problems.add(value.where, value.key, "is an empty list", "say 'network: none', or name ranges of addresses");
    for (const auto &item : *items) {
        const auto text = read_line(item, problems);
        if (!text) continue;
        auto parsed = parse_ip_range(*text);
        if (const auto *problem = std::get_if<RangeProblem>(&parsed))
            problems.add(item.where, item.key, quote(*text) + " " + problem->text, problem->remedy);
        else
            network.allowed.push_back(std::get<IpRange>(std::move(parsed)));
    }
    return network;
}

namespace {

struct Suffix {
    char letter;
    std::uint64_t factor;
};

// One way of writing an amount, with what it may come to.
struct Measure {
    std::vector<Suffix> suffixes; // none: a plain number
    std::uint64_t least;
    std::uint64_t most;
    const char *form;   // how it is written
    const char *bounds; // in the words of the policy, with the reason where there is one
};

constexpr std::uint64_t percent_of_memory = 100;
constexpr std::uint64_t most_memory = std::uint64_t{1} << 50U; // far from what overflows, and more than any host has
constexpr std::uint64_t most_tasks = std::uint64_t{1} << 22U;  // the most numbers of processes that the kernel has
constexpr std::uint64_t most_cpu = 100'000;
constexpr std::uint64_t hour = 3600;
constexpr std::uint64_t most_runtime = hour * 24 * 365;

const Measure &memory_measure()
{
    static const Measure measure{
        {{'K', std::uint64_t{1} << 10U}, {'M', std::uint64_t{1} << 20U}, {'G', std::uint64_t{1} << 30U}, {'T', std::uint64_t{1} << 40U}},
        least_memory,
        most_memory,
        "a whole number with K, M, G or T (powers of 1024), or with % (of the host's memory), e.g. 8G or 50%",
        "at least 128M, as the agent itself takes more than half of that, and at most 1024T"};
    return measure;
}

const Measure &share_measure()
{
    static const Measure measure{{{'%', 1}}, 1, percent_of_memory, memory_measure().form, "between 1% and 100%"};
    return measure;
}

const Measure &tasks_measure()
{
    static const Measure measure{{},
                                 least_tasks,
                                 most_tasks,
                                 "a whole number of processes and threads, e.g. 4096",
                                 "at least 32, as the agent itself takes a dozen, and at most 4194304"};
    return measure;
}

const Measure &cpu_measure()
{
    static const Measure measure{{{'%', 1}},
                                 least_cpu,
                                 most_cpu,
                                 "a whole number with % (of one processor; more than 100% is more than one), e.g. 400%",
                                 "at least 10%, with which a start takes many seconds, and at most 100000%"};
    return measure;
}

const Measure &runtime_measure()
{
    static const Measure measure{{{'s', 1}, {'m', 60}, {'h', hour}, {'d', hour * 24}},
                                 least_runtime,
                                 most_runtime,
                                 "a whole number with s, m, h or d, e.g. 12h",
                                 "at least 10s, as a start is part of it, and at most 365d"};
    return measure;
}

const Measure &sessions_measure()
{
    static const Measure measure{{}, 1, most_sessions_of_user, "a whole number of sessions, e.g. 8", "between 1 and 64"};
    return measure;
}

enum class Verdict { amount, no_amount, out_of_bounds };

// Digits without a leading zero and one suffix; nothing else is an amount.
Verdict parse(std::string_view text, const Measure &measure, std::uint64_t &amount)
{
    std::uint64_t factor = 1;
    if (!measure.suffixes.empty()) {
        const auto suffix = std::find_if(measure.suffixes.begin(), measure.suffixes.end(),
                                         [&](const Suffix &known) { return !text.empty() && known.letter == text.back(); });
        if (suffix == measure.suffixes.end()) return Verdict::no_amount;
        factor = suffix->factor;
        text.remove_suffix(1);
    }
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
    if (!digits || (text.front() == '0' && text.size() > 1)) return Verdict::no_amount;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
    if (error != std::errc() || amount > measure.most / factor) return Verdict::out_of_bounds;
    amount *= factor;
    return amount < measure.least ? Verdict::out_of_bounds : Verdict::amount;
}

std::optional<SaidLimit> read_amount(const PolicyValue &value, const Measure &measure, Problems &problems)
{
    const bool scalar = value.node.kind == YamlNode::Kind::scalar;
    // A number in quotes is text, and a number without them none that has a suffix.
    const bool kind = scalar && (meaning_of_scalar(value.node) == ScalarMeaning::text) != measure.suffixes.empty();
    SaidLimit limit{0, scalar ? value.node.text : "", value.where};
    switch (kind ? parse(limit.text, measure, limit.amount) : Verdict::no_amount) {
    case Verdict::amount:
        return limit;
    case Verdict::no_amount:
        problems.add(value.where, value.key, std::string("must be ") + measure.form + ", found " + describe(value.node),
                     "correct it, or remove the key");
        break;
    case Verdict::out_of_bounds:
        problems.add(value.where, value.key, escape_for_display(limit.text) + " is out of bounds", std::string("say ") + measure.bounds);
        break;
    }
    return std::nullopt;
}

void read_memory(const PolicyValue &value, LimitsPolicy &limits, Problems &problems)
{
    const bool share = value.node.kind == YamlNode::Kind::scalar && !value.node.text.empty() && value.node.text.back() == '%';
    (share ? limits.memory_share : limits.memory) = read_amount(value, share ? share_measure() : memory_measure(), problems);
}

} // namespace

void read_limits(const PolicyValue &section, Policy &policy, Problems &problems)
{
    auto &limits = policy.limits;
    const auto into = [&](std::optional<SaidLimit> &limit, const Measure &measure) {
        return [&](const PolicyValue &value) { limit = read_amount(value, measure, problems); };
    };
    read_section(section,
                 {{"memory", [&](const PolicyValue &value) { read_memory(value, limits, problems); }},
                  {"tasks", into(limits.tasks, tasks_measure())},
                  {"cpu", into(limits.cpu, cpu_measure())},
                  {"runtime", into(limits.runtime, runtime_measure())},
                  {"sessions", into(limits.sessions, sessions_measure())}},
                 problems);
}

const std::optional<SaidLimit> &said_memory(const LimitsPolicy &limits) noexcept
{
    return limits.memory ? limits.memory : limits.memory_share;
}

} // namespace pi_agent
