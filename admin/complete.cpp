// Walks the commands of pi-agentctl, for its help and for the shells.
#include "admin/complete.hpp"

#include "common/policy/policy_sections.hpp"

namespace pi_agent {

std::vector<const CLI::App *> commands_below(const CLI::App &app)
{
    return app.get_subcommands([](const CLI::App *one) { return !one->get_group().empty(); });
}

std::string complete(const CLI::App &app, std::vector<std::string> words)
{
    std::string begun;
    if (!words.empty()) {
        begun = words.back() == "=" ? std::string() : words.back();
        words.pop_back();
    }
    const CLI::App *command = &app; // where in the tree of commands the line is
    bool awaits_value = false;      // of the option before
    std::size_t positionals = 0;    // words that were neither command nor option
    for (const auto &word : words) {
        if (word == "=") continue; // bash takes --user=alice apart
        const auto below = command->get_subcommands([&word](const CLI::App *one) { return one->get_name() == word; });
        if (awaits_value) {
            awaits_value = false;
        } else if (word.size() > 1 && word[0] == '-') {
            const auto *option = command->get_option_no_throw(word);
            awaits_value = option != nullptr && option->get_items_expected_max() > 0;
        } else if (positionals == 0 && !below.empty()) {
            command = below.front();
        } else {
            ++positionals;
        }
    }
    std::string text;
    const auto propose = [&](const std::string &word, const std::string &meaning) {
        if (word.starts_with(begun)) text += word + '\t' + meaning + '\n';
    };
    if (awaits_value) return ""; // the shell has its own completion of paths
    if (begun[0] == '-') {
        for (const auto *option : command->get_options())
            for (const auto &name : option->get_lnames())
                propose("--" + name, option->get_description());
        return text;
    }
    if (positionals > 0) return "";
    // Keys where its first word is one, by the word that stands for it in the help; those of one user with the name that `begun` has:
    // "users.alice.roots".
    const auto arguments = command->get_options([](const CLI::Option *option) { return option->get_positional(); });
    if (!arguments.empty() && has_word("KEY WORD", arguments.front()->get_name(true))) {
        constexpr std::string_view of_user = "users.*.";
        const std::size_t end = begun.starts_with("users.") ? begun.find('.', of_user.find('*')) : std::string::npos;
        for (const auto &key : policy_keys()) {
            std::string path(key.path);
            if (end != std::string::npos && path.starts_with(of_user)) path.replace(0, of_user.size() - 1, begun, 0, end);
            if (path.find('*') == std::string::npos) propose(path, "key");
        }
    }
    for (const auto *below : commands_below(*command))
        propose(below->get_name(), below->get_description());
    return text;
}

} // namespace pi_agent
