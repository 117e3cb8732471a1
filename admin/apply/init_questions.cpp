// The four questions of pi-agentctl init, each with an answer that Enter takes.
#include "admin/apply/apply.hpp"

#include "admin/programs/program.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pi_agent {

namespace {

constexpr const char *first_place = "~/projects"; // of a user who has none of the usual ones

// Repeats the question until `take` accepts the answer, and says what is wrong with one.
template <typename Take>
void ask_until_taken(const std::string &question, const std::string &otherwise, std::ostream &questions, const Take &take)
{
    for (;;) {
        auto answer = ask_line(question, otherwise);
        if (!answer) throw NothingToDo("nothing is changed");
        if (*answer == "y" || *answer == "yes") answer = otherwise; // people who agree type this
        try {
            return take(*answer);
        } catch (const Failure &failure) {
            questions << "   " << failure.what() << '\n';
        }
    }
}

// Everybody who keeps projects here; otherwise the user who called sudo, if that is a person of this host, or the first person.
std::vector<Account> likely_users(const Observer &observer)
{
    const auto people = find_people();
    std::vector<Account> users;
    for (const auto &person : people)
        if (!find_candidate(person, {}, observer).roots.empty()) users.push_back(person);
    if (!users.empty() || people.empty()) return users;
    const auto caller = own_environment()("SUDO_USER");
    const auto found = std::ranges::find_if(people, [&](const Account &person) { return person.name == caller; });
    return {found == people.end() ? people.front() : *found};
}

std::string listed_names(const std::vector<Account> &users)
{
    return joined(users, ", ", [&](const auto &user) { return user.name; });
}

// Names are separated by commas or spaces; a name with a space in it is taken whole.
std::vector<Account> users_of_answer(const std::string &answer)
{
    if (find_account(answer)) return {account_of_user(answer)};
    std::vector<Account> users;
    for (const auto &name : words_of_answer(answer))
        if (std::ranges::none_of(users, [&](const Account &user) { return user.name == name; })) users.push_back(account_of_user(name));
    if (users.empty()) throw Failure(ExitStatus::usage, "name at least one user");
    return users;
}

std::vector<Account> ask_who(const InitOrder &order, const Observer &observer, std::ostream &questions)
{
    auto users = mapped(order.users, [&](const auto &name) { return account_of_user(name); });
    if (!users.empty()) return users;
    const auto likely = likely_users(observer);
    questions << "1. Who may run the agent? Names of users, separated by commas.\n";
    ask_until_taken("  ", listed_names(likely), questions, [&](const std::string &answer) {
        users = answer == listed_names(likely) && !likely.empty() ? likely : users_of_answer(answer);
    });
    return users;
}

void ask_where(const InitOrder &order, const std::vector<Account> &users, const Observer &observer, InitAnswers &answers,
               std::ostream &questions)
{
    for (const auto &user : users)
        answers.candidates.push_back(find_candidate(user, order.roots, observer));
    for (auto &candidate : answers.candidates) {
        if (!candidate.roots.empty()) continue;
        candidate.roots = {first_place};
        answers.new_roots.push_back(candidate);
    }
    if (!order.roots.empty()) return;
    questions << "2. Where may they start the agent? It can write to everything in these directories.\n";
    for (const auto &candidate : answers.candidates) {
        const bool is_new = std::ranges::any_of(answers.new_roots, [&](const Candidate &other) { return other.name == candidate.name; });
        questions << fmt::format("   {}: {}{}\n", escape_for_display(candidate.name), fmt::join(candidate.roots, ", "),
                                 is_new ? " (does not exist yet; init creates it)" : "");
    }
    const std::string listed = "as listed";
    ask_until_taken("  ", listed, questions, [&](const std::string &answer) {
        if (answer == listed) return;
        const auto roots = words_of_answer(answer);
        if (roots.empty()) throw Failure(ExitStatus::usage, "name at least one directory");
        for (const auto &root : roots)
            if (!root.starts_with("/") && !root.starts_with("~/"))
                throw Failure(ExitStatus::usage, escape_for_display(root) + " is not a whole path; begin it with / or ~/");
        for (const auto &user : users)
            require_usable(roots, user, observer);
        for (auto &candidate : answers.candidates)
            candidate.roots = roots;
        answers.new_roots.clear();
    });
}

void ask_network(const InitOrder &order, InitAnswers &answers, std::ostream &questions)
{
    answers.policy.network = order.network;
    if (order.network) return;
    questions << "3. Which network may sessions reach? The agent must reach its model.\n"
                 "   hosts: the usual providers of models and nothing else, until you name more in the policy\n"
                 "   or names of hosts, such as github.com, *.example.org, localhost:5432\n"
                 "   full: everything that this host reaches   loopback: services of this host alone   none\n"
                 "   or a list of addresses, such as 127.0.0.0/8, 10.20.0.0/16\n";
    ask_until_taken("  ", suggested_network, questions, [&](const std::string &answer) {
        init_text(answers.candidates, {answer, {}}); // throws for a text that is not a network
        answers.policy.network = answer;
    });
}

void take_proxy(const std::string &answer, InitAnswers &answers)
{
    if (answer == no_key) return;
    auto proxy = proxy_of_text(answer, "named to init");
    if (!proxy) throw Failure(ExitStatus::usage, "that is not the address of a proxy; answer http://HOST:PORT, or none");
    if (!names_hosts(answers.policy.network)) throw Failure(ExitStatus::usage, "--via needs a network of hosts; see --network");
    answers.policy.proxy = std::move(proxy);
}

void ask_proxy(const InitOrder &order, InitAnswers &answers, std::ostream &questions)
{
    if (order.via) return take_proxy(*order.via, answers);
    const auto found = names_hosts(answers.policy.network) ? find_host_proxy(own_environment()) : std::nullopt;
    if (!found) return;
    questions << "   This host reaches the Internet by a proxy (" << escape_for_display(found->where)
              << "). Sessions reach hosts by it, too, or by another one, or by none.\n";
    ask_until_taken("  ", found->url, questions, [&](const std::string &answer) {
        if (answer != found->url) return take_proxy(answer, answers);
        answers.policy.proxy = *found; // with its login
    });
}

bool is_suggested(const std::optional<std::string> &network)
{
    return network.value_or(suggested_network) == suggested_network;
}

// The hosts that a policy gets unasked lead to the providers that are known here, and to no other.
[[noreturn]] void refuse_unknown_host(const std::string &key)
{
    throw Failure(ExitStatus::usage, "which hosts " + escape_for_display(key) +
                                         " needs is not known here, and a network that nobody named leads to the usual providers alone; "
                                         "begin again, and name its hosts or full: pi-agentctl init --network api.mistral.ai, for example");
}

void require_known_host(const std::string &key, const std::optional<std::string> &network)
{
    if (is_suggested(network) && !provider_outside(key, network)) refuse_unknown_host(key);
}

void take_key(const std::string &key, InitAnswers &answers)
{
    const auto variable = variable_of_key(key);
    const auto provider = provider_outside(key, answers.policy.network);
    const auto value = read_hidden("   The value of " + variable + " (it is not shown):");
    if (!value) throw NothingToDo("nothing is changed");
    require_plain_key(*value);
    answers.key = ProviderKey{file_of_key(key, answers.policy.network), (provider ? "" : variable + "=") + *value + "\n"};
    answers.policy.provider = provider;
    if (!provider) answers.policy.env_file = key_file();
}

void ask_key(const InitOrder &order, bool has_key_file, InitAnswers &answers, std::ostream &questions)
{
    answers.policy.env_file = order.env_file;
    if (order.env_file) answers.policy.hosts = hosts_of_keys(*order.env_file, answers.policy.network);
    if (order.env_file || order.key == no_key) return;
    const auto take = [&](const std::string &answer) {
        if (answer == no_key) return;
        if (answer == key_file()) {
            answers.policy.hosts = hosts_of_keys(answer, answers.policy.network);
            answers.policy.env_file = answer;
            return;
        }
        variable_of_key(answer);
        require_known_host(answer, answers.policy.network);
        const auto file = file_of_key(answer, answers.policy.network);
        const bool exists = file == key_file() ? has_key_file : path_exists(file);
        if (exists) throw Failure(ExitStatus::usage, existing_key_file(file));
        take_key(answer, answers);
    };
    if (order.key) return take(*order.key);
    questions
        << "4. Which key does the agent use for its model?\n"
           "   none: users log in themselves, or keep their own keys in ~/.pi/agent/env\n"
           "   or a provider, such as anthropic, openai or google: one key for everybody. Where sessions reach hosts alone, it stays\n"
           "   outside of them; otherwise every agent can read it\n";
    if (has_key_file) questions << "   or " << key_file() << ", which exists\n";
    ask_until_taken("  ", has_key_file ? key_file() : no_key, questions, take);
}

// None of a file that cannot be read: check says what is wrong with it.
std::vector<std::string> variables_of(const std::string &file)
{
    std::vector<std::string> names;
    try {
        for (const auto &assignment : parse_env_file(read_trusted_file(file, env_file_limit, "file of keys"), file))
            names.push_back(assignment.name);
    } catch (const Failure &) {
        return {};
    }
    return names;
}

// --- The proxy by which this host reaches the Internet, where an administrator has named it already.

constexpr const char *environment_file = "/etc/environment"; // pam_env(8)
constexpr std::size_t environment_limit = 64UL * 1024;
constexpr int apt_patience_seconds = 10;
constexpr const char *proxy_variables[] = {"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"};

// "%40" is "@" in the login of a URL. As it is where no two digits follow.
std::string without_percents(const std::string &text)
{
    std::string plain;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const auto digits = std::string_view(text).substr(at + 1, 2);
        unsigned value = 0;
        const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
        const bool is_encoded = text[at] == '%' && digits.size() == 2 && problem == std::errc() && end == digits.data() + 2;
        plain += is_encoded ? static_cast<char>(value) : text[at];
        at += is_encoded ? 2 : 0;
    }
    return plain;
}

