// A first policy: who is on this host, where these people keep their projects, and the text with its reasons.
#include "admin/apply/first_policy.hpp"

#include "admin/host/accounts.hpp"

#include <fmt/format.h>
#include <fstream>
#include <pwd.h>
#include <sstream>

namespace pi_agent {

namespace {

constexpr const char *login_defaults = "/etc/login.defs";

unsigned login_default(const std::string &name, unsigned otherwise)
{
    std::ifstream file(login_defaults);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string word;
        unsigned value = 0;
        if (words >> word >> value && word == name) return value;
    }
    return otherwise;
}

// The usual places that a session could have as a root, found with the user's rights; none if this process may not look.
std::vector<std::string> usable_places(const Account &user, const Observer &observer)
{
    const std::vector<std::string> places = {"~/projects", "~/src", "~/work", "~/code", "~/dev", "~/git", "~/repos", "~/workspace"};
    std::vector<RootSpec> specs;
    for (const auto &place : places)
        specs.push_back({place, {}, true});
    const auto findings = observer.resolve_roots(specs, user);
    std::vector<std::string> found;
    for (std::size_t index = 0; index < findings.size(); ++index)
        if (findings[index].kind == Finding::Kind::usable) found.push_back(places[index]);
    return found;
}

// A name with control characters is refused: nobody types one.
std::string quoted(const std::string &text)
{
    if (escape_for_display(text) != text)
        throw Failure(ExitStatus::usage, "a policy cannot name the directory " + escape_for_display(text));
    return yaml_word(text);
}

// Another name for an account that could not be made with the usual one. Where that would be another agent's, too, both have the number.
std::string run_as_of(const Candidate &candidate, const std::vector<Candidate> &candidates)
{
    const std::string agent = "pi-agent-" + candidate.name; // as the policy would call it; by the number where it is not a plain name
    const std::string other = creatable_name(agent);
    if (agent == other || !is_plain_name(agent)) return "";
    const bool is_anothers = std::any_of(candidates.begin(), candidates.end(), [&](const Candidate &one) {
        return one.name != candidate.name && creatable_name("pi-agent-" + one.name) == other;
    });
    return is_anothers ? "" : other;
}

std::string entry_of(const Candidate &candidate, const std::string &run_as)
{
    std::string roots;
    for (const auto &root : candidate.roots)
        roots += (roots.empty() ? "" : ", ") + quoted(root);
    if (candidate.roots.empty()) return fmt::format("  # {}:\n  #   roots: [~/projects]\n", candidate.name);
    return fmt::format("  {}:\n    roots: [{}]\n{}", yaml_word(candidate.name), roots,
                       run_as.empty() ? "" : fmt::format("    run_as: {}\n", run_as));
}

// Of the providers that pi knows best, with what their logins ask. Not what a login opens in the user's browser.
constexpr std::array providers_hosts = {"api.anthropic.com", "platform.claude.com", "api.openai.com",
                                        "auth.openai.com",   "chatgpt.com",         "generativelanguage.googleapis.com",
                                        "openrouter.ai"};

std::string lines_of_hosts(const std::vector<std::string> &hosts)
{
    std::string text = "# More hosts are, for example: github.com, \"github.com:22\", \"*.example.org\", example.org. Each with its port, "
                       "unless it is 443.\nnetwork:\n";
    if (hosts.empty()) return text + "  hosts: []\n";
    text += "  hosts:\n";
    for (const auto &host : hosts)
        text += "    - " + yaml_word(host) + "\n";
    return text;
}

// Not "10.20.0.5:443", which is a host.
bool is_address_or_range(const std::string &word)
{
    const auto parsed = parse_host_rule(word);
    const auto *rule = std::get_if<HostRule>(&parsed);
    return std::holds_alternative<IpRange>(parse_ip_range(word)) || (rule != nullptr && is_address(*rule) && rule->host == word);
}

// A word without a dot and a port is rather a mistake.
void require_host(const std::string &word)
{
    const auto parsed = parse_host_rule(word);
    const auto *problem = std::get_if<TextProblem>(&parsed);
    if (problem == nullptr && (word == "localhost" || word.find_first_of(".:") != std::string::npos)) return;
    throw Failure(ExitStatus::usage,
                  escape_for_display(word) + (problem == nullptr ? " is not a network" : " " + problem->text) +
                      "; answer hosts, full, loopback, none, names of hosts such as github.com, or addresses such as 10.20.0.0/16");
}

std::string line_of_network(const std::vector<std::string> &words)
{
    if (words.empty()) throw Failure(ExitStatus::usage, "name a network: hosts, full, loopback, none, names of hosts, or addresses");
    if (!std::all_of(words.begin(), words.end(), is_address_or_range)) {
        std::for_each(words.begin(), words.end(), require_host);
        return lines_of_hosts(words);
    }
    std::string list;
    for (const auto &address : words)
        list += (list.empty() ? "\"" : ", \"") + address + "\"";
    return "network: [" + list + "]\n";
}

// As the policy writes it. Throws Failure(usage) for an answer that is not a network.
std::string network_of(const PolicyAnswers &answers)
{
    const auto answer = answers.network.value_or(suggested_network);
    if (has_word("full loopback none", answer)) return "network: " + answer + "\n";
    if (answer == suggested_network) {
        if (answers.provider) return lines_of_hosts({});
        return lines_of_hosts(answers.hosts.empty() ? std::vector<std::string>(providers_hosts.begin(), providers_hosts.end())
                                                    : answers.hosts);
    }
    auto text = line_of_network(words_of_answer(answer));
    const auto reading = read_policy_as_far_as_possible({{"the answer", "version: 1\nusers: {}\n" + text}});
    for (const auto &problem : reading.problems)
        if (problem.key.starts_with("network")) throw Failure(ExitStatus::usage, "network: " + problem.problem);
    return text;
}

} // namespace

