// Strict readers of policy values and of environment variables.
#include "common/policy/policy_sections.hpp"

#include "common/host/account.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pi_agent {

namespace {

std::nullopt_t report_type(const PolicyValue &value, const std::string &wanted, const std::string &remedy)
{
    value.report("must be " + wanted + ", found " + describe(value.node), remedy);
    return std::nullopt;
}

// Finds a rule without an entry in the table, which no page and no schema would describe, and an entry without a rule, which nobody reads.
void require_same(const std::vector<const PolicyKey *> &known, const std::vector<KeyRule> &rules, bool are_all)
{
    const auto has_entry = [&](const KeyRule &rule) {
        return std::any_of(known.begin(), known.end(), [&](const PolicyKey *key) { return last_part(*key) == rule.name; });
    };
    const auto missing = std::find_if_not(rules.begin(), rules.end(), has_entry);
    if (missing != rules.end()) throw Failure(ExitStatus::internal, fmt::format("the key '{}' is not in the table of keys", missing->name));
    if (are_all && known.size() != rules.size())
        throw Failure(ExitStatus::internal, fmt::format("nobody reads one of the keys beside '{}'", display_path(*known.front())));
}

// "; did you mean 'sandbox.method'?" for a key that belongs elsewhere in the policy. Some keys cannot be set for one user.
std::string did_you_mean_elsewhere(std::string_view name, bool of_one_user)
{
    const PolicyKey *of_all = nullptr;
    for (const auto &key : policy_keys()) {
        if (last_part(key) != name || name == "*" || key.path.starts_with("users.*.roots.")) continue;
        if (!of_one_user || key.path.starts_with("users.")) return "; did you mean " + quote(display_path(key)) + "?";
        if (of_all == nullptr) of_all = &key;
    }
    if (of_all == nullptr) return "";
    return ": " + quote(display_path(*of_all)) + " holds for the whole policy, and cannot be set for one user or group";
}

void report_unknown(const YamlEntry &entry, const PolicyValue &value, const std::vector<const PolicyKey *> &known)
{
    const auto names = mapped(known, [&](const auto *key) { return last_part(*key); });
    auto hint = did_you_mean_elsewhere(entry.key, value.key.starts_with("users."));
    if (hint.empty()) hint = did_you_mean(entry.key, names);
    value.problems.add(entry.where, value.key, "unknown key" + hint, fmt::format("known here: {}", fmt::join(names, ", ")));
}

constexpr std::string_view own_names =
    "HOME USER LOGNAME SHELL PATH TMPDIR PIP_BREAK_SYSTEM_PACKAGES NPM_CONFIG_GLOBALCONFIG GOPATH CARGO_HOME RUSTUP_HOME "
    "PI_CODING_AGENT_DIR SANDBOX_RUNTIME SCREENDIR";
constexpr std::string_view start_up_names = "GLIBC_TUNABLES ENV BASH_ENV";
// An administrator may have a reason to set these.
constexpr std::string_view interpreter_names =
    "NODE_OPTIONS NODE_PATH PERL5OPT PERL5LIB PYTHONSTARTUP PYTHONPATH PYTHONHOME RUBYOPT RUBYLIB";

constexpr std::size_t assignment_limit = std::size_t{128} << 10U; // MAX_ARG_STRLEN: "NAME=value" and its NUL (execve(2))
constexpr std::string_view blanks = " \t\n\r";
constexpr std::string_view newlines = "\n\r";

bool is_utf8(std::string_view bytes) noexcept
{
    while (!bytes.empty()) {
        const std::size_t length = decode_utf8(bytes).length;
        if (length == 0) return false;
        bytes.remove_prefix(length);
    }
    return true;
}

bool is_one_of(char byte, std::string_view bytes) noexcept
{
    return bytes.find(byte) != std::string_view::npos;
}

// A state machine like systemd's (src/basic/env-file.c).
class EnvFileParser {
public:
    EnvFileParser(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}

    std::vector<EnvAssignment> parse()
    {
        while (!at_end()) {
            if (is_one_of(next(), blanks)) {
                take();
            } else if (is_one_of(next(), "#;")) { // to the end of its line, also after a backslash, as systemd does since 254
                while (!at_end() && !is_one_of(take(), newlines)) {
                }
            } else {
                parse_assignment();
            }
        }
        return std::move(found_);
    }

private:
    [[noreturn]] static void refuse(const EnvAssignment &assignment, const std::string &problem)
    {
        throw Failure(ExitStatus::configuration, assignment.where + ": " + problem);
    }

    [[nodiscard]] bool at_end() const noexcept { return at_ == text_.size(); }
    [[nodiscard]] char next() const noexcept { return text_[at_]; }
    char take() noexcept
    {
        const char byte = text_[at_++];
        if (byte == '\n') ++line_;
        return byte;
    }

