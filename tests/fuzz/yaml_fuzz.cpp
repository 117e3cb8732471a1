// YAML alone: the tree is bounded, every key is there once, and every place is one of the text.
#include "common/base/text.hpp"
#include "common/policy/yaml/yaml_tree.hpp"
#include "support/property.hpp"

#include <algorithm>
#include <set>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

struct Text {
    std::string_view bytes;
    std::ptrdiff_t lines;
};

void require_place(const Position &where, const Text &text)
{
    require(where.file == "name", "a place in another file");
    require(where.line >= 0 && where.line <= text.lines && where.column >= 0, "a place that is not there");
    require(static_cast<std::size_t>(where.column) <= text.bytes.size() + 1, "a column behind the end of the text");
}

void require_node(const YamlNode &node, const Text &text, std::size_t depth)
{
    require(depth <= yaml_depth_limit + 1, "deeper than the limit");
    require_place(node.where, text);
    require_harmless(describe(node));
    std::string_view rest = node.text;
    while (!rest.empty()) {
        const std::size_t length = decode_utf8(rest).length;
        require(length > 0, "a value that is not UTF-8");
        rest.remove_prefix(length);
    }
    for (const auto &item : node.items)
        require_node(item, text, depth + 1);
    std::set<std::string> keys;
    for (const auto &entry : node.entries) {
        require(keys.insert(entry.key).second, "a key that is there twice");
        require_place(entry.where, text);
        require_node(entry.value, text, depth + 1);
    }
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    const auto read = [](const std::string &bytes) {
        Problems problems;
        const auto root = parse_yaml("name", bytes, problems);
        const Text text{bytes, 1 + std::count(bytes.begin(), bytes.end(), '\n')};
        require(root || !problems.empty(), "refused without a word");
        if (root) require_node(*root, text, 0);
        try {
            problems.throw_if_any();
        } catch (const PolicyError &error) {
            for (const auto &diagnostic : error.diagnostics()) {
                require_harmless(to_string(diagnostic));
                require_place(diagnostic.where, text);
            }
        }
    };
    read(std::string(input));
    require_linear(input, read);
}
