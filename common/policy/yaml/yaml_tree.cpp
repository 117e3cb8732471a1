// YAML text to a tree, through yaml-cpp's events: its own nodes keep duplicate keys, expand aliases and recurse without our bound.
#include "common/policy/yaml/yaml_tree.hpp"

#include "common/base/text.hpp"
#include "common/policy/yaml/yaml_places.hpp"

#include <fmt/format.h>
#include <map>
#include <sstream>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

namespace pi_agent {

namespace {

// Ends the parse of one file: nothing after it could be understood.
using Unreadable = YamlFault;

std::size_t index_of(const YamlPlaces &places, const YAML::Mark &mark)
{
    return places.index_of(mark.line, mark.column);
}

class TreeBuilder final : public YAML::EventHandler {
public:
    TreeBuilder(const YamlPlaces &places, Problems &problems) : places_(places), problems_(problems) { root_.where = {places_.file()}; }

    [[nodiscard]] YamlNode take_root() { return std::move(root_); }
    [[nodiscard]] YamlProgress progress() const
    {
        const auto open = std::find_if(open_.rbegin(), open_.rend(), [](const Open &level) { return level.bracket.has_value(); });
        return {last_, open == open_.rend() ? std::nullopt : open->bracket};
    }

    void OnDocumentStart(const YAML::Mark & /*mark*/) override {}
    void OnDocumentEnd() override {}
    void OnAlias(const YAML::Mark &mark, YAML::anchor_t /*anchor*/) override { refuse_anchor(mark); }
    void OnAnchor(const YAML::Mark &mark, const std::string & /*name*/) override { refuse_anchor(mark); }

    void OnNull(const YAML::Mark &mark, YAML::anchor_t anchor) override
    {
        auto node = make_node(YamlNode::Kind::null, mark, "?", anchor);
        // For an empty item the parser has the position of the next thing; the item's dash is better.
        const bool item = !open_.empty() && open_.back().node.kind == YamlNode::Kind::sequence && !open_.back().bracket;
        const auto dash = item && places_.rest(last_).substr(0, 1) != "~" ? places_.rest(0).rfind('-', last_ - 1) : std::string_view::npos;
        if (dash != std::string_view::npos) node.where = places_.position_of(dash);
        add(std::move(node));
    }

    void OnScalar(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor, const std::string &value) override
    {
        auto node = make_node(YamlNode::Kind::scalar, mark, tag, anchor);
        node.text = value;
        node.quoted = tag == "!";
        add(std::move(node));
    }

    void OnSequenceStart(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value /*style*/) override
    {
        open(make_node(YamlNode::Kind::sequence, mark, tag, anchor), '[');
    }
    void OnSequenceEnd() override { close(); }

    void OnMapStart(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor, YAML::EmitterStyle::value /*style*/) override
    {
        open(make_node(YamlNode::Kind::mapping, mark, tag, anchor), '{');
    }
    void OnMapEnd() override { close(); }

private:
    [[nodiscard]] Position place_of(const YAML::Mark &mark) const { return places_.position_of(index_of(places_, mark)); }

    // A list or mapping whose end has not come yet.
    struct Open {
        YamlNode node;
        std::optional<std::size_t> bracket;    // where it is, if it began with one
        std::optional<YamlNode> key;           // of a mapping: read, its value not yet
        std::map<std::string, Position> known; // of a mapping: where each key stood first
    };

    [[noreturn]] void refuse_anchor(const YAML::Mark &mark) const
    {
        throw Unreadable{place_of(mark), "anchors and aliases (& and *) are not accepted", "write the value out, or put it in quotes"};
    }

    [[nodiscard]] YamlNode make_node(YamlNode::Kind kind, const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor)
    {
        if (anchor != YAML::NullAnchor) refuse_anchor(mark);
        if (!tag.empty() && tag != "?" && tag != "!") {
            throw Unreadable{place_of(mark), "the tag " + quote(tag) + " is not accepted", "remove it; quotes make a value text"};
        }
        YamlNode node;
        node.kind = kind;
        node.where = place_of(mark);
        last_ = index_of(places_, mark);
        return node;
    }

    // Just after the node was made.
    void open(YamlNode node, char bracket)
    {
        if (open_.size() >= yaml_depth_limit) {
            throw Unreadable{node.where, fmt::format("nested more than {} deep", yaml_depth_limit), "no policy needs this; remove it"};
        }
        const bool has_bracket = places_.rest(last_).substr(0, 1) == std::string_view(&bracket, 1);
        open_.push_back({std::move(node), has_bracket ? std::optional<std::size_t>(last_) : std::nullopt, std::nullopt, {}});
    }

    void close()
    {
        auto node = std::move(open_.back().node);
        open_.pop_back();
        add(std::move(node));
    }

