// Strict readers of policy values.
#include "common/policy/policy_values.hpp"

#include "common/base/text.hpp"
#include "common/host/account.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

void report_type(const PolicyValue &value, const std::string &wanted, const std::string &remedy, Problems &problems)
{
    problems.add(value.where, value.key, "must be " + wanted + ", found " + describe(value.node), remedy);
}

bool has_control_character(std::string_view text) noexcept
{
    return std::any_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F; });
}

template <typename Number>
nlohmann::json read_number(const PolicyValue &value, Problems &problems)
{
    Number number{};
    const auto &text = value.node.text;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return number;
    problems.add(value.where, value.key, "the number " + text.substr(0, 40) + " is too large to be kept exactly",
                 "put it in quotes to make it text");
    return nullptr;
}

nlohmann::json read_json_scalar(const PolicyValue &value, Problems &problems)
{
    switch (meaning_of_scalar(value.node)) {
    case ScalarMeaning::text:
        return value.node.text;
    case ScalarMeaning::null:
        return nullptr;
    case ScalarMeaning::boolean:
        return value.node.text == "true";
    case ScalarMeaning::integer:
        return read_number<std::int64_t>(value, problems);
    case ScalarMeaning::real:
        return read_number<double>(value, problems);
    case ScalarMeaning::odd:
        break;
    }
    problems.add(value.where, value.key, "must be written as in JSON, found " + describe(value.node),
                 "write true, false, null or a decimal number, or put it in quotes to make it text");
    return nullptr;
}

// A rule that no page and no schema tells of, or a key of theirs that nobody reads.
void require_same(const std::vector<const PolicyKey *> &known, const std::vector<KeyRule> &rules)
{
    const auto has_entry = [&](const KeyRule &rule) {
        return std::any_of(known.begin(), known.end(), [&](const PolicyKey *key) { return last_part(*key) == rule.name; });
    };
    const auto missing = std::find_if_not(rules.begin(), rules.end(), has_entry);
    if (missing != rules.end()) throw Failure(ExitStatus::internal, fmt::format("the key '{}' is not in the table of keys", missing->name));
    if (known.size() != rules.size())
        throw Failure(ExitStatus::internal, fmt::format("nobody reads one of the keys beside '{}'", display_path(*known.front())));
}

// "; did you mean 'sandbox.method'?" for a key that stands elsewhere in the policy. There are keys that cannot be said of one user.
std::string did_you_mean_elsewhere(std::string_view name, bool of_one_user)
{
    for (const auto &key : policy_keys()) {
        if (last_part(key) != name || name == "*") continue;
        if (!of_one_user) return "; did you mean " + quote(display_path(key)) + "?";
        return ": " + quote(display_path(key)) + " holds for the whole policy, and cannot be said for one user or group";
    }
    return "";
}

void report_unknown(const YamlEntry &entry, const PolicyValue &value, const std::vector<const PolicyKey *> &known, Problems &problems)
{
    std::vector<std::string_view> names;
    for (const auto *key : known)
        names.push_back(last_part(*key));
    auto hint = did_you_mean_elsewhere(entry.key, value.key.starts_with("users."));
    if (hint.empty()) hint = did_you_mean(entry.key, names);
    problems.add(entry.where, value.key, "unknown key" + hint, fmt::format("known here: {}", fmt::join(names, ", ")));
}

} // namespace

PolicyValue value_of(const YamlEntry &entry, const PolicyValue &parent)
{
    const auto name = escape_for_display(entry.key);
    // A missing value stands, for yaml-cpp, wherever the next thing begins: its key is the better place.
    const auto &where = entry.value.kind == YamlNode::Kind::null ? entry.where : entry.value.where;
    const bool top = parent.key.empty();
    const auto *known = top || parent.entry != nullptr ? find_policy_key(top ? "" : parent.entry->path, entry.key) : nullptr;
    return {entry.value, top ? name : parent.key + "." + name, where, known};
}

void read_section(const PolicyValue &section, const std::vector<KeyRule> &rules, Problems &problems)
{
    if (section.node.kind != YamlNode::Kind::mapping) {
        report_type(section, "a mapping", "write its keys indented below it, or remove it", problems);
        return;
    }
    const auto known = policy_keys_below(section.entry == nullptr ? "" : section.entry->path);
    require_same(known, rules);
    for (const auto &entry : section.node.entries) {
        const auto value = value_of(entry, section);
        const auto rule = std::find_if(rules.begin(), rules.end(), [&entry](const KeyRule &one) { return one.name == entry.key; });
        if (rule != rules.end())
            rule->read(value);
        else
            report_unknown(entry, value, known, problems);
    }
}

std::optional<std::vector<PolicyValue>> read_entries(const PolicyValue &mapping, Problems &problems)
{
    if (mapping.node.kind != YamlNode::Kind::mapping) {
        report_type(mapping, "a mapping", "write 'name: value' lines indented below it", problems);
        return std::nullopt;
    }
    std::vector<PolicyValue> values;
    for (const auto &entry : mapping.node.entries)
        values.push_back(value_of(entry, mapping));
    return values;
}

