// The texts of advice, laid out: an answer for a terminal, and the page docs/troubleshooting.md.
#include "admin/diagnose/advice.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/policy/policy_keys.hpp"

#include <fmt/format.h>

namespace pi_agent {

namespace {

constexpr std::size_t advice_columns = 100;

// Divides text at spaces, but what is between backquotes is one word: a command is pasted as a whole.
std::vector<std::string> words_of_advice(std::string_view text)
{
    std::vector<std::string> words;
    bool is_open = false;
    for (const auto word : split(text, ' ')) {
        if (is_open)
            words.back() += " " + std::string(word);
        else
            words.emplace_back(word);
        if (std::count(word.begin(), word.end(), '`') % 2 != 0) is_open = !is_open;
    }
    return words;
}

// `text` in lines of at most advice_columns, of which all but the first are indented; a word is never divided.
std::string wrapped(const std::string &first, const std::string &indent, std::string_view text)
{
    std::string all;
    std::string line = first;
    bool is_begun = false;
    for (const auto &word : words_of_advice(text)) {
        if (is_begun && line.size() + 1 + word.size() > advice_columns) {
            all += line + "\n";
            line = indent;
            is_begun = false;
        }
        line += (is_begun ? " " : "") + word;
        is_begun = true;
    }
    return all + line + "\n";
}

// A terminal shows no type face: literal words go between apostrophes.
std::string without_backquotes(std::string text)
{
    std::replace(text.begin(), text.end(), '`', '\'');
    return text;
}

const Advice *find_advice(const std::vector<Advice> &all, std::string_view name)
{
    const auto found = std::find_if(all.begin(), all.end(), [name](const Advice &one) { return name == one.name; });
    return found == all.end() ? nullptr : &*found;
}

using KeyParts = std::span<const std::string_view>;

// A free name may have dots, except at the end.
bool are_of_one_key(KeyParts ours, KeyParts asked)
{
    if (ours.empty() || asked.empty()) return ours.empty() && asked.empty();
    if (ours.front() != "*") return ours.front() == asked.front() && are_of_one_key(ours.subspan(1), asked.subspan(1));
    if (ours.size() == 1) return asked.size() == 1 && !asked.front().empty();
    for (std::size_t length = 1; length < asked.size() && !asked[length - 1].empty(); ++length)
        if (are_of_one_key(ours.subspan(1), asked.subspan(length))) return true;
    return false;
}

// As messages write it: "users.alice.roots" is the key "users.NAME.roots" of the table, and "users.Jane.Doe.roots[0].mask" is
// "users.NAME.roots[N].mask".
bool is_key(const PolicyKey &key, std::string_view word)
{
    std::string asked;
    for (const char byte : word)
        if (byte != ']') asked += byte == '[' ? '.' : byte;
    return are_of_one_key(split(key.path, '.'), split(asked, '.'));
}

std::string explain_key(const PolicyKey &key)
{
    std::string text = display_path(key) + (key.required ? ", a required key" : ", a key") + " of the policy\n\n";
    text += without_backquotes(wrapped("", "", std::string(key.meaning)));
    text += "\n" + without_backquotes(wrapped("value:   ", "         ", form_text(key)));
    if (!key.standard.empty()) text += wrapped("default: ", "         ", key.standard);
    if (!key.example.empty()) text += wrapped("example: ", "         ", key.example);
    return text + "\nMore: man pi-agent-policy\n";
}

std::string explain_advice(const Advice &advice, const std::string &title)
{
    std::string text = std::string(advice.name) + ": " + title + "\n\n" + without_backquotes(wrapped("", "", advice.cause)) + "\n";
    if (*advice.user != '\0') text += without_backquotes(wrapped("User:          ", "               ", advice.user));
    if (*advice.admin != '\0') text += without_backquotes(wrapped("Administrator: ", "               ", advice.admin));
    return text;
}

std::string title_of_status(ExitStatus status)
{
    return facts_of(FailureKind::other, status).title;
}

std::string section(const KindFacts &facts, const Advice &advice)
{
    std::string text = fmt::format("\n### {}\n\n", facts.code);
    text += wrapped("", "", fmt::format("**{}.** {}", facts.title, advice.cause)) + "\n";
    if (*advice.user != '\0') text += wrapped("- User: ", "  ", advice.user);
    if (*advice.admin != '\0') text += wrapped("- Administrator: ", "  ", advice.admin);
    return text;
}

std::string table_of_messages()
{
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto &advice : advice_on_failures())
        for (const auto message : split(advice.messages, '\n'))
            if (message != "…") rows.emplace_back(message, advice.name);
    const auto sorted_by = [](const std::string &message) {
        return message.substr(std::min(message.find_first_not_of("… "), message.size()));
    };
    std::sort(rows.begin(), rows.end(), [&](const auto &one, const auto &other) { return sorted_by(one.first) < sorted_by(other.first); });
    std::string text = "\n## By message\n\n\"…\" stands for what differs.\n\n| message | code |\n| --- | --- |\n";
    for (const auto &[message, code] : rows) {
        std::string anchor = code;
        std::transform(anchor.begin(), anchor.end(), anchor.begin(),
                       [](char byte) { return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte; });
        text += fmt::format("| `{}` | [{}](#{}) |\n", message, code, anchor);
    }
    return text;
}

} // namespace

