// The policy's text: changed with an editor, written as YAML, its keys as people type them, and described as a schema.
#include "admin/apply/apply.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>

namespace pi_agent {

// --- A draft beside the policy, an editor, a check, and a rename.

namespace {

constexpr mode_t draft_mode = 0600;
constexpr mode_t policy_mode = 0644;

// Beside the file that is edited, where only root can write, under a name that is not read as a part of the policy.
class Draft {
public:
    Draft(const AsRoot &root, std::string file) : file_(std::move(file)), directory_(open_policy_directory(root, file_)) {}

    [[nodiscard]] const std::string &file() const noexcept { return file_; }
    [[nodiscard]] const std::string &path() const noexcept { return path_; }
    [[nodiscard]] std::string read() const { return read_trusted_file(path_, yaml_size_limit, "draft of the policy"); }
    [[nodiscard]] bool exists() const { return has_name(directory_, name_, "examining " + path_); }
    void write(const std::string &text) const { write_beside(directory_, name_, text, draft_mode, path_); }
    void install(const std::string &text) const { replace_root_file(directory_, split_last(file_).second, text, policy_mode, file_); }
    void remove() const { remove_root_file(directory_, name_, path_); }

private:
    std::string file_;
    UniqueFd directory_;
    std::string path_ = file_ + ".edit";
    std::string name_ = split_last(path_).second;
};

// What the editor begins with. A new file begins with a comment, so that an unchanged one is not created.
std::string text_of(const PolicyFiles &files, const std::string &file)
{
    if (const auto text = find_text(files, file)) return *text;
    if (const auto user = user_of_file(file, policy_path))
        return "# What the policy says of " + *user + ", as it would stand below users." + *user +
               ", without run_as. For example:\n# roots: [~/projects]\n";
    return "# A part of the policy, joined to " + std::string(policy_path) + ". What another part says already is an error here.\n";
}

// With its first file of users.d, nobody starts by a policy that does not say agent.accounts.
void require_accounts_said(const PolicyFiles &files, const std::string &file)
{
    if (!user_of_file(file, policy_path) || has_user_files(policy_path)) return;
    if (says_accounts(files)) return;
    throw Failure(ExitStatus::configuration, "with files in users.d more than one user is possible, and the policy does not say whether "
                                             "users share an account (agent.accounts); say it first, for example: sudo pi-agentctl set "
                                             "agent.accounts per-user");
}

// An edit that was cut short (the host went down, the terminal was closed) left work that may be wanted. True if the administrator goes on
// with it.
bool take_up_or_begin(const Draft &draft, const std::string &text)
{
    if (draft.exists()) {
        const char answer = ask_letter("There is a draft of an edit that was cut short, " + draft.path() +
                                           ": k(eep on with it), d(iscard it), or x (leave it)?",
                                       "kdx");
        if (answer == 'k') return true;
        if (answer == 'x') throw Failure(FailureKind::busy, "an interrupted edit left " + draft.path() + "; look at it, then remove it");
    }
    draft.write(text);
    return false;
}

// The text of the draft once it is good or unchanged: exactly the checked text is installed. Throws when the draft is given up.
std::string edit_until_good(const Draft &draft, const PolicyFiles &files, const Observer &observer, const std::vector<std::string> &editor,
                            std::ostream &warnings)
{
    for (;;) {
        const int status = run_editor(editor, draft.path());
        std::string mistakes = "the editor " + editor.front() + " ended with status " + std::to_string(status);
        if (status == 0) {
            auto text = draft.read();
            if (text == text_of(files, draft.file())) return text;
            mistakes = mistakes_in(with_draft(files, draft.file(), text), observer);
            if (mistakes.empty()) return text;
        }
        warnings << mistakes << '\n' << std::flush;
        if (ask_letter("[e]dit again, or [d]iscard the changes?", "exd") == 'e') continue;
        draft.remove();
        throw Failure(ExitStatus::configuration, "the changes are discarded, and the policy is unchanged");
    }
}

// Unless the text is in force, or somebody else has begun another draft.
void best_effort_keep_draft(const AsRoot &root, const Draft &draft, const std::string &text, std::ostream &warnings)
{
    try {
        const auto lock = take_edit_lock(root);
        if (draft.exists() || find_text(read_policy_sources(policy_path), draft.file()) == text) return;
        draft.write(text);
        warnings << "pi-agentctl: your draft is " << draft.path() << ", and 'pi-agentctl edit' continues with it\n";
    } catch (const std::exception &failure) {
        warnings << "pi-agentctl: warning: your changes are not kept as a draft: " << failure.what() << '\n';
    }
}

// --- A text as one word of YAML, a value as one line, and a value's place in a tree.

constexpr std::string_view special_in_brackets = ",?[]{}"; // elsewhere a plain text may have them

bool is_shown_as_it_is(std::string text)
{
    std::erase(text, '\\'); // stands for itself in single quotes
    return escape_for_display(text) == text;
}

std::string in_quotes(const std::string &text)
{
    std::string inside;
    for (const char byte : text)
        inside += byte == '\'' ? std::string("''") : std::string(1, byte);
    return "'" + inside + "'";
}

// --- Each form of a value as a schema.

using Json = nlohmann::ordered_json;

constexpr const char *name_pattern = "^[a-z_][a-z0-9_.-]{0,31}$";

Json schema_of(const PolicyKey &key);

// A value of the table, which is YAML.
Json json_of(std::string_view yaml)
{
    Problems problems;
    const auto node = parse_yaml("the table of keys", std::string(yaml), problems);
    problems.throw_if_any();
    return Json::parse(read_json_text({*node, problems, "", {}}));
}

Json mapping_of(std::string_view path)
{
    Json properties = Json::object();
    Json required = Json::array();
    for (const auto *key : policy_keys_below(path)) {
        properties[std::string(last_part(*key))] = schema_of(*key);
        if (key->required) required.push_back(last_part(*key));
    }
    Json schema = {{"type", "object"}, {"properties", properties}};
    if (!required.empty()) schema["required"] = required;
    schema["additionalProperties"] = false;
    return schema;
}

const Json line_schema = {{"type", "string"}, {"pattern", R"(^[^\u0000-\u001f\u007f]+$)"}};

Json list_schema(const PolicyKey &key)
{
    Json schema = {{"type", "array"}, {"items", line_schema}};
    if (key.form == ValueForm::roots)
        schema["items"] = {{"anyOf", Json::array({line_schema, schema_of(*policy_keys_below(key.path).at(0))})}};
    if (key.fewest_items > 0) schema["minItems"] = key.fewest_items;
    return schema;
}

Json form_of(const PolicyKey &key)
{
    switch (key.form) {
    case ValueForm::version:
        return {{"const", policy_version}};
    case ValueForm::section:
        return mapping_of(key.path);
    case ValueForm::names:
        return {{"type", "object"}, {"additionalProperties", schema_of(*policy_keys_below(key.path).at(0))}};
    case ValueForm::document:
        return {{"type", "object"}};
    case ValueForm::boolean:
        return {{"type", "boolean"}};
    case ValueForm::text:
        return {{"type", "string"}, {"pattern", R"(^[^\u0000]*$)"}};
    case ValueForm::line:
        return line_schema;
    case ValueForm::name:
        return {{"type", "string"}, {"pattern", name_pattern}};
    case ValueForm::choice:
        return {{"enum", split(key.choices, ' ')}};
    case ValueForm::list:
    case ValueForm::roots:
        return list_schema(key);
    case ValueForm::choice_or_list:
        return {{"anyOf", Json::array({Json{{"enum", split(key.choices, ' ')}}, list_schema(key)})}};
    case ValueForm::network:
        return {{"anyOf", Json::array({Json{{"enum", split(key.choices, ' ')}}, list_schema(key), mapping_of(key.path)})}};
    case ValueForm::toggle:
        return {{"anyOf", Json::array({Json{{"type", "boolean"}}, mapping_of(key.path)})}};
    case ValueForm::amount:
        return {{"type", "string"}, {"pattern", fmt::format("^(0|[1-9][0-9]*)[{}]$", fmt::join(split(key.choices, ' '), ""))}};
    case ValueForm::count:
        return {{"type", "integer"}};
    }
    return Json::object();
}

Json schema_of(const PolicyKey &key)
{
    auto schema = form_of(key);
    schema["description"] = std::string(key.meaning);
    if (!key.standard.empty()) schema["default"] = json_of(key.standard);
    if (!key.example.empty()) schema["examples"] = Json::array({json_of(key.example)});
    return schema;
}

// --- Walks the table of keys along a name.

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
        const auto names = mapped(policy_keys_below(siblings_of_unknown_), [&](const auto *key) { return last_part(*key); });
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

} // namespace

void run_edit(const std::optional<std::string> &name, std::ostream &out, std::ostream &warnings)
{
    require_own_policy("edit");
    claim_root("edit", "changes the policy, so only root can run it");
    const auto observer = Observer::self();
    const auto file = policy_file_named(name.value_or(policy_path));
    auto lock = take_edit_lock(*observer.root());
    const auto files = read_policy_sources(policy_path);
    require_accounts_said(files, file);
    const auto editor = choose_editor(own_environment());
    const auto before = text_of(files, file);
    const Draft draft(*observer.root(), file);
    const bool taken_up = take_up_or_begin(draft, before);
    const auto text = edit_until_good(draft, files, observer, editor, warnings);
    if (text == before) {
        draft.remove();
        out << "the policy is as it was\n";
        return;
    }
    const auto require_unchanged = [&] {
        if (!are_same(read_policy_sources(policy_path), files))
            throw Failure(FailureKind::changed_meanwhile, "another command changed the policy meanwhile; your draft is " + draft.path() +
                                                              ", and the same command continues with it");
    };
    require_unchanged();
    if (taken_up) {
        out << difference_of(files, with_draft(files, file, text)) << std::flush;
        if (ask_letter("The draft is older than this edit, and the policy may have changed since. Put it in place as shown? y(es), n(o)",
                       "yn") != 'y')
            throw Failure(ExitStatus::limit,
                          "the policy is unchanged; your draft is " + draft.path() + ", and the same command continues with it");
        require_unchanged();
    }
    draft.install(text);
    draft.remove();
    lock.reset();
    out << "the policy is changed\n" << std::flush;
    // If that fails, the policy of before comes back, and what was written is a draft again.
    if (ask_letter("Apply it now? (y or n)", "yn") == 'y') {
        try {
            run_apply({}, out, warnings, files);
        } catch (const std::exception &) {
            best_effort_keep_draft(*observer.root(), draft, text, warnings);
            throw;
        }
        return;
    }
    out << "it says who may start what from now on; people who were added or removed, and changes of agent, wrapper and run_as, need "
           "'pi-agentctl apply'\n";
}

std::string yaml_word(const std::string &text)
{
    if (is_plain_word(text)) return text;
    if (!is_shown_as_it_is(text))
        throw Failure(ExitStatus::usage, "a policy takes this as no name and no value: " + escape_for_display(text));
    return in_quotes(text);
}

std::string yaml_line(const YamlNode &node)
{
    switch (node.kind) {
    case YamlNode::Kind::null:
        return "null";
    case YamlNode::Kind::scalar:
        // In JSON's quotes if it needs an escape.
        if (!node.quoted && node.text.find_first_of(special_in_brackets) == std::string::npos) return node.text;
        if (is_plain_word(node.text)) return node.text;
        return is_shown_as_it_is(node.text) ? in_quotes(node.text) : nlohmann::json(node.text).dump();
    case YamlNode::Kind::sequence:
        return "[" + joined(node.items, ", ", yaml_line) + "]";
    case YamlNode::Kind::mapping:
        break;
    }
    return "{" + joined(node.entries, ", ", [](const YamlEntry &entry) { return yaml_word(entry.key) + ": " + yaml_line(entry.value); }) +
           "}";
}

std::string yaml_lines(const YamlNode &mapping)
{
    return joined(mapping.entries, "", [](const YamlEntry &entry) { return yaml_word(entry.key) + ": " + yaml_line(entry.value) + "\n"; });
}

YamlNode parse_or_throw(const std::string &file, const std::string &text)
{
    Problems problems;
    auto root = parse_yaml(file, text, problems);
    problems.throw_if_any();
    return std::move(*root);
}

const YamlNode *find_node(const YamlNode &root, const KeyPath &path)
{
    const YamlNode *node = &root;
    for (const auto &key : path) {
        const auto entry = std::ranges::find_if(node->entries, [&](const YamlEntry &each) { return each.key == key; });
        if (entry == node->entries.end()) return nullptr;
        node = &entry->value;
    }
    return node;
}

void put_node(YamlNode &root, const KeyPath &path, const YamlNode &value)
{
    YamlNode *node = &root;
    for (const auto &key : path) {
        if (node->kind == YamlNode::Kind::null) node->kind = YamlNode::Kind::mapping;
        if (node->kind != YamlNode::Kind::mapping)
            throw Failure(ExitStatus::configuration,
                          to_string(node->where) + ": is " + describe(*node) + ", and holds no keys; set it as a whole");
        auto entry = std::ranges::find_if(node->entries, [&](const YamlEntry &each) { return each.key == key; });
        if (entry == node->entries.end()) entry = node->entries.insert(entry, {key, {}, {}});
        node = &entry->value;
    }
    *node = value;
}

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

void run_schema(std::ostream &out)
{
    Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                   {"title", "The policy of pi-agent"},
                   {"description", "What /etc/pi-agent/policy.yaml may say. 'pi-agentctl check' knows more than this schema can say."}};
    schema.update(mapping_of(""));
    out << schema.dump(2) << '\n';
}

} // namespace pi_agent