    void add(YamlNode node)
    {
        if (open_.empty()) {
            root_ = std::move(node);
            return;
        }
        auto &parent = open_.back();
        if (parent.node.kind == YamlNode::Kind::sequence) {
            parent.node.items.push_back(std::move(node));
        } else if (!parent.key) {
            require_key(node);
            parent.key = std::move(node);
        } else {
            add_entry(parent, std::move(node));
        }
    }

    static void require_key(const YamlNode &node)
    {
        const bool text = node.kind == YamlNode::Kind::scalar && meaning_of_scalar(node) == ScalarMeaning::text;
        if (!text) throw Unreadable{node.where, "a key must be text, found " + describe(node), "put the key in quotes"};
        if (!node.quoted && node.text == "<<") throw Unreadable{node.where, "merge keys (<<) are not accepted", "write the keys out"};
    }

    void add_entry(Open &mapping, YamlNode value)
    {
        const auto key = std::move(*mapping.key);
        mapping.key.reset();
        const auto [first, is_new] = mapping.known.emplace(key.text, key.where);
        if (is_new) {
            mapping.node.entries.push_back({key.text, key.where, std::move(value)});
        } else {
            problems_.add(key.where, dotted(key.text), "given twice, first at " + to_string(first->second), "keep one of them");
        }
    }

    [[nodiscard]] std::string dotted(const std::string &last) const
    {
        std::string path;
        for (const auto &level : open_) {
            if (level.key) path += escape_for_display(level.key->text) + ".";
        }
        return path + escape_for_display(last);
    }

    const YamlPlaces &places_;
    Problems &problems_;
    std::size_t last_ = 0; // where the last node began
    std::vector<Open> open_;
    YamlNode root_;
};

// Looks at the bytes before yaml-cpp does, which guesses at encodings, accepts NUL and reports tabs as a missing "end of map".
void require_clean_text(const std::string &file, std::string_view text)
{
    if (text.size() > yaml_size_limit)
        throw Unreadable{{file}, fmt::format("larger than {} bytes", yaml_size_limit), "split or shorten it"};
    int line = 1;
    int column = 1;
    bool indentation = true;
    while (!text.empty()) {
        const auto character = decode_utf8(text);
        const Position where{file, line, column};
        if (character.length == 0) throw Unreadable{where, "not UTF-8", "save the file as UTF-8"};
        const bool line_break = character.value == '\n';
        if (character.value == '%' && column == 1) {
            throw Unreadable{where, "a line that begins with '%' (a YAML directive)",
                             "remove it; put the name of a group in quotes: \"%group\""};
        }
        if (character.value == '\t' && indentation) throw Unreadable{where, "a tab in the indentation", "indent with spaces"};
        const bool windows_break = text.substr(0, 2) == "\r\n";
        if ((character.value < 0x20 && character.value != '\t' && !line_break && !windows_break) || character.value == 0x7F) {
            throw Unreadable{where, fmt::format("the control character \\x{:02x}", static_cast<unsigned>(character.value)),
                             "remove it, or write it as an escape within double quotes"};
        }
        indentation = line_break || (indentation && character.value == ' ');
        column = line_break ? 1 : column + 1;
        if (line_break) ++line;
        text.remove_prefix(character.length);
    }
}

YamlNode parse_or_throw(const std::string &name, const std::string &text, Problems &problems)
{
    require_clean_text(name, text);
    const YamlPlaces places(name, text);
    // The end marker is ours: without it yaml-cpp takes the end of the file for the end of a quoted text that was left open.
    std::istringstream stream(text + (!text.empty() && text.back() == '\n' ? "...\n" : "\n...\n"));
    TreeBuilder builder(places, problems);
    try {
        YAML::Parser parser(stream);
        if (!parser.HandleNextDocument(builder)) return builder.take_root();
        auto root = builder.take_root();
        TreeBuilder rest(places, problems);
        if (parser.HandleNextDocument(rest)) {
            throw Unreadable{rest.take_root().where, "more text after the end of the document",
                             "keep one document, without a second '---'"};
        }
        return root;
    } catch (const YAML::Exception &error) {
        throw explain_yaml_error(error.msg, index_of(places, error.mark), builder.progress(), places);
    }
}

} // namespace

std::string_view without_byte_order_mark(std::string_view text) noexcept
{
    constexpr std::string_view mark = "\xef\xbb\xbf";
    return text.substr(0, mark.size()) == mark ? text.substr(mark.size()) : text;
}

std::optional<YamlNode> parse_yaml(const std::string &name, const std::string &text, Problems &problems)
{
    try {
        return parse_or_throw(name, std::string(without_byte_order_mark(text)), problems);
    } catch (const Unreadable &reason) {
        problems.add(reason.where, "", reason.problem, reason.remedy);
        return std::nullopt;
    }
}

} // namespace pi_agent
