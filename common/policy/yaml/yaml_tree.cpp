// Reads YAML strictly: what scalars mean, where something stands, and a tree of it.
#include "common/policy/yaml/yaml_tree.hpp"

#include "common/base/text.hpp"

#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>

namespace pi_agent {

namespace {

// Takes characters of `set` off the front and returns how many.
std::size_t skip(std::string_view &text, std::string_view set)
{
    const auto count = std::min(text.find_first_not_of(set), text.size());
    text.remove_prefix(count);
    return count;
}

constexpr std::string_view digits = "0123456789";

// Takes one character of `set` off the front.
bool skip_one(std::string_view &text, std::string_view set)
{
    if (text.empty() || set.find(text.front()) == std::string_view::npos) return false;
    text.remove_prefix(1);
    return true;
}

bool is_prefixed_integer(std::string_view text, std::string_view prefix, std::string_view set)
{
    if (text.substr(0, prefix.size()) != prefix) return false;
    text.remove_prefix(prefix.size());
    return skip(text, set) > 0 && text.empty();
}

// [-+]? ( \.[0-9]+ | [0-9]+ (\.[0-9]*)? ) ([eE][-+]?[0-9]+)?   and how much of it JSON would write the same way.
ScalarMeaning meaning_of_number(std::string_view text)
{
    const bool plus = !text.empty() && text.front() == '+';
    skip_one(text, "+-");
    const bool leading_zero = text.size() > 1 && text[0] == '0' && digits.find(text[1]) != std::string_view::npos;
    const auto whole = skip(text, digits);
    const bool point = skip_one(text, ".");
    const auto fraction = point ? skip(text, digits) : 0;
    if (whole + fraction == 0) return ScalarMeaning::text;
    const bool exponent = skip_one(text, "eE");
    if (exponent) {
        skip_one(text, "+-");
        if (skip(text, digits) == 0) return ScalarMeaning::text;
    }
    if (!text.empty()) return ScalarMeaning::text;
    if (plus || leading_zero || whole == 0 || (point && fraction == 0)) return ScalarMeaning::odd;
    return point || exponent ? ScalarMeaning::real : ScalarMeaning::integer;
}

ScalarMeaning meaning_of_plain(std::string_view text)
{
    if (text.empty() || text == "null") return ScalarMeaning::null;
    if (has_word("true false", text)) return ScalarMeaning::boolean;
    if (has_word("~ Null NULL True TRUE False FALSE", text)) return ScalarMeaning::odd;
    if (is_prefixed_integer(text, "0x", "0123456789abcdefABCDEF") || is_prefixed_integer(text, "0o", "01234567")) return ScalarMeaning::odd;
    auto unsigned_text = text;
    skip_one(unsigned_text, "+-");
    return has_word(".inf .Inf .INF", unsigned_text) || has_word(".nan .NaN .NAN", text) ? ScalarMeaning::odd : meaning_of_number(text);
}

// Refers to the text, and must not outlive it.
class YamlPlaces {
public:
    YamlPlaces(std::string file, std::string_view text) : file_(std::move(file)), text_(text), lines_{0}
    {
        for (std::size_t index = 0; index < text.size(); ++index) {
            if (text[index] == '\n') lines_.push_back(index + 1);
            if ((static_cast<unsigned char>(text[index]) & 0xC0U) == 0x80U) continuations_.push_back(index);
        }
    }

    [[nodiscard]] const std::string &file() const noexcept { return file_; }

    // At most the end of the text, which is also the place of a mark that says none.
    [[nodiscard]] std::size_t index_of(const YAML::Mark &mark) const
    {
        return mark.pos < 0 ? text_.size() : std::min(static_cast<std::size_t>(mark.pos), text_.size());
    }

    // A byte behind the end of the text counts as the end.
    [[nodiscard]] Position position_of(std::size_t index) const
    {
        // This is the end of the last line, not the beginning of a missing next line.
        if (index >= text_.size()) index = !text_.empty() && text_.back() == '\n' ? text_.size() - 1 : text_.size();
        const auto line = std::upper_bound(lines_.begin(), lines_.end(), index) - 1;
        const auto before = [this](std::size_t byte) { return std::lower_bound(continuations_.begin(), continuations_.end(), byte); };
        const auto bytes = static_cast<std::ptrdiff_t>(index - *line);
        return {file_, static_cast<int>(line - lines_.begin()) + 1, static_cast<int>(bytes - (before(index) - before(*line))) + 1};
    }
    [[nodiscard]] Position position_of(const YAML::Mark &mark) const { return position_of(index_of(mark)); }

