// What a code of a message, a fault of doctor or a key of the policy means, and what to do: pi-agentctl explain WORD. The texts about codes
// and faults are those of docs/troubleshooting.md, which the build puts into this program.
#include "admin/diagnose/explain.hpp"

#include "admin/diagnose/troubleshooting.hpp"
#include "common/base/text.hpp"
#include "common/policy/policy_keys.hpp"

#include <fmt/format.h>

namespace pi_agent {

namespace {

constexpr std::string_view page = PI_AGENT_TROUBLESHOOTING;
constexpr std::size_t answer_columns = 100;

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

// `text` in lines of at most answer_columns, of which all but the first are indented as `first` is long; a word is never divided. A
// terminal shows no type face: literal words go between apostrophes.
std::string wrapped(const std::string &first, std::string_view text)
{
    std::string all;
    std::string line = first;
    bool is_begun = false;
    for (const auto &word : words_of_advice(text)) {
        if (is_begun && line.size() + 1 + word.size() > answer_columns) {
            all += line + "\n";
            line = std::string(first.size(), ' ');
            is_begun = false;
        }
        line += (is_begun ? " " : "") + word;
        is_begun = true;
    }
    all += line + "\n";
    std::replace(all.begin(), all.end(), '`', '\'');
    return all;
}

// What the page has between `begin` and the next `end`; empty where it has no `begin`.
std::string_view part_of_page(const std::string &begin, std::string_view end, std::size_t from = 0)
{
    const auto at = page.find(begin, from);
    return at == std::string_view::npos ? "" : page.substr(at + begin.size(), page.find(end, at + begin.size()) - at - begin.size());
}

std::string explain_advice(const std::string &name, std::string_view title, std::string_view cause, std::string_view user,
                           std::string_view administrator)
{
    std::string text = fmt::format("{}: {}\n\n{}\n", name, title, wrapped("", cause));
    if (!user.empty()) text += wrapped("User:          ", user);
    if (!administrator.empty()) text += wrapped("Administrator: ", administrator);
    return text;
}

// A section: "**Title.** Cause", and a list of what to do. Its lines are joined, each item of the list to one.
std::optional<std::string> explain_code(const std::string &code)
{
    std::string cause;
    std::string user;
    std::string administrator;
    std::string *part = &cause;
    for (auto line : split(part_of_page("\n### " + code + "\n\n", "\n#"), '\n')) {
        for (const auto &[label, item] :
             {std::pair<std::string_view, std::string *>("- User: ", &user), {"- Administrator: ", &administrator}})
            if (line.starts_with(label)) {
                part = item;
                line.remove_prefix(label.size());
            }
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
        *part += (part->empty() || line.empty() ? "" : " ") + std::string(line);
    }
    const auto end = cause.find(".** ");
    if (end == std::string::npos) return std::nullopt;
    const auto title = fmt::format("{} (exit status {})", cause.substr(2, end - 2), code.substr(1, 2));
    return explain_advice(code, title, cause.substr(end + 4), user, administrator);
}

// A row of the page's last table: name, what is wrong, what a user does, what the administrator does.
std::optional<std::string> explain_fault(const std::string &name)
{
    const auto row = part_of_page("\n| `" + name + "` | ", "\n", page.find("\n## By the name of a fault\n"));
    auto cells = split(row, '|');
    if (cells.size() < 3) return std::nullopt;
    for (auto &cell : cells) {
        cell.remove_prefix(std::min(cell.find_first_not_of(' '), cell.size()));
        cell = cell.substr(0, cell.find_last_not_of(' ') + 1);
    }
    return explain_advice(name, "a fault that pi-agentctl doctor finds", cells[0], cells[1], cells[2]);
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
    text += wrapped("", key.meaning) + "\n" + wrapped("value:   ", form_text(key));
    if (!key.standard.empty()) text += wrapped("default: ", key.standard);
    if (!key.example.empty()) text += wrapped("example: ", key.example);
    return text + "\nMore: man pi-agent-policy\n";
}

} // namespace

std::optional<std::string> explain_word(const std::string &word)
{
    if (auto text = explain_code(word)) return text;
    if (auto text = explain_fault(word)) return text;
    for (const auto &key : policy_keys())
        if (word == display_path(key) || is_key(key, word)) return explain_key(key);
    return std::nullopt;
}

} // namespace pi_agent