// NAME=VALUE, as pam_env reads it: "export" may stand before it, and quotes around the value.
std::optional<std::string> value_in(const std::string &text, const std::string &name)
{
    std::optional<std::string> found;
    for (auto line : split(text, '\n')) {
        if (line.starts_with("export ")) line.remove_prefix(7);
        if (!line.starts_with(name + "=")) continue;
        line.remove_prefix(name.size() + 1);
        const bool is_quoted = line.size() >= 2 && (line.front() == '"' || line.front() == '\'') && line.back() == line.front();
        found = is_quoted ? line.substr(1, line.size() - 2) : line;
    }
    return found;
}

std::optional<HostProxy> find_in(const Variable &variable, const std::string &where)
{
    for (const char *name : proxy_variables)
        if (const auto text = variable(name))
            if (auto proxy = proxy_of_text(*text, fmt::format("{} in {}", name, where))) return proxy;
    return std::nullopt;
}

std::optional<HostProxy> find_of_apt()
{
    if (!has_program("apt-config")) return std::nullopt;
    for (const char *name : {"Acquire::https::Proxy", "Acquire::http::Proxy"}) {
        const auto said = run_program_apart({"apt-config", "dump", "--format=%v%n", name}, apt_patience_seconds);
        const auto line = said.output.substr(0, said.output.find('\n'));
        if (auto proxy = said.status == 0 ? proxy_of_text(line, fmt::format("{} of apt", name)) : std::nullopt) return proxy;
    }
    return std::nullopt;
}

} // namespace

