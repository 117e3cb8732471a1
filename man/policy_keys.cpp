// Prints the part of pi-agent-policy(5) that lists the keys by task, in scdoc(5), from the tables of both. Run while the manual is built.
#include "common/decide/explained.hpp"

#include <iostream>

namespace {

using namespace pi_agent; // NOLINT(google-build-using-namespace): this file is the program

// Markdown's code becomes bold; what has a meaning in scdoc(5) stands for itself.
std::string to_scdoc(std::string_view markdown)
{
    std::string text;
    for (const char byte : markdown) {
        if (byte == '`')
            text += '*';
        else if (byte == '*' || byte == '_' || byte == '\\' || byte == '#' || byte == '<')
            text += std::string{'\\', byte};
        else
            text += byte;
    }
    return text;
}

std::string code(std::string_view text)
{
    return "`" + std::string(text) + "`";
}

void print(const PolicyKey &key)
{
    std::string text = form_text(key);
    if (key.required) text += "; required";
    if (!key.standard.empty()) text += "; by default " + code(key.standard);
    text += ". ";
    text += key.meaning;
    if (const auto levels = levels_text(key); !levels.empty()) text += " " + levels;
    if (!key.example.empty()) text += " For example " + code(key.example) + ".";
    std::cout << to_scdoc(code(display_path(key))) << "\n\t" << to_scdoc(text) << "\n\n";
}

} // namespace

int main()
{
    std::cout
        << "# KEYS\n\nNAME stands for a name of your choice. A missing key has its default. Each group of keys begins with an example.\n\n";
    for (const auto &task : policy_tasks()) {
        std::cout << "## " << task.title << "\n\n```\n" << task.example << "```\n\n";
        for (const auto *key : policy_keys_of(task))
            print(*key);
    }
    std::cout.flush();
    return std::cout ? 0 : 1;
}
