// Finds the bytes of an entry by the places that the parser gives, exchanges them, and compares what both texts mean.
#include "admin/host/yaml_edit.hpp"
#include "admin/host/yaml_text.hpp"

#include "common/base/error.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

// An exchange of bytes of the text.
struct Change {
    std::size_t begin;
    std::size_t end;
    std::string fresh;
};

Change replace_value(const YamlText &text, const YamlEntry &entry, const EntryPlace &place, const std::string &value)
{
    if (place.is_inline) {
        const std::size_t end = text.skip_value(place.value, place.in_brackets);
        if (text.has_comment(place.value, end)) refuse_change(entry.value.where, "the value has a comment, which would be lost");
        return {place.colon, end, " " + value};
    }
    if (entry.value.kind == YamlNode::Kind::null || place.in_brackets) return {place.colon, place.colon, " " + value};
    if (text.has_comment(place.colon, place.end)) refuse_change(entry.value.where, "the value has a comment, which would be lost");
    return {place.colon, place.end, " " + value + "\n"};
}

Change add_entry(const YamlText &text, const YamlNode &mapping, const std::string &entry)
{
    const std::size_t size = text.size();
    const std::size_t first = text.index_of(mapping.where);
    if (mapping.kind != YamlNode::Kind::mapping) return {size, size, (size > 0 && text.at(size - 1) != '\n' ? "\n" : "") + entry + "\n"};
    if (text.at(first) == '{') {
        const std::size_t closing = text.skip_brackets(first) - 1;
        if (mapping.entries.empty() || text.has_comment(first, closing))
            return {first + 1, first + 1, entry + (mapping.entries.empty() ? "" : ", ")};
        std::size_t end = closing;
        while (text.has_blank(end - 1) || text.at(end - 1) == '\n')
            --end;
        return {end, end, (text.at(end - 1) == ',' ? " " : ", ") + entry};
    }
    const auto &last = mapping.entries.back();
    const std::size_t end = place_of(text, mapping, last).end;
    return {end, end,
            (text.at(end - 1) == '\n' ? "" : "\n") + std::string(static_cast<std::size_t>(last.where.column - 1), ' ') + entry + "\n"};
}

Change remove_entry(const YamlText &text, const EntryPlace &place)
{
    if (!place.in_brackets) return {text.begin_of_line(place.begin), place.end, ""};
    std::size_t begin = place.begin;
    std::size_t end = text.skip_blanks(place.end);
    if (text.at(end) == ',') return {begin, text.skip_blanks(end + 1), ""};
    while (begin > 0 && (text.has_blank(begin - 1) || text.at(begin - 1) == '\n'))
        --begin;
    return {begin > 0 && text.at(begin - 1) == ',' ? begin - 1 : place.begin, place.end, ""};
}

bool says_nothing(const YamlNode &node)
{
    return node.kind == YamlNode::Kind::null || (node.kind == YamlNode::Kind::mapping && node.entries.empty());
}

bool mean_the_same(const YamlNode &one, const YamlNode &other)
{
    if (says_nothing(one) && says_nothing(other)) return true;
    if (one.kind != other.kind || one.text != other.text || one.quoted != other.quoted) return false;
    if (one.items.size() != other.items.size() || one.entries.size() != other.entries.size()) return false;
    const auto same_entry = [&](const YamlEntry &entry) {
        const auto *found = find_entry(other, entry.key);
        return found != nullptr && mean_the_same(entry.value, found->value);
    };
    return std::equal(one.items.begin(), one.items.end(), other.items.begin(), mean_the_same) &&
           std::all_of(one.entries.begin(), one.entries.end(), same_entry);
}

// Makes the same change in the tree. Without a value the entry goes.
void change_tree(YamlNode &root, const KeyPath &path, const YamlNode *value)
{
    YamlNode *node = &root;
    for (std::size_t depth = 0; depth < path.size(); ++depth) {
        node->kind = YamlNode::Kind::mapping;
        auto &entries = node->entries;
        auto found = std::find_if(entries.begin(), entries.end(), [&](const YamlEntry &entry) { return entry.key == path[depth]; });
        if (depth + 1 == path.size() && value == nullptr) {
            if (found != entries.end()) entries.erase(found);
            return;
        }
        if (found == entries.end()) found = entries.insert(entries.end(), YamlEntry{path[depth], {}, {}});
        node = &found->value;
    }
    *node = *value;
}

std::string changed(const std::string &file, const std::string &text, const KeyPath &path, const Change &change, YamlNode root,
                    const YamlNode *value)
{
    const std::string_view body = without_byte_order_mark(text);
    auto fresh = std::string(text, 0, text.size() - body.size()).append(body.substr(0, change.begin)) + change.fresh;
    fresh += body.substr(change.end);
    const Position where = root.where;
    change_tree(root, path, value);
    Problems problems;
    const auto now = parse_yaml(file, fresh, problems);
    if (!now || !problems.empty() || !mean_the_same(root, *now))
        refuse_change(where, "this file is written in a way that cannot be changed here");
    return fresh;
}

// "{b: {c: value}}" for the rest {"b", "c"} of a path.
std::string nested(const KeyPath &path, std::size_t from, const std::string &value)
{
    return from == path.size() ? value : "{" + yaml_word(path[from]) + ": " + nested(path, from + 1, value) + "}";
}

} // namespace

const YamlEntry *find_entry(const YamlNode &mapping, const std::string &key)
{
    const auto found =
        std::find_if(mapping.entries.begin(), mapping.entries.end(), [&](const YamlEntry &entry) { return entry.key == key; });
    return found == mapping.entries.end() ? nullptr : &*found;
}

YamlNode parse_or_throw(const std::string &file, const std::string &text)
{
    Problems problems;
    auto root = parse_yaml(file, text, problems);
    problems.throw_if_any();
    return std::move(*root);
}

std::string set_in_yaml(const std::string &file, const std::string &text, const KeyPath &path, const std::string &value)
{
    const auto root = parse_or_throw(file, text);
    const auto wanted = parse_or_throw("the value", value);
    const YamlText places(file, without_byte_order_mark(text));
    const YamlNode *mapping = &root;
    for (std::size_t depth = 0; depth < path.size(); ++depth) {
        const auto *entry = find_entry(*mapping, path[depth]);
        if (entry == nullptr) {
            const auto fresh = yaml_word(path[depth]) + ": " + nested(path, depth + 1, value);
            return changed(file, text, path, add_entry(places, *mapping, fresh), root, &wanted);
        }
        if (depth + 1 == path.size() || says_nothing(entry->value)) {
            const auto change = replace_value(places, *entry, place_of(places, *mapping, *entry), nested(path, depth + 1, value));
            return changed(file, text, path, change, root, &wanted);
        }
        if (entry->value.kind != YamlNode::Kind::mapping)
            refuse_change(entry->value.where, "is " + describe(entry->value) + ", and holds no keys");
        mapping = &entry->value;
    }
    return text;
}

std::string remove_from_yaml(const std::string &file, const std::string &text, const KeyPath &path)
{
    const auto root = parse_or_throw(file, text);
    const YamlText places(file, without_byte_order_mark(text));
    const auto *mapping = find_node(root, {path.begin(), path.end() - 1});
    const auto *entry = mapping == nullptr ? nullptr : find_entry(*mapping, path.back());
    if (entry == nullptr) return text;
    return changed(file, text, path, remove_entry(places, place_of(places, *mapping, *entry)), root, nullptr);
}

} // namespace pi_agent