std::string variable_of_key(const std::string &provider)
{
    if (!providers_of_key(provider).empty()) return provider;
    if (const auto variable = key_variable_of_provider(provider)) return *variable;
    throw Failure(ExitStatus::usage, escape_for_display(provider) +
                                         " is not a provider that pi-agent knows; answer none, and put the variable "
                                         "into a file that only root can read (env_files in 'man pi-agent-policy')");
}

std::optional<std::string> provider_outside(const std::string &key, const std::optional<std::string> &network)
{
    if (!names_hosts(network)) return std::nullopt;
    for (const auto &provider : providers_with_gate()) {
        const bool is_variable = std::ranges::find(provider.variables, key) != provider.variables.end();
        if ((provider.name == key || is_variable) && !provider.host.empty()) return std::string(provider.name);
    }
    return std::nullopt;
}

std::string file_of_key(const std::string &key, const std::optional<std::string> &network)
{
    const auto provider = provider_outside(key, network);
    return provider ? key_file_of(*provider) : key_file();
}

std::vector<std::string> hosts_of_keys(const std::string &file, const std::optional<std::string> &network)
{
    std::vector<std::string> hosts;
    for (const auto &variable : variables_of(file)) {
        const auto names = providers_of_key(variable);
        const auto known = std::ranges::find_if(names, [](const auto &name) {
            const auto *provider = find_provider(name);
            return provider != nullptr && !provider->host.empty();
        });
        if (known == names.end()) {
            if (!names.empty() && is_suggested(network)) refuse_unknown_host(variable);
            continue;
        }
        const std::string host(find_provider(*known)->host);
        if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
    }
    return hosts;
}

