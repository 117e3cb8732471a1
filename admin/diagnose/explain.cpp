// Explains with the same functions that decide: levels, network, what this host's systemd gives, and the whole.
#include "admin/diagnose/explain.hpp"

#include "admin/diagnose/data.hpp"
#include "admin/diagnose/faults.hpp"
#include "admin/text/terminal.hpp"
#include "runner/root/method/sandbox.hpp"
#include "runner/root/view/root_tree.hpp"

#include <fmt/format.h>
#include <iostream>

namespace pi_agent {

// Which level of the policy says which value: a part of an explanation, and the command show.

namespace {

// "users.alice.network, p.yaml:7:3", and what else says a part of the value.
std::string places_text(const SaidAt &said)
{
    std::string text = escape_for_display(said.key) + ", " + to_string(said.where);
    for (const auto &more : said.also)
        text += "; " + places_text(more);
    return text;
}

nlohmann::json with_places(nlohmann::json value, const SaidAt &said)
{
    value["key"] = said.key;
    value["where"] = to_string(said.where);
    for (const auto &more : said.also)
        value["also"].push_back({{"key", more.key}, {"where", to_string(more.where)}});
    return value;
}

// The entry of a user or group whose variable it is.
std::string key_of_entry(const Policy &policy, const std::string &name, const Position &where)
{
    for (const auto &entry : policy.users)
        if (const auto place = entry.env_where.find(name); place != entry.env_where.end() && to_string(place->second) == to_string(where))
            return entry_key(entry) + ".env." + name;
    return "env." + name;
}

// The variables that the policy sets for this user, each a value of its own. Those of their entry win.
std::vector<EffectiveValue> variables(const Policy &policy, const AccessRules &rules)
{
    std::map<std::string, EffectiveValue> found;
    const auto add = [&](const std::string &name, const std::string &value, SaidAt said) {
        const std::string shown = looks_secret(name, value) ? "(hidden)" : escape_for_display(value);
        found.insert_or_assign(name, EffectiveValue{"env." + name, shown, std::move(said)});
    };
    for (const auto &[name, value] : policy.env)
        add(name, value, {policy.env_where.at(name), "env." + name});
    for (const auto &[name, value] : rules.env)
        add(name, value, {rules.env_where.at(name), key_of_entry(policy, name, rules.env_where.at(name))});
    return mapped(found, [](auto &named) { return std::move(named.second); });
}

// --- What a session reaches, and whose keys stay outside of it.

template <typename Item>
std::vector<std::string> as_texts(const std::vector<Item> &items)
{
    return mapped(items, [&](const auto &item) { return to_string(item); });
}

template <typename Item>
std::string joined_rules(const std::vector<Item> &items)
{
    return joined(items, ", ", [](const auto &item) { return to_string(item); });
}

std::string mode_text(const NetworkPolicy &network)
{
    const std::string where = to_string(network.where);
    switch (network.mode) {
    case NetworkMode::full:
        break;
    case NetworkMode::none:
        return fmt::format("network:  none ({}): a loopback of its own, which nobody else reaches;\n"
                           "          its model, too, is out of reach unless it runs in the session\n",
                           where);
    case NetworkMode::loopback:
        return fmt::format("network:  loopback ({}): {} of this host, in both directions;\n"
                           "          a proxy, a name server or a model that listens there is reached\n",
                           where, joined_rules(network.allowed));
    case NetworkMode::listed:
        return fmt::format("network:  only {} ({}), in both directions;\n"
                           "          name servers, loopback and the model's host only as far as they are among them\n",
                           joined_rules(network.allowed), where);
    case NetworkMode::hosts:
        const std::string may_add = network.may_grant.empty() ? ""
                                                              : fmt::format("          its user may add (pi --pi-agent-allow): {}\n",
                                                                            joined_rules(network.may_grant));
        std::string by_proxy;
        if (network.via)
            by_proxy = fmt::format("          by the proxy {} ({}){}{}\n", host_and_port(network.via->host, network.via->port),
                                   to_string(network.via->where), network.via_login_file.path.empty() ? "" : ", with a login",
                                   network.direct.empty() ? "" : ", but for " + joined_rules(network.direct));
        return fmt::format("network:  {} ({}), and a loopback of its own;\n"
                           "          every other host is refused at once\n{}{}",
                           network.hosts.empty() ? "no host" : "these hosts: " + joined_rules(network.hosts), to_string(network.where),
                           by_proxy, may_add);
    }
    return "network:  full: the host's, without restriction (network)\n";
}

// --- Explains with the same functions that decide.

// `own` becomes the policy as it holds in the directory, if a start there is allowed.
ExplainedDirectory explain_directory(const Account &user, const AccessRules &rules, const std::vector<ExplainedRoot> &roots,
                                     const Finding &directory, const std::string &asked, Policy &own)
{
    if (directory.kind == Finding::Kind::unknown) return {asked, std::nullopt, directory.text, {}};
    if (directory.kind == Finding::Kind::unusable) return {asked, false, directory.text, {}};
    const auto findings = mapped(roots, [&](const auto &root) { return root.finding; });
    try {
        auto start = dry_start(user, rules, own, findings, directory);
        own = std::move(start.policy);
        return {directory.text, true, start.root.path, start.root.where};
    } catch (const Failure &failure) {
        return {directory.text, false, failure.what(), {}};
    }
}

// What the policy authorises this user to today. It does not look at roots, as `explain --user` does. `of_all` is the policy without users.
nlohmann::json line_of(const Policy &policy, const Policy &of_all, const std::string &name)
{
    nlohmann::json line = {{"user", name}, {"entry", nullptr}, {"where", nullptr}, {"agent", nullptr}, {"agent_exists", false}};
    line["roots"] = nlohmann::json::array(); // as the policy writes them
    std::string problem;                     // why this user cannot start pi whatever the roots are
    const auto user = find_account(name);
    try {
        const auto access = user ? find_access_rules(policy, *user, policy_path) : NotAuthorised{"this host has no such user"};
        if (const auto *rules = std::get_if<AccessRules>(&access)) {
            const bool exists = find_account(rules->agent_account).has_value();
            line.update(
                {{"entry", rules->entry}, {"where", to_string(rules->where)}, {"agent", rules->agent_account}, {"agent_exists", exists}});
            for (const auto &root : rules->roots)
                line["roots"].push_back(root.spec.text);
            if (!exists) problem = "this host has no account " + rules->agent_account + "; run 'sudo pi-agentctl apply'";
            const auto refused = refused_starts(of_all, *user, *rules);
            if (!refused.empty() && refused.size() == rules->roots.size()) problem = refused.front().text();
        } else {
            problem = std::get<NotAuthorised>(access).text;
        }
    } catch (const PolicyError &error) { // their groups contradict each other, or their own entry
        problem = error.what();
    }
    line["problem"] = text_or_null(problem);
    return line;
}

// --- What a code of a message, a fault of doctor or a key of the policy means, and what to do: pi-agentctl explain WORD. The texts about
// codes and faults are those of docs/troubleshooting.md, which the build puts into this program.

constexpr std::string_view page = PI_AGENT_TROUBLESHOOTING;
constexpr std::size_t answer_columns = 100;

// `text` in lines of at most answer_columns, or of the terminal's, of which all but the first are indented as `first` is long; a word is
// never divided. A terminal shows no type face: literal words go between apostrophes.
std::string wrapped(const std::string &first, std::string_view text)
{
    const std::size_t columns = columns_for(std::cout).value_or(answer_columns);
    std::string all;
    std::string line = first;
    bool is_begun = false;
    // Divides text at spaces, but what is between backquotes is one word: a command is pasted as a whole.
    std::vector<std::string> words;
    bool is_open = false;
    for (const auto word : split(text, ' ')) {
        if (is_open)
            words.back() += " " + std::string(word);
        else
            words.emplace_back(word);
        if (std::ranges::count(word, '`') % 2 != 0) is_open = !is_open;
    }
    for (const auto &word : words) {
        if (is_begun && line.size() + 1 + word.size() > columns) {
            all += line + "\n";
            line = std::string(first.size(), ' ');
            is_begun = false;
        }
        line += (is_begun ? " " : "") + word;
        is_begun = true;
    }
    all += line + "\n";
    std::ranges::replace(all, '`', '\'');
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
    std::string cause, user, administrator;
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
    for (auto &cell : cells)
        cell = trimmed(cell);
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

std::string explain_key(const PolicyKey &key)
{
    std::string text = display_path(key) + (key.required ? ", a required key" : ", a key") + " of the policy\n\n";
    text += wrapped("", key.meaning) + "\n" + wrapped("value:   ", form_text(key));
    if (!key.standard.empty()) text += wrapped("default: ", key.standard);
    if (!key.example.empty()) text += wrapped("example: ", key.example);
    return text + "\nMore: man pi-agent-policy\n";
}

} // namespace

std::string said_text(const Policy &policy)
{
    std::string text;
    for (const auto &[key, value, said] : effective_values(policy))
        if (said) text += fmt::format("{} {}: {} ({})\n", text.empty() ? "said:    " : "         ", key, value, places_text(*said));
    return text;
}

nlohmann::json said_json(const Policy &policy)
{
    auto values = nlohmann::json::object();
    for (const auto &[key, value, said] : effective_values(policy))
        if (said) values[key] = with_places({{"value", value}}, *said);
    return values;
}

void run_show(const std::optional<std::string> &user_name, const std::optional<std::string> &directory, bool json, std::ostream &out)
{
    const auto observer = Observer::self();
    const auto user = account_to_explain(user_name, observer);
    const auto explanation = explain(load_policy(policy_path), policy_path, observer, user, directory);
    if (const auto *refused = std::get_if<NotAuthorised>(&explanation.access)) throw Failure(ExitStatus::denied, refused->text);
    if (const auto &in = explanation.directory; in && !in->allowed.value_or(false))
        throw Failure(ExitStatus::denied, escape_for_display(in->path) + ": " + in->text);
    auto values = effective_values(explanation.policy);
    for (auto &variable : variables(explanation.policy, std::get<AccessRules>(explanation.access)))
        values.push_back(std::move(variable));
    if (!json) {
        for (const auto &[key, value, said] : values)
            out << key << ":" << (value.empty() ? "" : " ") << value << "    # " << (said ? places_text(*said) : "default") << '\n';
        return;
    }
    auto list = nlohmann::json::object();
    for (const auto &[key, value, said] : values) {
        nlohmann::json entry = {{"value", text_or_null(value)}, {"key", nullptr}, {"where", nullptr}};
        if (said) entry = with_places(std::move(entry), *said);
        list[key] = std::move(entry);
    }
    print_json({{"user", user.name}, {"effective", list}}, out);
}

std::string network_text(const Policy &policy)
{
    std::string text;
    const char *route = routed_providers(policy).empty() ? ", and this network does not lead there" : "";
    for (const auto &provider : policy.providers)
        text += fmt::format("{}{} at {}: its key stays outside{} ({})\n", text.empty() ? "keys:     " : "          ", provider.name,
                            provider.host, route, to_string(provider.where));
    return mode_text(policy.network) + text;
}

void add_network(const Policy &policy, nlohmann::json &json)
{
    constexpr const char *modes[] = {"full", "loopback", "none", "list", "hosts"};
    const auto &network = policy.network;
    json["network"] = {{"mode", modes[static_cast<int>(network.mode)]}, {"allowed", as_texts(network.allowed)}};
    if (network.mode == NetworkMode::hosts)
        json["network"].update({{"hosts", as_texts(network.hosts)}, {"may_grant", as_texts(network.may_grant)}});
    if (network.via)
        json["network"].update({{"via", "http://" + host_and_port(network.via->host, network.via->port)},
                                {"direct", as_texts(network.direct)},
                                {"via_login_file", network.via_login_file.path}});
    const bool reaches = !routed_providers(policy).empty();
    nlohmann::json providers = mapped(policy.providers, [&](const auto &provider) {
        return nlohmann::json{{"name", provider.name},
                              {"host", provider.host},
                              {"key_file", provider.key_file.path},
                              {"reached", reaches},
                              {"where", to_string(provider.where)}};
    });
    json["providers"] = std::move(providers);
}

Account account_to_explain(const std::optional<std::string> &name, const Observer &observer)
{
    if (!name && observer.root()) throw Failure(ExitStatus::usage, "root cannot run the agent; say whose access to explain: --user NAME");
    const auto account = name ? find_account(*name) : find_account(Uid(::geteuid()));
    if (!account) throw Failure(ExitStatus::usage, "this host has no user " + quote(name.value_or(std::to_string(::geteuid()))));
    return *account;
}

Explanation explain(const Policy &policy, const std::string &policy_file, const Observer &observer, const Account &user,
                    const std::optional<std::string> &directory)
{
    Explanation explanation{user, policy, policy_file, find_access_rules(policy, user, policy_file),
                            agents_home(policy.agent.state_dir, short_name(user))};
    const auto *rules = std::get_if<AccessRules>(&explanation.access);
    if (rules == nullptr) return explanation;
    auto &own = explanation.policy; // what holds for this user, and from below on in this directory
    own = policy_for(policy, *rules);
    auto findings = observer.resolve_roots(*rules, user);
    for (std::size_t index = 0; index < findings.size(); ++index)
        explanation.roots.push_back({rules->roots[index], std::move(findings[index])});
    if (directory) {
        const auto finding = observer.resolve_directory(*directory, user);
        explanation.directory = explain_directory(user, *rules, explanation.roots, finding, *directory, own);
    }
    if (observer.root()) {
        try {
            explanation.shown = plan_host_view(own);
        } catch (const Failure &failure) { // a part of the explanation
            explanation.shown = failure;
        }
    }
    explanation.environment = explain_environment(own, *rules, observer, user, explanation.home);
    explanation.missing_tools = missing_search_tools();
    explanation.limits = explain_limits(own.limits);
    explanation.limits.disk = find_disk_problem(own);
    explanation.toolchains = explain_toolchains(own.toolchains, observer, user, *rules);
    explanation.account_exists = find_account(rules->agent_account).has_value();
    return explanation;
}

void run_explain(const ExplainOptions &options, std::ostream &out)
{
    const auto &[user_name, directory, all, json] = options;
    const auto observer = Observer::self();
    if (observer.root() && !user_name && !directory) {
        const auto policy = load_policy(policy_path);
        Policy of_all = policy;
        of_all.users.clear();
        auto lines = nlohmann::json::array(); // members of groups count as they are today
        for (const auto &name : users_of(policy))
            lines.push_back(line_of(policy, of_all, name));
        if (json) return print_json({{"users", lines}}, out);
        std::vector<Row> rows;
        std::string problems;
        for (const auto &line : lines) {
            const auto text = [&](const char *key) { return line[key].is_null() ? "" : line[key].get<std::string>(); };
            const auto roots =
                joined(line["roots"], " ", [](const nlohmann::json &root) { return escape_for_display(root.get<std::string>()); });
            rows.push_back({text("user"), text("entry"), text("where"), text("agent"), roots});
            if (!line["problem"].is_null()) problems += text("user") + " cannot start pi: " + text("problem") + "\n";
        }
        out << to_table({"USER", "ENTRY", "IN", "AGENT", "ROOTS"}, rows) + problems;
        return;
    }
    const auto user = account_to_explain(user_name, observer);
    const auto policy = load_policy(policy_path);
    // The caller's own directory says nothing about another user.
    const auto asked = directory || user_name ? directory : std::optional<std::string>(".");
    auto explanation = explain(policy, policy_path, observer, user, asked);
    try {
        if (has_unit(policy.sandbox.method)) explanation.systemd = systemd_features(SystemdBus::version_for_anybody());
    } catch (const Failure &failure) { // a part of the explanation
        explanation.systemd = failure;
    }
    if (json) return print_json(to_json(explanation), out);
    const auto text = to_text(explanation);
    const bool is_brief = columns_for(out) && !all && std::holds_alternative<AccessRules>(explanation.access);
    out << (is_brief ? on_one_screen(text) : text);
}

std::optional<std::string> explain_word(const std::string &word)
{
    if (auto text = explain_code(word)) return text;
    if (auto text = explain_fault(word)) return text;
    // As messages write it: "users.alice.roots" is the key "users.NAME.roots" of the table, and "users.Jane.Doe.roots[0].mask" is
    // "users.NAME.roots[N].mask".
    std::string asked;
    for (const char byte : word)
        if (byte != ']') asked += byte == '[' ? '.' : byte;
    for (const auto &key : policy_keys())
        if (word == display_path(key) || are_of_one_key(split(key.path, '.'), split(asked, '.'))) return explain_key(key);
    return std::nullopt;
}

} // namespace pi_agent
