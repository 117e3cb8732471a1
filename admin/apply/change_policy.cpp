// Changes files of the policy without an editor, and checks the whole before.
#include "admin/apply/apply.hpp"

#include "admin/diagnose/faults.hpp"
#include "admin/text/terminal.hpp"
#include "common/host/beneath.hpp"

#include <fmt/ranges.h>

namespace pi_agent {

namespace {

// --- Changes the policy without an editor, in files that these commands alone write: `pi-agentctl user add`, `user remove`, `set`; and
// `show KEY`.

constexpr const char *set_file = "/set.yaml"; // in policy.d
constexpr const char *head = "# Written by pi-agentctl (user add, set), which leaves this file alone once it has comments of your own.\n";

// The file's tree as a part of the policy: a file of users.d stands below users.NAME.
YamlNode tree_of(const PolicySource &source)
{
    auto root = parse_or_throw(source.name, source.text);
    const auto user = user_of_file(source.name, policy_path);
    if (!user) return root;
    YamlNode users, top;
    users.kind = top.kind = YamlNode::Kind::mapping;
    users.where = top.where = root.where;
    users.entries.push_back({*user, root.where, std::move(root)});
    top.entries.push_back({"users", users.where, std::move(users)});
    return top;
}

// The first file that says something of `path`; nullptr without one.
const PolicySource *find_source(const PolicyFiles &files, const KeyPath &path)
{
    const auto found = std::ranges::find_if(files, [&](const PolicySource &source) { return find_node(tree_of(source), path) != nullptr; });
    return found == files.end() ? nullptr : &*found;
}

std::string edit_command(const std::string &file)
{
    const auto [directory, name] = split_last(file);
    return "sudo pi-agentctl edit" + (file == policy_path ? "" : " " + split_last(directory).second + "/" + name_as_word(name));
}

[[noreturn]] void refuse_change(const PolicySource &source, const KeyPath &path)
{
    const auto tree = tree_of(source);
    throw Failure(ExitStatus::configuration,
                  fmt::format("{}: {} stands here, in a file that was written by hand; change it with: {}",
                              to_string(find_node(tree, path)->where), escape_for_display(fmt::format("{}", fmt::join(path, "."))),
                              edit_command(source.name)));
}

// The file with this value, as these commands write it.
PolicyFiles with_value_in(const PolicyFiles &files, const std::string &file, const KeyPath &path, const YamlNode &value)
{
    const auto text = find_text(files, file).value_or(head);
    auto root = parse_or_throw(file, text);
    if (text != head + yaml_lines(root)) // what would be lost is not in the tree
        throw Failure(ExitStatus::configuration,
                      escape_for_display(file) + " was written or changed by hand; change it with: " + edit_command(file));
    put_node(root, path, value);
    return with_draft(files, file, head + yaml_lines(root));
}

PolicyFiles with_value(const PolicyFiles &files, const KeyName &name, const YamlNode &value)
{
    const auto &path = name.path;
    const auto *source = find_source(files, path);
    if (source != nullptr && value.kind != YamlNode::Kind::mapping && yaml_line(*find_node(tree_of(*source), path)) == yaml_line(value))
        return files;
    if (path.front() != "users" || path.size() == 1) {
        const auto file = directory_of_parts(policy_path) + set_file;
        if (source != nullptr && source->name != file) refuse_change(*source, path);
        return with_value_in(files, file, path, value);
    }
    const KeyPath entry = {path[0], path[1]};
    source = find_source(files, entry);
    if (source == nullptr)
        throw Failure(ExitStatus::usage, "the policy has no entry users." + escape_for_display(path[1]) + name.doubt +
                                             "; add one with: sudo pi-agentctl user add NAME --root DIRECTORY");
    if (!user_of_file(source->name, policy_path)) refuse_change(*source, entry);
    if (path == entry) throw Failure(ExitStatus::usage, "name a key of one user, such as users.NAME.roots");
    return with_value_in(files, source->name, {path.begin() + 2, path.end()}, value);
}

// The text with a word more in a list: a line after its last, or before a bracket. Whether that is what was meant, the caller looks: a
// bracket may be a comment's.
std::vector<std::string> texts_with(const std::string &text, const YamlNode &list, const std::string &word)
{
    std::size_t begin = 0;
    for (int line = 1; line < (list.items.empty() ? list : list.items.back()).where.line && begin < text.size(); ++line)
        begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto first = std::min(text.find_first_not_of(' ', begin), end);
    const auto inserted = [&](std::size_t at, const std::string &added) { return text.substr(0, at) + added + text.substr(at); };
    if (text.compare(first, 2, "- ") == 0) return {inserted(end, "\n" + text.substr(begin, first - begin) + "- " + word)};
    std::vector<std::string> texts;
    for (auto at = text.rfind(']', end); at != std::string::npos && at > begin; at = text.rfind(']', at - 1))
        texts.push_back(inserted(at, (list.items.empty() ? "" : ", ") + word));
    return texts;
}

// In whatever file the list stands, and whoever wrote that: everything else stays as it is, byte for byte.
PolicyFiles with_item(const PolicyFiles &files, const PolicySource &source, const KeyPath &path, const std::string &word)
{
    auto expected = tree_of(source);
    auto list = *find_node(expected, path);
    const auto texts = texts_with(source.text, list, word);
    list.items.push_back(parse_or_throw("the value", word));
    put_node(expected, path, list);
    for (const auto &text : texts)
        try {
            if (yaml_line(tree_of({source.name, text})) == yaml_line(expected)) return with_draft(files, source.name, text);
        } catch (const PolicyError &) { // NOLINT(bugprone-empty-catch): the next one
        }
    refuse_change(source, path);
}

// For one user, who has no list of their own: what holds for them, which a list of their own takes the place of.
YamlNode own_network(const NetworkPolicy &network, const std::vector<HostRule> &more)
{
    const auto written = [](std::vector<HostRule> rules, const std::vector<HostRule> &others = {}) {
        rules.insert(rules.end(), others.begin(), others.end());
        const auto words = mapped(rules, [&](const auto &rule) { return yaml_word(to_string(rule)); });
        return fmt::format("[{}]", fmt::join(words, ", "));
    };
    std::string text = "{hosts: " + written(network.hosts, more);
    if (!network.may_grant.empty()) text += ", may_grant: " + written(network.may_grant);
    if (network.via) text += ", via: " + yaml_word("http://" + host_and_port(network.via->host, network.via->port));
    if (!network.direct.empty()) text += ", direct: " + written(network.direct);
    if (!network.via_login_file.path.empty()) text += ", via_login_file: " + yaml_word(network.via_login_file.path);
    return parse_or_throw("the value", text + "}");
}

// Of one of the commands that write: who looks, the lock of whoever edits, and the files that are installed.
struct Changing {
    Observer observer;
    UniqueFd lock;
    PolicyFiles files;
};

Changing begin_change(const std::string &command)
{
    require_own_policy(command.c_str());
    claim_root(command, "changes the policy, so only root can run it");
    auto observer = Observer::self();
    auto lock = take_edit_lock(*observer.root());
    return {std::move(observer), std::move(lock), read_policy_sources(policy_path)};
}

// Whether a line goes, as a list of hosts does by `set network none`.
bool loses_lines(const std::string &difference)
{
    const auto lines = split(difference, '\n');
    return std::ranges::any_of(lines, [](std::string_view line) { return line.starts_with("    -") && !line.starts_with("    --- "); });
}

// Warnings of `check` that come by the change.
void warn_of_new(const PolicyFiles &before, const PolicyFiles &wanted, std::ostream &warnings)
{
    std::set<std::string> known;
    try {
        for (const auto &one : find_warnings(parse_policy(before)))
            known.insert(one.key + one.problem);
    } catch (const PolicyError &) { // NOLINT(bugprone-empty-catch): then all are new
    }
    auto found = find_warnings(parse_policy(wanted));
    std::erase_if(found, [&](const Diagnostic &one) { return known.contains(one.key + one.problem); });
    warn(found, warnings);
}

// Only what passes the check that `apply` begins with. A question is asked before, with the lines that it is about.
void put_in_place(Changing &changing, const PolicyFiles &wanted, const ChangeOrder &order, const std::string &question, std::ostream &out,
                  std::ostream &warnings)
{
    const auto &root = *changing.observer.root();
    if (are_same(changing.files, wanted)) {
        out << "the policy says that already\n";
        return;
    }
    const auto mistakes = mistakes_in(wanted, changing.observer);
    if (!mistakes.empty()) throw Failure(FailureKind::invalid_policy, mistakes + "\nnothing is written: the policy would be as shown");
    const auto difference = difference_of(changing.files, wanted);
    if (order.dry_run || !question.empty() || loses_lines(difference)) out << difference << std::flush;
    if (!order.dry_run && !question.empty()) require_consent(question, order.yes);
    if (!are_same(read_policy_sources(policy_path), changing.files)) // by somebody who did not ask for the lock
        throw Failure(FailureKind::changed_meanwhile, "the policy changed meanwhile, and nothing is written; run this again");
    Changes changes(order.dry_run, out);
    install_policy_files(root, changing.files, wanted, changes);
    changing.lock.reset();
    warn_of_new(changing.files, wanted, warnings);
    tell_apply(changing.observer, wanted, out, warnings);
}

// Who comes by a group as well stays.
void tell_other_entries(const PolicyFiles &wanted, const std::string &name, std::ostream &out)
{
    const auto account = find_account(name);
    if (!account) return;
    try {
        const auto access = find_access_rules(parse_policy(wanted), *account, policy_path);
        if (const auto *rules = std::get_if<AccessRules>(&access))
            out << escape_for_display(name) << " may still start pi, by " << escape_for_display(rules->entry) << " ("
                << to_string(rules->where) << ")\n";
    } catch (const PolicyError &) { // NOLINT(bugprone-empty-catch): groups contradict each other, and each start says so
    }
}

// Entries of several files count together where they are mappings.
void merge(YamlNode &into, const YamlNode &from)
{
    if (into.kind != YamlNode::Kind::mapping || from.kind != YamlNode::Kind::mapping) return;
    for (const auto &entry : from.entries) {
        const auto same = [&](const YamlEntry &known) { return known.key == entry.key; };
        const auto found = std::ranges::find_if(into.entries, same);
        if (found == into.entries.end())
            into.entries.push_back(entry);
        else
            merge(found->value, entry.value);
    }
}

nlohmann::ordered_json json_of(const YamlNode &node)
{
    if (node.kind == YamlNode::Kind::mapping) {
        auto object = nlohmann::ordered_json::object();
        for (const auto &entry : node.entries)
            object[entry.key] = json_of(entry.value);
        return object;
    }
    if (node.kind == YamlNode::Kind::sequence) {
        auto list = nlohmann::ordered_json::array();
        for (const auto &item : node.items)
            list.push_back(json_of(item));
        return list;
    }
    const auto meaning = node.kind == YamlNode::Kind::null ? ScalarMeaning::null : meaning_of_scalar(node);
    if (meaning == ScalarMeaning::null) return nullptr;
    if (meaning == ScalarMeaning::text || meaning == ScalarMeaning::odd) return node.text;
    auto number = nlohmann::ordered_json::parse(node.text, nullptr, false);
    if (number.is_discarded()) return node.text; // larger than any number
    return number;
}

} // namespace

// Exchanges one file of the installed policy, and checks the whole.

std::optional<std::string> find_text(const PolicyFiles &files, const std::string &file)
{
    const auto found = std::ranges::find_if(files, [&](const PolicySource &source) { return source.name == file; });
    return found == files.end() ? std::nullopt : std::optional(found->text);
}

PolicyFiles with_draft(PolicyFiles files, const std::string &file, const std::string &draft)
{
    const auto in_order = [](const PolicySource &source, const std::string &name) { return source.name < name; };
    const auto place = file == files.front().name ? files.begin() : std::lower_bound(files.begin() + 1, files.end(), file, in_order);
    if (place == files.end() || place->name != file)
        files.insert(place, {file, draft});
    else
        place->text = draft;
    return files;
}

std::string mistakes_in(const PolicyFiles &files, const Observer &observer)
{
    try {
        // Something that does not run just now keeps nobody from changing the policy.
        const auto reading = read_policy_as_far_as_possible(files);
        // As for apply: the emergency stop does not wait until the host fits what nobody can start by.
        const bool is_stop = reading.problems.empty() && reading.complete && !reading.policy.wrapper.enable;
        const auto mistakes = is_stop ? std::vector<Diagnostic>() : find_mistakes(reading, observer, Means::installed);
        auto shown = show_problems(mistakes, "", [&files](const std::string &name) { return find_text(files, name); });
        if (!shown.empty()) shown.pop_back(); // the caller prints the last line feed
        return shown;
    } catch (const Failure &failure) {
        return failure.what();
    }
}

void run_user_add(const std::string &name, const std::vector<std::string> &roots, const ChangeOrder &order, std::ostream &out,
                  std::ostream &warnings)
{
    auto changing = begin_change("user add");
    if (!is_account_name(name))
        throw Failure(ExitStatus::usage,
                      quote(name) + " is not the name of a user; entries of groups are written with: sudo pi-agentctl edit");
    if (!find_account(name))
        throw Failure(ExitStatus::configuration, "this host has no user " + quote(name) + "; create the account first");
    const KeyPath path = {"users", name};
    if (const auto *source = find_source(changing.files, path)) {
        const auto tree = tree_of(*source);
        throw Failure(ExitStatus::usage, escape_for_display(name) + " has an entry already, " + to_string(find_node(tree, path)->where) +
                                             "; change it with: sudo pi-agentctl edit");
    }
    const auto words = mapped(roots, [&](const auto &root) { return yaml_word(root); });
    const auto file = directory_of_users(policy_path) + "/" + name + ".yaml";
    const auto wanted = with_draft(changing.files, file, fmt::format("{}roots: [{}]\n", head, fmt::join(words, ", ")));
    put_in_place(changing, wanted, order, "", out, warnings);
}

void run_user_remove(const std::string &name, const ChangeOrder &order, std::ostream &out, std::ostream &warnings)
{
    auto changing = begin_change("user remove");
    const KeyPath path = {"users", name};
    const auto *source = find_source(changing.files, path);
    if (source == nullptr) throw NothingToDo("the policy has no entry users." + escape_for_display(name));
    if (!user_of_file(source->name, policy_path)) refuse_change(*source, path);
    auto wanted = changing.files;
    std::erase_if(wanted, [source](const PolicySource &each) { return each.name == source->name; });
    put_in_place(changing, wanted, order, "Take " + escape_for_display(name) + " out of the policy?", out, warnings);
    tell_other_entries(wanted, name, out);
}

void run_set(const std::string &key, const std::string &value, const ChangeOrder &order, std::ostream &out, std::ostream &warnings)
{
    auto changing = begin_change("set");
    const auto name = parse_key_name(key);
    put_in_place(changing, with_value(changing.files, name, parse_or_throw("the value", value_for(name, value))), order, "", out, warnings);
}

void run_allow(const std::vector<std::string> &hosts, const std::optional<std::string> &user, const ChangeOrder &order, std::ostream &out,
               std::ostream &warnings)
{
    std::vector<HostRule> rules;
    for (const auto &host : hosts) {
        const auto parsed = parse_host_rule(host);
        if (const auto *problem = std::get_if<TextProblem>(&parsed))
            throw Failure(ExitStatus::usage, quote(host) + " " + problem->text + "; " + problem->remedy);
        if (std::ranges::find(rules, std::get<HostRule>(parsed)) == rules.end()) rules.push_back(std::get<HostRule>(parsed));
    }
    auto changing = begin_change("allow");
    const auto policy = parse_policy(changing.files);
    auto network = policy.network;
    if (user) {
        const auto access = rules_of_user(policy, account_of_user(*user));
        if (!access) throw Failure(ExitStatus::usage, "the policy does not let " + escape_for_display(*user) + " start pi");
        network = policy_for(policy, *access).network;
    }
    const std::string where = network.where.file.empty() ? "the default" : to_string(network.where);
    if (network.mode == NetworkMode::full) throw NothingToDo("network is full (" + where + "), so sessions reach every host already");
    if (network.mode != NetworkMode::hosts)
        throw Failure(ExitStatus::configuration, "network (" + where + ") is not a list of hosts; change it with: sudo pi-agentctl edit");
    std::erase_if(rules, [&](const HostRule &rule) { return rule_for(network.hosts, rule) != nullptr; });
    auto wanted = changing.files;
    const KeyPath above = user ? KeyPath{"users", *user, "network"} : KeyPath{"network"};
    auto path = above;
    path.emplace_back("hosts");
    if (find_source(wanted, path) != nullptr) {
        for (const auto &rule : rules)
            wanted = with_item(wanted, *find_source(wanted, path), path, yaml_word(to_string(rule)));
    } else if (const auto *source = find_source(wanted, above)) {
        refuse_change(*source, above);
    } else if (!rules.empty()) {
        wanted = with_value(wanted, {above, nullptr, ""}, own_network(network, rules));
        out << "users." << escape_for_display(*user) << ".network is a list of its own from now on: it begins as " << where << " says\n";
    }
    put_in_place(changing, wanted, order, "", out, warnings);
    if (user) return;
    each_level(policy, [&](const Rules &level, const std::string &whose) {
        if (level.network && !whose.empty())
            out << "unchanged: " << whose << "network (" << to_string(level.network->where) << "), which counts instead there\n";
    });
}

void run_get(const std::string &key, bool json, std::ostream &out)
{
    const auto name = parse_key_name(key);
    std::optional<YamlNode> value;
    for (const auto &source : read_policy_sources(policy_path)) {
        const auto tree = tree_of(source);
        const auto *node = find_node(tree, name.path);
        if (node != nullptr && value)
            merge(*value, *node);
        else if (node != nullptr)
            value = *node;
    }
    const std::string standard(name.path.size() == static_cast<std::size_t>(std::ranges::count(name.key->path, '.')) + 1
                                   ? name.key->standard
                                   : std::string_view());
    if (json)
        print_json({{"key", escape_for_display(key)},
                    {"value", value ? nlohmann::json(json_of(*value)) : nlohmann::json(nullptr)},
                    {"where", value ? nlohmann::json(to_string(value->where)) : nlohmann::json(nullptr)},
                    {"default", text_or_null(standard)}},
                   out);
    if (!value)
        throw NothingToDo(escape_for_display(key) + " is not set" + name.doubt + (standard.empty() ? "" : "; its default is " + standard));
    if (json) return;
    // As it is, unless a terminal would obey it.
    const auto text = value->kind == YamlNode::Kind::scalar ? value->text : yaml_line(*value);
    std::string others = text;
    std::erase(others, '\\');
    out << (escape_for_display(others) == others ? text : escape_for_display(text)) << '\n';
}

} // namespace pi_agent
