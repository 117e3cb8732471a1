// Candidates for the word at the cursor in a command line of pi-agentctl, found by walking the same commands and options that parse it.
#include "admin/agents/agents.hpp"
#include "admin/apply/apply.hpp"
#include "admin/cli/commands.hpp"
#include "admin/diagnose/advice.hpp"
#include "admin/diagnose/faults.hpp"
#include "admin/sessions/sessions.hpp"
#include "common/base/error.hpp"
#include "common/policy/policy_keys.hpp"
#include "common/policy/policy_load.hpp"
#include "runner/plan/unit_properties.hpp"
#include "runner/root/kernel/control_group.hpp"
#include "runner/root/session/session_directory.hpp"

#include <filesystem>
#include <unistd.h>
#include <vector>

namespace pi_agent {

namespace {

// Words of the answer that ask the shell for its own completion of paths; no candidate begins with a colon.
constexpr const char *any_path = ":paths";
constexpr const char *directory_path = ":directories";

struct Candidate {
    std::string word;
    std::string meaning;
};
using Candidates = std::vector<Candidate>;

template <typename Things, typename ToCandidate>
Candidates candidates_of(const Things &things, const ToCandidate &to_candidate)
{
    Candidates candidates;
    for (const auto &thing : things)
        candidates.push_back(to_candidate(thing));
    return candidates;
}

// Names, of which each means the same.
Candidates named(const std::vector<std::string> &names, const char *meaning)
{
    return candidates_of(names, [&](const std::string &name) { return Candidate{name, meaning}; });
}

void add_all(Candidates &candidates, const Candidates &more)
{
    candidates.insert(candidates.end(), more.begin(), more.end());
}

Candidates people()
{
    return candidates_of(find_people(), [](const Account &person) { return Candidate{person.name, "user"}; });
}

Candidates policy_users()
{
    try {
        return named(users_of(load_policy(policy_path)), "user");
    } catch (const Failure &) { // no policy yet, or one with mistakes, which check reports: a key in the middle of a line does not
        return people();
    }
}

// What `to_word` makes of the names in the directory, without empty words.
Candidates names_in(const std::string &directory, const std::function<std::string(const std::string &name)> &to_word, const char *meaning)
{
    std::vector<std::string> words;
    std::error_code none; // a directory that does not exist, or is closed, has no names
    for (const auto &entry : std::filesystem::directory_iterator(directory, none))
        if (auto word = to_word(entry.path().filename().string()); !word.empty()) words.push_back(std::move(word));
    return named(words, meaning);
}

// Only root can read the directory of the sessions. Everybody can read the control groups, where each user's scopes are by themselves; a
// key in the middle of a line asks no sudo.
Candidates own_sessions()
{
    const auto slice = group_of_unit(read_systemd_tops(), std::string(slices_place) + "/" + slice_name(Uid(::getuid())));
    if (!slice) return {};
    return names_in(
        slice->path, [](const std::string &unit) { return session_of_scope(unit).value_or(""); }, "session");
}

Candidates living_sessions()
{
    if (::geteuid() != 0) return own_sessions();
    return candidates_of(list_sessions(AsRoot::claim(), std::nullopt), [](const SessionView &session) {
        return Candidate{session.id, session.user + " " + session.project};
    });
}

Candidates known_sessions()
{
    try {
        return named(recorded_sessions(), "session");
    } catch (const Failure &) { // this user may not read the journal
        return living_sessions();
    }
}

Candidates policy_files()
{
    const auto of_policy = [](const std::string &name) {
        return std::filesystem::path(name).extension() == ".yaml" ? name : std::string();
    };
    const auto of_user = [&](const std::string &name) {
        return user_of_file(directory_of_users(policy_path) + "/" + name, policy_path) ? "users.d/" + name : std::string();
    };
    auto candidates = names_in(directory_of_parts(policy_path), of_policy, "policy.d");
    add_all(candidates, names_in(directory_of_users(policy_path), of_user, "users.d"));
    candidates.push_back({any_path, ""});
    return candidates;
}

Candidates words_to_explain()
{
    auto candidates = candidates_of(failure_kinds(), [](const KindFacts &facts) { return Candidate{facts.code, facts.title}; });
    for (const auto &advice : advice_on_faults())
        candidates.push_back({advice.name, "fault"});
    for (const auto &key : policy_keys())
        candidates.push_back({display_path(key), "key"});
    return candidates;
}

// Those of users with the names that the policy has.
Candidates keys_of_policy()
{
    constexpr std::string_view of_user = "users.*.";
    Candidates candidates;
    std::vector<std::string> users;
    for (const auto &user : policy_users())
        users.push_back(user.word);
    for (const auto &key : policy_keys()) {
        const std::string path(key.path);
        if (path.find('*') == std::string::npos)
            candidates.push_back({path, "key"});
        else if (path.starts_with(of_user) && path.find('*', of_user.size()) == std::string::npos)
            for (const auto &user : users)
                candidates.push_back({"users." + user + "." + path.substr(of_user.size()), "key"});
    }
    return candidates;
}

// Values by the words that stand for them in the help.
Candidates values_of(const CLI::App &command, const CLI::Option &option)
{
    const auto kind = option.get_positional() ? option.get_name(true) : option.get_type_name();
    const auto &name = command.get_name();
    if (kind == "NAME") return name == "init" || name == "add" ? people() : policy_users();
    if (kind == "KEY") return keys_of_policy();
    if (kind == "SESSION") return name == "logs" || name == "denials" ? known_sessions() : living_sessions();
    if (kind == "DIRECTORY") return {{directory_path, ""}};
    if (kind == "FILE" && name == "edit") return policy_files();
    if (kind == "FILE" || kind == "PATH") return {{any_path, ""}};
    if (kind == "NETWORK") return named({"hosts", "full", "loopback", "none"}, "network");
    if (kind == "PROVIDER") return named({"none", "anthropic", "google", "openai", "openrouter"}, "provider");
    if (kind == "AGENT") return named(known_agents(), "agent");
    if (kind == "WORD") return words_to_explain();
    if (kind == "TARGET") return named({"kubernetes", "seccomp"}, "target");
    if (kind == "TIME") return {{"today", "since midnight"}, {"yesterday", "since the midnight before"}, {"1h", "an hour ago"}};
    return {};
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

// The one that the next word without a dash is for; the last one if it takes several.
const CLI::Option *positional(const CLI::App &app, std::size_t index)
{
    const auto all = app.get_options([](const CLI::Option *option) { return option->get_positional(); });
    if (index < all.size()) return all[index];
    return !all.empty() && all.back()->get_items_expected_max() > 1 ? all.back() : nullptr;
}

// Where in the tree of commands a command line is.
struct Place {
    const CLI::App *command = nullptr;
    const CLI::Option *awaited = nullptr; // the option whose value comes next
    std::size_t positionals = 0;          // words that were neither command nor option

    void take(const std::string &word)
    {
        if (word == "=") return; // bash takes --user=alice apart
        if (awaited != nullptr) {
            awaited = nullptr;
        } else if (word.size() > 1 && word[0] == '-') {
            const auto *option = command->get_option_no_throw(word);
            if (option != nullptr && option->get_items_expected_max() > 0) awaited = option; // one that takes a value
        } else if (const auto *below = positionals == 0 ? command_called(*command, word) : nullptr; below != nullptr) {
            command = below;
        } else {
            ++positionals;
        }
    }

    [[nodiscard]] Candidates next(const std::string &begun) const
    {
        if (awaited != nullptr) return values_of(*command, *awaited);
        if (begun[0] == '-') return options_of(*command);
        Candidates candidates;
        for (const auto *below : positionals == 0 ? commands_below(*command) : std::vector<const CLI::App *>())
            candidates.push_back({below->get_name(), below->get_description()});
        if (const auto *option = positional(*command, positionals); option != nullptr) add_all(candidates, values_of(*command, *option));
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
    // zsh and fish keep --user=alice together, and want it back so.
    std::string kept;
    if (const auto equals = begun.find('='); begun.compare(0, 2, "--") == 0 && equals != std::string::npos) {
        place.take(begun.substr(0, equals));
        kept = begun.substr(0, equals + 1);
        begun.erase(0, equals + 1);
    }
    std::string text;
    for (const auto &[word, meaning] : place.next(begun)) {
        if (word[0] == ':')
            text += word + '\n';
        else if (word.compare(0, begun.size(), begun) == 0)
            text += kept + word + '\t' + meaning + '\n';
    }
    return text;
}

} // namespace pi_agent
