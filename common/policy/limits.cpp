// Reads the limits of sessions, and says which amount is in force.
#include "common/policy/limits.hpp"

#include "common/policy/policy_values.hpp"

namespace pi_agent {

namespace {

enum class Verdict { amount, no_amount, out_of_bounds };

constexpr std::pair<char, std::uint64_t> factors[] = {{'K', std::uint64_t{1} << 10U},
                                                      {'M', std::uint64_t{1} << 20U},
                                                      {'G', std::uint64_t{1} << 30U},
                                                      {'T', std::uint64_t{1} << 40U},
                                                      {'s', 1},
                                                      {'%', 1},
                                                      {'m', 60},
                                                      {'h', 3600},
                                                      {'d', 24 * 3600}};

// Digits without a leading zero and one unit; nothing else is an amount.
Verdict parse(std::string_view text, const LimitRow &row, std::uint64_t &amount)
{
    std::uint64_t factor = 1;
    if (!row.units.empty()) {
        if (text.empty() || row.units.find(text.back()) == std::string_view::npos) return Verdict::no_amount;
        factor = std::find_if(std::begin(factors), std::end(factors), [&](const auto &one) { return one.first == text.back(); })->second;
        text.remove_suffix(1);
    }
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
    if (!digits || (text.front() == '0' && text.size() > 1)) return Verdict::no_amount;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
    if (error != std::errc() || amount > row.most / factor) return Verdict::out_of_bounds;
    amount *= factor;
    return amount < row.least ? Verdict::out_of_bounds : Verdict::amount;
}

} // namespace

const LimitRow &limit_row(LimitMember limit)
{
    return *std::find_if(std::begin(limit_rows), std::end(limit_rows), [limit](const LimitRow &row) { return row.said == limit; });
}

const std::optional<SaidLimit> &said_memory(const LimitsPolicy &limits) noexcept
{
    return limits.memory ? limits.memory : limits.memory_share;
}

const std::optional<SaidLimit> &said_for_key(const LimitsPolicy &limits, const LimitRow &row) noexcept
{
    return row.said == &LimitsPolicy::memory || row.said == &LimitsPolicy::memory_share ? said_memory(limits) : limits.*row.said;
}

std::string_view default_text(const LimitRow &row)
{
    const std::string_view key = row.key;
    const auto dot = key.find('.');
    return find_policy_key(key.substr(0, dot), key.substr(dot + 1))->standard;
}

std::optional<std::uint64_t> in_force(const LimitsPolicy &limits, const LimitRow &row)
{
    if (const auto &said = limits.*row.said) return said->amount;
    std::uint64_t amount = 0;
    const bool is_default = !said_for_key(limits, row) && parse(default_text(row), row, amount) == Verdict::amount;
    return is_default ? std::optional(amount) : std::nullopt;
}

std::uint64_t in_force(const LimitsPolicy &limits, LimitMember limit)
{
    return in_force(limits, limit_row(limit)).value();
}

std::string text_in_force(const LimitsPolicy &limits, const LimitRow &row)
{
    if (const auto &said = limits.*row.said) return said->text;
    return in_force(limits, row) ? std::string(default_text(row)) : "";
}

std::optional<SaidLimit> read_said_limit(const LimitRow &row, const PolicyValue &value)
{
    const bool scalar = value.is(YamlNode::Kind::scalar);
    SaidLimit limit{0, scalar ? value.node.text : "", value.where};
    const bool is_share = limit.text.ends_with('%');
    if ((row.said == &LimitsPolicy::memory && is_share) || (row.said == &LimitsPolicy::memory_share && !is_share)) return std::nullopt;
    // A number in quotes is text. A number without quotes has no unit.
    const bool kind = scalar && value.means(ScalarMeaning::text) != row.units.empty();
    switch (kind ? parse(limit.text, row, limit.amount) : Verdict::no_amount) {
    case Verdict::amount:
        return limit;
    case Verdict::no_amount:
        value.report(std::string("must be ") + row.form + ", found " + describe(value.node), "correct it, or remove the key");
        break;
    case Verdict::out_of_bounds:
        value.report(escape_for_display(limit.text) + " is out of bounds", std::string("say ") + row.bounds);
        break;
    }
    return std::nullopt;
}

} // namespace pi_agent
