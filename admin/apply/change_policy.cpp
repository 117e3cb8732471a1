// Changes files of the policy without an editor: walks the table of keys along a name, and checks the whole before.
#include "admin/apply/apply.hpp"

#include "admin/diagnose/faults.hpp"
#include "admin/text/terminal.hpp"
#include "common/host/beneath.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

class Walk {
public:
    explicit Walk(const std::string &text)
    {
        std::size_t begin = 0;
        for (std::size_t dot = text.find('.'); dot != std::string::npos; dot = text.find('.', begin = dot + 1))
            parts_.push_back(text.substr(begin, dot - begin));
        parts_.push_back(text.substr(begin));
    }

    // Whether the parts from `from` on are a key below `above`; then `name` has them.
    bool go(std::size_t from, std::string_view above, KeyName &name)
    {
        if (from == parts_.size()) return name.key != nullptr;
        const auto *key = find_policy_key(above, parts_[from]);
        if (key == nullptr) {
            if (from >= unknown_) {
                unknown_ = from;
                siblings_of_unknown_ = above;
            }
            return false;
        }
        const auto before = name;
        std::string part;
        for (std::size_t end = from + 1; end <= parts_.size(); ++end) { // a free name takes as few parts as it can
            part += (part.empty() ? "" : ".") + parts_[end - 1];
            name.path.push_back(part);
            name.key = key;
            if (!part.empty() && go_below(*key, end, name)) return true;
            name = before;
            if (last_part(*key) != "*") break;
        }
        return false;
    }

    [[nodiscard]] bool enters_list() const noexcept { return enters_list_; }

    [[nodiscard]] std::string hint() const
    {
        if (enters_list_) return "; a list is set as a whole";
        std::vector<std::string_view> names;
        for (const auto *key : policy_keys_below(siblings_of_unknown_))
            names.push_back(last_part(*key));
        return did_you_mean(parts_[unknown_], names);
    }

private:
    bool go_below(const PolicyKey &key, std::size_t from, KeyName &name)
    {
        if (key.form == ValueForm::document) return take_rest(from, name);
        if (key.form != ValueForm::roots || from == parts_.size()) return go(from, key.path, name);
        enters_list_ = true; // whose items have no names
        return false;
    }

    // What a document holds is nobody's key.
    bool take_rest(std::size_t from, KeyName &name)
    {
        name.path.insert(name.path.end(), parts_.begin() + static_cast<std::ptrdiff_t>(from), parts_.end());
        return true;
    }

    std::vector<std::string> parts_;
    bool enters_list_ = false;
    std::size_t unknown_ = 0;
    std::string_view siblings_of_unknown_;
};

// --- Changes the policy without an editor, in files that these commands alone write: `pi-agentctl user add`, `user remove`, `set`; and
// `get`.

constexpr const char *set_file = "/set.yaml"; // in policy.d
constexpr const char *head = "# Written by pi-agentctl (user add, set), which leaves this file alone once it has comments of your own.\n";

// The file's tree as a part of the policy: a file of users.d stands below users.NAME.
YamlNode tree_of(const PolicySource &source)
{
    auto root = parse_or_throw(source.name, source.text);
    const auto user = user_of_file(source.name, policy_path);
    if (!user) return root;
    YamlNode users;
    YamlNode top;
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
    if (order.dry_run || !question.empty()) out << difference_of(changing.files, wanted) << std::flush;
    if (!order.dry_run && !question.empty()) require_consent(question, order.yes);
    if (!are_same(read_policy_sources(policy_path), changing.files)) // by somebody who did not ask for the lock
        throw Failure(FailureKind::changed_meanwhile, "the policy changed meanwhile, and nothing is written; run this again");
    Changes changes(order.dry_run, out);
    install_policy_files(root, changing.files, wanted, changes);
    changing.lock.reset();
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

KeyName parse_key_name(const std::string &text)
{
    KeyName name;
    Walk walk(text);
    if (walk.go(0, "", name)) {
        const bool is_free = last_part(*name.key) == "*" && name.path.back().find('.') != std::string::npos;
        if (is_free || walk.enters_list()) name.doubt = walk.hint();
        return name;
    }
    throw Failure(ExitStatus::usage, quote(text) + " is not a key of a policy" + walk.hint() + "; docs/reference/policy.md lists them");
}

std::string value_for(const KeyName &name, const std::string &value)
{
    if (value.find('\n') != std::string::npos) throw Failure(ExitStatus::usage, "the value has several lines; use: sudo pi-agentctl edit");
    const auto form = name.key->form;
    const bool is_text = form == ValueForm::text || form == ValueForm::line || form == ValueForm::name;
    if (is_text) return yaml_word(value);
    const auto kind = parse_or_throw("the value", value).kind;
    if (kind == YamlNode::Kind::null)
        throw Failure(ExitStatus::usage, "the value says nothing; remove the key with: sudo pi-agentctl edit");
    if (kind == YamlNode::Kind::mapping && value[value.find_first_not_of(' ')] != '{') // "8G, cpu: 1": YAML takes all before ": " for a key
        throw Failure(ExitStatus::usage, "YAML reads the value " + quote(value) +
                                             " as a key with a value of its own; set each key by itself, or write a mapping in braces: "
                                             "{KEY: VALUE, KEY: VALUE}");
    return value;
}

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
    const KeyPath path = {"users", name};
    if (const auto *source = find_source(changing.files, path)) {
        const auto tree = tree_of(*source);
        throw Failure(ExitStatus::usage, escape_for_display(name) + " has an entry already, " + to_string(find_node(tree, path)->where) +
                                             "; change it with: sudo pi-agentctl edit");
    }
    std::vector<std::string> words;
    for (const auto &root : roots)
        words.push_back(yaml_word(root));
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
    const auto node = parse_or_throw("the value", value_for(name, value));
    put_in_place(changing, with_value(changing.files, name, node), order, "", out, warnings);
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