    // From this byte on.
    [[nodiscard]] std::string_view rest(std::size_t index) const { return text_.substr(index); }

    // Where the first quoted text begins at or after a byte: at its quote. Comments are passed over. npos without one.
    [[nodiscard]] std::size_t find_quote(std::size_t index) const
    {
        for (; index < text_.size(); ++index) {
            const char before = index == 0 ? '\n' : text_[index - 1];
            const bool blank_before = before == ' ' || before == '\t' || before == '\n';
            if (text_[index] == '#' && blank_before) {
                index = std::min(text_.find('\n', index), text_.size());
            } else if ((text_[index] == '\'' || text_[index] == '"') &&
                       (blank_before || std::string_view("[{,").find(before) != std::string_view::npos)) {
                return index;
            }
        }
        return std::string_view::npos;
    }

    // Behind the quoted text that begins at this byte.
    [[nodiscard]] std::size_t skip_quoted(std::size_t index) const
    {
        const char quote = text_[index];
        for (++index; index < text_.size(); ++index) {
            const bool pair = index + 1 < text_.size() && (quote == '"' ? text_[index] == '\\' : text_.substr(index, 2) == "''");
            if (pair)
                ++index;
            else if (text_[index] == quote)
                return index + 1;
        }
        return text_.size();
    }

private:
    std::string file_;
    std::string_view text_;
    std::vector<std::size_t> lines_;         // where each begins
    std::vector<std::size_t> continuations_; // bytes of characters that are not their first, in order
};

// --- What the parser's complaints mean to somebody who writes a policy.

// How far the parser had come.
struct Progress {
    std::size_t last = 0;            // the byte where the last value or key began that it understood
    std::optional<std::size_t> open; // the innermost '[' or '{' that is not closed yet
};

// Ends the parse of one file: nothing after it could be understood.
struct Unreadable {
    Position where;
    std::string problem, remedy;
};

std::string expected_in(const YamlPlaces &places, std::size_t open)
{
    const bool list = places.rest(open).front() == '[';
    return std::string(list ? "',' or ']' expected, in the list" : "',' or '}' expected, in the mapping") + " that begins at " +
           to_string(places.position_of(open));
}

Unreadable explain_quote(const Progress &progress, const YamlPlaces &places, std::size_t index)
{
    const auto first = places.rest(progress.last).substr(0, 1);
    const auto quote = places.find_quote(first == "'" || first == "\"" ? places.skip_quoted(progress.last) : progress.last);
    return {places.position_of(quote == std::string_view::npos ? index : quote), "a quote that is never closed",
            "close it; within single quotes, a quote is written twice"};
}

// `message` is yaml-cpp's, `index` the byte it complains about.
Unreadable explain_yaml_error(const std::string &message, std::size_t index, const Progress &progress, const YamlPlaces &places)
{
    using namespace YAML::ErrorMsg;
    const auto where = places.position_of(index);
    const auto rest = places.rest(index);
    const auto length = rest.empty() ? 0 : decode_utf8(rest).length;
    const auto found = rest.empty() || rest.front() == '\n' ? std::string("the end") : quote(rest.substr(0, length));
    if (message == DOC_IN_SCALAR || message == EOF_IN_SCALAR) return explain_quote(progress, places, index);
    // yaml-cpp 0.8 says which one, too.
    if (message.starts_with(UNKNOWN_ANCHOR) || message == ALIAS_NOT_FOUND || message == CHAR_IN_ALIAS || message == CHAR_IN_ANCHOR)
        return {where, "anchors and aliases (& and *) are not accepted", "write the value out, or put it in quotes"};
    if (message == UNKNOWN_TOKEN) return {where, "no value begins with " + found, "put it in quotes"};
    if (message == MAP_VALUE)
        return {where, "a ':' that belongs to no key",
                "indent keys as their neighbours, with a ':' behind each; put a value with ': ' in it in quotes"};
    if (message == END_OF_MAP || message == END_OF_SEQ)
        return {where, std::string(message == END_OF_MAP ? "a key" : "'- ' and a value") + " expected, or the indentation of one above",
                "indent it as its neighbours, and look for a missing ':' or quote"};
    if ((message == END_OF_MAP_FLOW || message == END_OF_SEQ_FLOW) && progress.open)
        return {where, expected_in(places, *progress.open) + ", found " + found, "close it, or put what belongs together in quotes"};
    if (message == FLOW_END && (rest.substr(0, 1) == "]" || rest.substr(0, 1) == "}"))
        return {where, found + " without the bracket that it would close", "write a list as [a, b], and a mapping as {a: b}"};
    if (message.starts_with(INVALID_ESCAPE)) // the parser is behind it already
        return {places.position_of(places.rest(0).rfind('\\', index)),
                quote(message.substr(std::string_view(INVALID_ESCAPE).size())) + " behind '\\' is not an escape in double quotes",
                "write '\\\\' for a backslash, or use single quotes"};
    return {where, "not valid YAML: " + message, "look at the indentation, quotes and brackets here and above"};
}

// --- YAML text to a tree, through yaml-cpp's events: its own nodes keep duplicate keys, expand aliases and recurse without our bound.

class TreeBuilder final : public YAML::EventHandler {
public:
    TreeBuilder(const YamlPlaces &places, Problems &problems) : places_(places), problems_(problems) { root_.where = {places_.file()}; }