    void parse_assignment()
    {
        EnvAssignment assignment{"", "", name_ + ":" + std::to_string(line_)};
        while (!at_end() && next() != '=' && !is_one_of(next(), newlines))
            assignment.name += take();
        if (at_end() || next() != '=') refuse(assignment, "this line has no '='; write NAME=value, or begin a comment with '#'");
        take();
        while (!assignment.name.empty() && is_one_of(assignment.name.back(), blanks))
            assignment.name.pop_back();
        if (!is_variable_name(assignment.name))
            refuse(assignment,
                   assignment.name.starts_with("export ")
                       ? "the text before '=' is not the name of a variable; write NAME=value, without 'export'"
                       : "the text before '=' is not the name of a variable: use letters, digits and '_', not beginning with a digit");
        parse_value(assignment);
        check(assignment);
        found_.push_back(std::move(assignment));
    }

    // Quoted and plain parts follow each other: a quote opens only where nothing plain came before it.
    void parse_value(EnvAssignment &assignment)
    {
        std::string &value = assignment.value;
        while (!at_end() && !is_one_of(next(), newlines)) {
            const char byte = take();
            if (byte == '\'' || byte == '"') {
                parse_quoted(byte, assignment);
            } else if (!is_one_of(byte, blanks)) {
                --at_;
                return parse_plain(value);
            }
        }
        if (!at_end()) take();
    }

    void parse_quoted(char quote, EnvAssignment &assignment)
    {
        for (;;) {
            if (at_end()) refuse(assignment, std::string("the quote ") + quote + " is not closed");
            const char byte = take();
            if (byte == quote) return;
            if (quote == '\'' || byte != '\\') {
                assignment.value += byte;
                continue;
            }
            if (at_end()) refuse(assignment, "the quote \" is not closed");
            const char escaped = take();
            if (is_one_of(escaped, "\"\\`$"))
                assignment.value += escaped;
            else if (escaped != '\n')
                (assignment.value += '\\') += escaped;
        }
    }

    void parse_plain(std::string &value)
    {
        std::size_t kept = value.size(); // up to here without the blanks at the end
        while (!at_end() && !is_one_of(next(), newlines)) {
            if (const char byte = take(); byte != '\\') {
                value += byte;
                if (!is_one_of(byte, blanks)) kept = value.size();
                continue;
            }
            if (at_end()) break;
            const char escaped = take();
            if (!is_one_of(escaped, newlines)) value += escaped;
            kept = value.size(); // what is escaped stays
        }
        value.resize(kept);
        if (!at_end()) take();
    }

    static void check(const EnvAssignment &assignment)
    {
        if (assignment.name.size() + assignment.value.size() + 2 > assignment_limit)
            refuse(assignment, "the value of " + assignment.name.substr(0, 100) + " is longer than a program can be given (128 KiB)");
        if (!is_utf8(assignment.value)) refuse(assignment, "the value of " + assignment.name + " is not UTF-8");
        for (const char byte : assignment.value) {
            if (const auto number = static_cast<unsigned char>(byte); (number < 0x20 && byte != '\t' && byte != '\n') || number == 0x7F)
                refuse(assignment, "the value of " + assignment.name + " holds a control character");
        }
    }

    std::string_view text_;
    std::string name_;
    std::size_t at_ = 0;
    int line_ = 1;
    std::vector<EnvAssignment> found_;
};

} // namespace

PolicyValue value_of(const YamlEntry &entry, const PolicyValue &parent)
{
    const auto name = escape_for_display(entry.key);
    // For a missing value, yaml-cpp gives the position of whatever comes next: the key's position is better.
    const auto &where = entry.value.kind == YamlNode::Kind::null ? entry.where : entry.value.where;
    const bool top = parent.key.empty();
    const auto *known = top || parent.entry != nullptr ? find_policy_key(top ? "" : parent.entry->path, entry.key) : nullptr;
    return {entry.value, parent.problems, top ? name : parent.key + "." + name, where, known, &entry};
}

void read_section(const PolicyValue &section, const std::vector<KeyRule> &rules, const Reader &otherwise)
{
    if (!section.is(YamlNode::Kind::mapping)) {
        report_type(section, "a mapping", "write its keys indented below it, or remove it");
        return;
    }
    const auto known = policy_keys_below(section.entry == nullptr ? "" : section.entry->path);
    require_same(known, rules, !otherwise);
    for (const auto &entry : section.node.entries) {
        const auto value = value_of(entry, section);
        const auto rule = std::find_if(rules.begin(), rules.end(), [&entry](const KeyRule &one) { return one.name == entry.key; });
        if (rule != rules.end())
            rule->read(value);
        else if (otherwise && value.entry != nullptr)
            otherwise(value);
        else
            report_unknown(entry, value, known);
    }
}

std::optional<std::vector<PolicyValue>> read_entries(const PolicyValue &mapping)
{
    if (!mapping.is(YamlNode::Kind::mapping)) return report_type(mapping, "a mapping", "write 'name: value' lines indented below it");
    return mapped(mapping.node.entries, [&](const auto &entry) { return value_of(entry, mapping); });
}