std::string key_file()
{
    return parent_of(policy_path) + "/keys.env";
}

std::string key_file_of(const std::string &provider)
{
    return parent_of(policy_path) + "/" + provider + ".key";
}

std::vector<Account> find_people()
{
    const unsigned first = login_default("UID_MIN", 1000);
    const unsigned last = login_default("UID_MAX", 60000);
    std::vector<std::pair<std::string, std::string>> entries; // names and shells: looking one up ends the enumeration's own answer
    ::setpwent();                                             // NOLINT(concurrency-mt-unsafe): this program has one thread
    while (const auto *entry = ::getpwent())                  // NOLINT(concurrency-mt-unsafe)
        entries.emplace_back(entry->pw_name, entry->pw_shell);
    ::endpwent(); // NOLINT(concurrency-mt-unsafe)
    std::vector<Account> people;
    for (const auto &[name, shell] : entries) {
        auto account = find_account(name);
        if (account && is_persons(*account, shell, first, last)) people.push_back(std::move(*account));
    }
    return people;
}

bool is_persons(const Account &account, const std::string &shell, unsigned first_uid, unsigned last_uid)
{
    const auto uid = account.uid.value();
    const auto name = shell.substr(shell.rfind('/') + 1);
    const bool can_log_in = name != "nologin" && name != "false" && name != "sync";
    return uid >= first_uid && uid <= last_uid && can_log_in && account.home.size() > 1 && account.home.front() == '/' &&
           is_account_name(account.name);
}

void require_usable(const std::vector<std::string> &roots, const Account &user, const Observer &observer)
{
    std::vector<RootSpec> specs;
    for (const auto &root : roots)
        specs.push_back({root, {}, true});
    for (const auto &finding : observer.resolve_roots(specs, user))
        if (finding.kind == Finding::Kind::unusable)
            throw Failure(ExitStatus::usage, "a root of " + user.name + " cannot be one: " + finding.text);
}