    [[nodiscard]] YamlNode take_root() { return std::move(root_); }
    [[nodiscard]] Progress progress() const
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
    // A list or mapping whose end has not come yet.
    struct Open {
        YamlNode node;
        std::optional<std::size_t> bracket;    // where it is, if it began with one
        std::optional<YamlNode> key;           // of a mapping: read, its value not yet
        std::map<std::string, Position> known; // of a mapping: where each key stood first
    };

    [[noreturn]] void refuse_anchor(const YAML::Mark &mark) const
    {
        throw Unreadable{places_.position_of(mark), "anchors and aliases (& and *) are not accepted",
                         "write the value out, or put it in quotes"};
    }

    [[nodiscard]] YamlNode make_node(YamlNode::Kind kind, const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor)
    {
        if (anchor != YAML::NullAnchor) refuse_anchor(mark);
        if (!tag.empty() && tag != "?" && tag != "!")
            throw Unreadable{places_.position_of(mark), "the tag " + quote(tag) + " is not accepted",
                             "remove it; quotes make a value text"};
        YamlNode node;
        node.kind = kind;
        node.where = places_.position_of(mark);
        last_ = places_.index_of(mark);
        return node;
    }

    // Just after the node was made.
    void open(YamlNode node, char bracket)
    {
        if (open_.size() >= yaml_depth_limit)
            throw Unreadable{node.where, fmt::format("nested more than {} deep", yaml_depth_limit), "no policy needs this; remove it"};
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
        for (const auto &level : open_)
            if (level.key) path += escape_for_display(level.key->text) + ".";
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
        if (character.value == '%' && column == 1)
            throw Unreadable{where, "a line that begins with '%' (a YAML directive)",
                             "remove it; put the name of a group in quotes: \"%group\""};
        if (character.value == '\t' && indentation) throw Unreadable{where, "a tab in the indentation", "indent with spaces"};
        const bool windows_break = text.substr(0, 2) == "\r\n";
        if ((character.value < 0x20 && character.value != '\t' && !line_break && !windows_break) || character.value == 0x7F)
            throw Unreadable{where, fmt::format("the control character \\x{:02x}", static_cast<unsigned>(character.value)),
                             "remove it, or write it as an escape within double quotes"};
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
        if (parser.HandleNextDocument(rest))
            throw Unreadable{rest.take_root().where, "more text after the end of the document",
                             "keep one document, without a second '---'"};
        return root;
    } catch (const YAML::Exception &error) {
        throw explain_yaml_error(error.msg, places.index_of(error.mark), builder.progress(), places);
    }
}

} // namespace

ScalarMeaning meaning_of_scalar(const YamlNode &scalar)
{
    return scalar.quoted ? ScalarMeaning::text : meaning_of_plain(scalar.text);
}

std::string describe(const YamlNode &node)
{
    if (node.kind == YamlNode::Kind::sequence) return "a list";
    if (node.kind == YamlNode::Kind::mapping) return "a mapping";
    const auto meaning = meaning_of_scalar(node);
    if (node.kind == YamlNode::Kind::null || meaning == ScalarMeaning::null) return "nothing";
    if (meaning == ScalarMeaning::boolean) return "the boolean " + node.text;
    if (meaning == ScalarMeaning::integer || meaning == ScalarMeaning::real) return "the number " + node.text;
    if (meaning == ScalarMeaning::odd) return quote(node.text) + ", which YAML readers understand differently";
    return "the text " + quote(node.text);
}

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