std::optional<std::vector<PolicyValue>> read_items(const PolicyValue &list)
{
    if (!list.is(YamlNode::Kind::sequence)) return report_type(list, "a list", "write [a, b], or '- a' lines below it");
    std::vector<PolicyValue> values;
    for (const auto &item : list.node.items)
        values.push_back({item, list.problems, fmt::format("{}[{}]", list.key, values.size()), item.where, list.entry});
    return values;
}

std::optional<bool> read_bool(const PolicyValue &value)
{
    if (value.means(ScalarMeaning::boolean)) return value.node.text == "true";
    return report_type(value, "true or false", "write true or false, without quotes");
}

std::optional<std::string> read_text(const PolicyValue &value)
{
    if (!value.means(ScalarMeaning::text))
        return report_type(value, "text", value.is(YamlNode::Kind::scalar) ? "put it in quotes" : "write one value");
    if (value.node.text.find('\0') == std::string::npos) return value.node.text;
    value.report("holds a NUL character", "remove it");
    return std::nullopt;
}

std::optional<std::string> read_line(const PolicyValue &value)
{
    auto text = read_text(value);
    if (!text) return std::nullopt;
    const auto is_control = [](char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F; };
    if (!text->empty() && std::none_of(text->begin(), text->end(), is_control)) return text;
    value.report(text->empty() ? "is empty" : "holds a control character: " + quote(*text), "correct it or remove the key");
    return std::nullopt;
}

std::optional<std::string> read_name(const PolicyValue &value)
{
    auto name = read_line(value);
    if (!name || is_plain_name(*name)) return name;
    value.report(quote(*name) + " is not a plain name", "use at most 32 of a-z, 0-9, '_', '-' and '.', beginning with a letter or '_'");
    return std::nullopt;
}

std::optional<std::size_t> read_choice(const PolicyValue &value)
{
    if (value.entry == nullptr || value.entry->choices.empty())
        throw Failure(ExitStatus::internal, "the table of keys has no choices for " + value.key);
    const auto now = split(value.entry->choices, ' ');
    const auto form = value.entry->form;
    const char *others = form == ValueForm::choice_or_list ? ", or a list" : form == ValueForm::network ? ", a list, or a mapping" : "";
    const auto expected = fmt::format("{}{}", fmt::join(now, " or "), others);
    if (!value.means(ScalarMeaning::text)) return report_type(value, expected, "write one of them");
    const auto text = read_line(value);
    if (!text) return std::nullopt;
    const auto found = std::find(now.begin(), now.end(), *text);
    if (found != now.end()) return static_cast<std::size_t>(found - now.begin());
    const auto hint = *text == "noop" ? std::string("; did you mean 'none'?") : did_you_mean(*text, now);
    value.report("unknown value " + quote(*text) + hint, "use " + expected);
    return std::nullopt;
}

std::optional<std::string> read_path(const PolicyValue &value, const PathRule &problem_of)
{
    auto path = read_line(value);
    const auto problem = path ? problem_of(*path) : std::nullopt;
    if (!problem) return path;
    value.refuse(*path, *problem);
    return std::nullopt;
}

std::vector<PolicyPath> read_paths(const PolicyValue &list, const PathRule &problem_of)
{
    std::vector<PolicyPath> paths;
    if (const auto items = read_items(list))
        for (const auto &item : *items)
            if (auto path = read_path(item, problem_of)) paths.push_back({std::move(*path), item.where});
    return paths;
}

// Which environment variables a policy may set, and which it should not.

bool is_variable_name(std::string_view name) noexcept
{
    return !name.empty() && is_made_of(name, "_") && (name.front() < '0' || name.front() > '9');
}

void read_env(const PolicyValue &section, Environment &env, EnvironmentPlaces &places)
{
    const auto entries = read_entries(section);
    if (!entries) return;
    for (const auto &value : *entries) {
        const auto &name = value.yaml->key;
        if (const auto problem = problem_of_env_name(name)) {
            value.at_its_name().report(*problem, "remove it");
        } else if (auto text = read_text(value)) {
            env[name] = std::move(*text);
            places[name] = value.yaml->where;
        }
    }
}

std::optional<std::string> problem_of_env_name(const std::string &name)
{
    if (!is_variable_name(name)) return "is not a variable name";
    // npm reads its own in any case of letters.
    if (has_word(own_names, name) || name.starts_with("PI_AGENT_") || lower_case(name) == "npm_config_globalconfig")
        return "is set by pi-agent itself";
    if (has_word(start_up_names, name) || name.starts_with("LD_")) return "changes programs before they begin";
    return std::nullopt;
}

std::optional<std::string> problem_of_host_env_name(const std::string &name)
{
    if (has_word(interpreter_names, name)) return "changes programs before they begin, and is the administrator's to set";
    return problem_of_env_name(name);
}

std::vector<EnvAssignment> parse_env_file(std::string_view text, const std::string &name)
{
    if (text.find('\0') != std::string_view::npos) throw Failure(ExitStatus::configuration, name + ": holds a NUL byte");
    return EnvFileParser(text, name).parse();
}

} // namespace pi_agent