Account account_of_user(const std::string &name)
{
    auto user = find_account(name);
    if (!user) throw Failure(ExitStatus::usage, "this host has no user " + escape_for_display(name));
    if (user->uid == Uid(0)) throw Failure(ExitStatus::usage, "root cannot run the agent; name an ordinary account");
    if (!is_account_name(name)) throw Failure(ExitStatus::usage, "a policy cannot name the user " + escape_for_display(name));
    return std::move(*user);
}

Candidate find_candidate(const Account &user, const std::vector<std::string> &roots, const Observer &observer)
{
    if (roots.empty()) return {user.name, usable_places(user, observer)};
    require_usable(roots, user, observer);
    return {user.name, roots};
}

std::vector<Candidate> find_candidates(const InitOrder &order, const Observer &observer)
{
    std::vector<Candidate> candidates;
    for (const auto &name : order.users)
        candidates.push_back(find_candidate(account_of_user(name), order.roots, observer));
    if (!order.users.empty()) return candidates;
    if (!order.roots.empty()) throw Failure(ExitStatus::usage, "--root needs --user NAME: whose root is it?");
    for (const auto &person : find_people())
        candidates.push_back(find_candidate(person, {}, observer));
    return candidates;
}

std::vector<std::string> words_of_answer(const std::string &answer)
{
    std::string blanks = answer;
    std::replace(blanks.begin(), blanks.end(), ',', ' ');
    std::istringstream words(blanks);
    return {std::istream_iterator<std::string>(words), {}};
}

std::string init_text(const std::vector<Candidate> &candidates, const PolicyAnswers &answers)
{
    const auto ready = std::count_if(candidates.begin(), candidates.end(), [](const Candidate &one) { return !one.roots.empty(); });
    if (ready == 0)
        throw Failure(ExitStatus::usage,
                      "no user of this host has a directory to start the agent in (looked for ~/projects, ~/src, ~/work and similar); "
                      "name one: pi-agentctl init --user NAME --root DIRECTORY");
    std::string text =
        fmt::format("# Who may run the agent, and where. To change it: sudo pi-agentctl edit. To put it in force: sudo pi-agentctl apply.\n"
                    "# 'pi-agentctl explain --user NAME' says what a user gets; 'man pi-agent-policy' describes every key.\n"
                    "version: 1\n"
                    "agent:\n"
                    "  # Each user's agent runs as an account of its own, so the agents cannot reach each other.\n"
                    "  accounts: per-user\n"
                    "users:\n"
                    "  # roots: the agent can be started in these, at any depth, and can write to them. ~ is the user's home.\n");
    for (const auto &candidate : candidates)
        text += entry_of(candidate, run_as_of(candidate, candidates));
    text +=
        "# What sessions reach: {hosts: [...]} and no others ('pi-agentctl denials' lists what was refused), full (everything that this\n"
        "# host reaches), loopback (services of this host), none, or a list of addresses.\n" +
        network_of(answers);
    if (answers.provider)
        text += fmt::format(
            "# The key of everybody's model. Only root can read the file, and no session has the key: a process outside puts it into\n"
            "# requests to the provider.\nproviders:\n  {}: {{key_file: {}}}\n",
            *answers.provider, key_file_of(*answers.provider));
    else if (answers.env_file)
        text += "# The keys of model providers. Only root can read the file. Every agent gets its variables and can read them.\n"
                "env_files: [" +
                quoted(*answers.env_file) + "]\n";
    else
        text += "# Users log in themselves, or keep their keys in ~/.pi/agent/env. For a key that everybody uses and no session has:\n"
                "# providers: {anthropic: {key_file: " +
                key_file_of("anthropic") + "}}\n";
    return text + "# What one session may take: for example\n"
                  "# limits: {memory: 8G, runtime: 12h}\n"
                  "# A session sees one repository, and not the whole directory above:\n"
                  "# projects: {scope: project}\n";
}

} // namespace pi_agent
