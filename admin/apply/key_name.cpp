// Walks the table of keys along a dotted name.
#include "admin/apply/key_name.hpp"

#include "common/base/error.hpp"
#include "common/base/problems.hpp"
#include "common/base/text.hpp"

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
    if (parse_or_throw("the value", value).kind == YamlNode::Kind::null)
        throw Failure(ExitStatus::usage, "the value says nothing; remove the key with: sudo pi-agentctl edit");
    return value;
}

} // namespace pi_agent