std::optional<std::vector<PolicyValue>> read_items(const PolicyValue &list, Problems &problems)
{
    if (list.node.kind != YamlNode::Kind::sequence) {
        report_type(list, "a list", "write [a, b], or '- a' lines below it", problems);
        return std::nullopt;
    }
    std::vector<PolicyValue> values;
    for (const auto &item : list.node.items)
        values.push_back({item, fmt::format("{}[{}]", list.key, values.size()), item.where, list.entry});
    return values;
}

std::optional<bool> read_bool(const PolicyValue &value, Problems &problems)
{
    if (value.node.kind == YamlNode::Kind::scalar && meaning_of_scalar(value.node) == ScalarMeaning::boolean)
        return value.node.text == "true";
    report_type(value, "true or false", "write true or false, without quotes", problems);
    return std::nullopt;
}

std::optional<std::string> read_text(const PolicyValue &value, Problems &problems)
{
    if (value.node.kind != YamlNode::Kind::scalar || meaning_of_scalar(value.node) != ScalarMeaning::text) {
        report_type(value, "text", value.node.kind == YamlNode::Kind::scalar ? "put it in quotes" : "write one value", problems);
        return std::nullopt;
    }
    if (value.node.text.find('\0') != std::string::npos) {
        problems.add(value.where, value.key, "holds a NUL character", "remove it");
        return std::nullopt;
    }
    return value.node.text;
}

std::optional<std::string> read_line(const PolicyValue &value, Problems &problems)
{
    auto text = read_text(value, problems);
    if (!text) return std::nullopt;
    if (!text->empty() && !has_control_character(*text)) return text;
    problems.add(value.where, value.key, text->empty() ? "is empty" : "holds a control character: " + quote(*text),
                 "correct it or remove the key");
    return std::nullopt;
}

std::optional<std::string> read_name(const PolicyValue &value, Problems &problems)
{
    auto name = read_line(value, problems);
    if (!name || is_plain_name(*name)) return name;
    problems.add(value.where, value.key, quote(*name) + " is not a plain name",
                 "use at most 32 of a-z, 0-9, '_', '-' and '.', beginning with a letter or '_'");
    return std::nullopt;
}

std::optional<std::string> read_choice(const PolicyValue &value, Problems &problems)
{
    if (value.entry == nullptr || value.entry->choices.empty())
        throw Failure(ExitStatus::internal, "the table of keys has no choices for " + value.key);
    const auto now = split_words(value.entry->choices);
    const auto later = split_words(value.entry->later);
    const auto expected = fmt::format("{}{}", fmt::join(now, " or "), value.entry->form == ValueForm::choice_or_list ? ", or a list" : "");
    if (value.node.kind != YamlNode::Kind::scalar || meaning_of_scalar(value.node) != ScalarMeaning::text) {
        report_type(value, expected, "write one of them", problems);
        return std::nullopt;
    }
    auto text = read_line(value, problems);
    if (!text) return std::nullopt;
    if (std::find(now.begin(), now.end(), *text) != now.end()) return text;
    const auto remedy = "use " + expected;
    if (std::find(later.begin(), later.end(), *text) != later.end()) {
        problems.add(value.where, value.key, "the value " + quote(*text) + " is not supported yet", remedy);
        return std::nullopt;
    }
    auto known = now;
    known.insert(known.end(), later.begin(), later.end());
    const auto hint = *text == "noop" ? std::string("; did you mean 'none'?") : did_you_mean(*text, known);
    problems.add(value.where, value.key, "unknown value " + quote(*text) + hint, remedy);
    return std::nullopt;
}

std::vector<PolicyPath> read_paths(const PolicyValue &list, std::optional<PathProblem> (*problem_of)(const std::string &),
                                   Problems &problems)
{
    std::vector<PolicyPath> files;
    const auto items = read_items(list, problems);
    if (!items) return files;
    for (const auto &item : *items) {
        const auto path = read_line(item, problems);
        if (!path) continue;
        if (const auto problem = problem_of(*path))
            problems.add(item.where, item.key, quote(*path) + " " + problem->text, problem->remedy);
        else
            files.push_back({*path, item.where});
    }
    return files;
}

void refuse_unsupported(const PolicyValue &value, Problems &problems)
{
    problems.add(value.where, value.key, "not supported yet", "remove it");
}

namespace {

nlohmann::json read_json(const PolicyValue &value, Problems &problems)
{
    switch (value.node.kind) {
    case YamlNode::Kind::null:
        return nullptr;
    case YamlNode::Kind::scalar:
        return read_json_scalar(value, problems);
    case YamlNode::Kind::sequence: {
        auto list = nlohmann::json::array();
        const auto items = read_items(value, problems);
        for (const auto &item : *items)
            list.push_back(read_json(item, problems));
        return list;
    }
    case YamlNode::Kind::mapping:
        break;
    }
    auto object = nlohmann::json::object();
    for (const auto &entry : value.node.entries)
        object[entry.key] = read_json(value_of(entry, value), problems);
    return object;
}

} // namespace

std::string read_json_text(const PolicyValue &value, Problems &problems)
{
    return read_json(value, problems).dump();
}

} // namespace pi_agent
