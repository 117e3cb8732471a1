// Candidates for the word at the cursor in a command line of pi-agentctl, found by walking the same commands and options that parse it. Of
// values it knows the keys of the policy.
#include "admin/cli/commands.hpp"
#include "common/policy/policy_keys.hpp"

namespace pi_agent {

namespace {

struct Candidate {
    std::string word;
    std::string meaning;
};
using Candidates = std::vector<Candidate>;

// Those of one user with the name that `begun` has: "users.alice.roots".
Candidates keys_of_policy(const std::string &begun)
{
    constexpr std::string_view of_user = "users.*.";
    const std::size_t end = begun.starts_with("users.") ? begun.find('.', of_user.find('*')) : std::string::npos;
    Candidates candidates;
    for (const auto &key : policy_keys()) {
        std::string path(key.path);
        if (end != std::string::npos && path.starts_with(of_user)) path.replace(0, of_user.size() - 1, begun, 0, end);
        if (path.find('*') == std::string::npos) candidates.push_back({path, "key"});
    }
    return candidates;
}

Candidates options_of(const CLI::App &app)
{
    Candidates candidates;
    for (const auto *option : app.get_options())
        for (const auto &name : option->get_lnames())
            candidates.push_back({"--" + name, option->get_description()});
    return candidates;
}

const CLI::App *command_called(const CLI::App &app, const std::string &name)
{
    const auto found = app.get_subcommands([&name](const CLI::App *command) { return command->get_name() == name; });
    return found.empty() ? nullptr : found.front();
}

// Whether its first word is one, by the word that stands for it in the help.
bool takes_key(const CLI::App &app)
{
    const auto all = app.get_options([](const CLI::Option *option) { return option->get_positional(); });
    return !all.empty() && (all.front()->get_name(true) == "KEY" || all.front()->get_name(true) == "WORD");
}

// Where in the tree of commands a command line is.
struct Place {
    const CLI::App *command = nullptr;
    bool awaits_value = false;   // of the option before
    std::size_t positionals = 0; // words that were neither command nor option

    void take(const std::string &word)
    {
        if (word == "=") return; // bash takes --user=alice apart
        if (awaits_value) {
            awaits_value = false;
        } else if (word.size() > 1 && word[0] == '-') {
            const auto *option = command->get_option_no_throw(word);
            awaits_value = option != nullptr && option->get_items_expected_max() > 0;
        } else if (const auto *below = positionals == 0 ? command_called(*command, word) : nullptr; below != nullptr) {
            command = below;
        } else {
            ++positionals;
        }
    }

    [[nodiscard]] Candidates next(const std::string &begun) const
    {
        if (awaits_value) return {}; // the shell has its own completion of paths
        if (begun[0] == '-') return options_of(*command);
        if (positionals > 0) return {};
        Candidates candidates = takes_key(*command) ? keys_of_policy(begun) : Candidates{};
        for (const auto *below : commands_below(*command))
            candidates.push_back({below->get_name(), below->get_description()});
        return candidates;
    }
};

} // namespace

std::string complete(const CLI::App &app, std::vector<std::string> words)
{
    std::string begun;
    if (!words.empty()) {
        begun = words.back() == "=" ? std::string() : words.back();
        words.pop_back();
    }
    Place place{&app};
    for (const auto &word : words)
        place.take(word);
    std::string text;
    for (const auto &[word, meaning] : place.next(begun))
        if (word.starts_with(begun)) text += word + '\t' + meaning + '\n';
    return text;
}

} // namespace pi_agent