void require_plain_key(const std::string &value)
{
    if (value.empty()) throw Failure(ExitStatus::usage, "the key is empty");
    const bool is_plain =
        std::ranges::all_of(value, [](char byte) { return byte > ' ' && byte < '\x7f' && byte != '"' && byte != '\'' && byte != '\\'; });
    if (!is_plain)
        throw Failure(ExitStatus::usage, "a key has only letters, digits and signs without spaces or quotes; this one is not written");
}

InitAnswers ask_for_policy(const InitOrder &order, const Observer &observer, bool has_key_file, std::ostream &questions)
{
    InitAnswers answers;
    if (order.network) init_text({{"user", {first_place}}}, {order.network, {}}); // reports a mistake before the first question
    if (order.key && *order.key != no_key) variable_of_key(*order.key);
    questions << "Four questions make the policy. Enter takes the answer in brackets. Ctrl-C ends without a change.\n";
    ask_where(order, ask_who(order, observer, questions), observer, answers, questions);
    ask_network(order, answers, questions);
    ask_proxy(order, answers, questions);
    ask_key(order, has_key_file, answers, questions);
    return answers;
}

InitAnswers answers_of(const InitOrder &order, const Observer &observer)
{
    InitAnswers answers;
    if (order.users.empty() && !order.roots.empty()) throw Failure(ExitStatus::usage, "--root needs --user NAME: whose root is it?");
    for (const auto &name : order.users)
        answers.candidates.push_back(find_candidate(account_of_user(name), order.roots, observer));
    for (const auto &person : order.users.empty() ? find_people() : std::vector<Account>())
        answers.candidates.push_back(find_candidate(person, {}, observer));
    answers.policy = {order.network, order.env_file};
    if (order.via) take_proxy(*order.via, answers);
    if (order.env_file) answers.policy.hosts = hosts_of_keys(*order.env_file, order.network);
    if (!order.key || *order.key == no_key) return answers;
    variable_of_key(*order.key);
    require_known_host(*order.key, order.network);
    init_text(answers.candidates, answers.policy); // reports a mistake before it asks for the key
    take_key(*order.key, answers);
    return answers;
}

std::string login_file_of_proxy()
{
    return parent_of(policy_path) + "/proxy.login";
}

std::optional<HostProxy> proxy_of_text(const std::string &text, const std::string &where)
{
    constexpr std::string_view scheme = "http://";
    if (!text.starts_with(scheme) && text.find("://") != text.npos) return std::nullopt; // TLS to the proxy itself, or SOCKS
    std::string place = text.starts_with(scheme) ? text.substr(scheme.size()) : text;
    place.resize(std::min(place.size(), place.find('/')));
    const auto at = place.rfind('@');
    HostProxy proxy{{}, at == place.npos ? "" : without_percents(place.substr(0, at)), where};
    const auto parsed = parse_proxy(std::string(scheme) + (at == place.npos ? place : place.substr(at + 1)));
    const auto *rule = std::get_if<HostRule>(&parsed);
    if (rule == nullptr) return std::nullopt;
    proxy.url = std::string(scheme) + host_and_port(rule->host, rule->port);
    return proxy;
}

std::optional<HostProxy> find_host_proxy(const Variable &own)
{
    if (auto proxy = find_in(own, "root's environment")) return proxy;
    try {
        const auto text = read_trusted_file(environment_file, environment_limit, "file of variables");
        if (auto proxy = find_in([&](const std::string &name) { return value_in(text, name); }, environment_file)) return proxy;
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): it is missing, or not only root's
    }
    return find_of_apt();
}

} // namespace pi_agent