std::optional<std::string> explain_word(const std::string &word)
{
    for (const auto &facts : failure_kinds())
        if (word == facts.code)
            if (const auto *advice = find_advice(advice_on_failures(), word))
                return explain_advice(*advice, fmt::format("{} (exit status {})", facts.title, static_cast<int>(facts.status)));
    if (const auto *advice = find_advice(advice_on_faults(), word)) return explain_advice(*advice, "a fault that pi-agentctl doctor finds");
    for (const auto &key : policy_keys())
        if (word == display_path(key) || is_key(key, word)) return explain_key(key);
    return std::nullopt;
}

std::string troubleshooting_page()
{
    std::string text = "# Troubleshooting\n\n<!-- Written by `tests/unit/admin/diagnose/advice_test.cpp`. -->\n\n";
    text += wrapped("", "",
                    "A message of `pi` or `pi-agentctl` ends with a code, such as `see: pi-agentctl explain E77-root`. That command prints "
                    "the section of this "
                    "page, without a network. The digits are the exit status. `pi` ends with the agent's own status where the agent ran, "
                    "and with one of "
                    "these where pi-agent refused or failed; then the message begins with `pi: `.");
    text += "\n" + wrapped("", "",
                           "`pi-agentctl explain KEY` explains a key of the policy, such as `limits.memory`. `sudo pi-agentctl doctor` "
                           "looks for causes itself.");
    text += "\n" + wrapped("", "",
                           "A program in a session that cannot connect has its own words. `pi-agentctl denials` lists the connections "
                           "that a network of hosts denied, and `docs/start/using.md` says what to do then.");
    std::optional<ExitStatus> status;
    for (const auto &facts : failure_kinds()) {
        if (status != facts.status)
            text += fmt::format("\n## Exit status {}: {}\n", static_cast<int>(facts.status), title_of_status(facts.status));
        status = facts.status;
        if (const auto *advice = find_advice(advice_on_failures(), facts.code)) text += section(facts, *advice);
    }
    text += table_of_messages();
    text += "\n## By the name of a fault\n\n`pi-agentctl doctor --json` names each fault.\n\n| name | what is wrong | user | administrator "
            "|\n| --- | --- | --- | --- |\n";
    for (const auto &advice : advice_on_faults())
        text += fmt::format("| `{}` | {} | {} | {} |\n", advice.name, advice.cause, advice.user, advice.admin);
    return text;
}

} // namespace pi_agent
