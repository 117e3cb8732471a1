// A user's JSON: bounded objects and nothing else, the same with and without comments, and the managed values win and are merged once.
#include "common/base/text.hpp"
#include "runner/as_agent/writer.hpp"
#include "support/property.hpp"

using namespace pi_agent;
using namespace pi_agent::fuzz;
using nlohmann::json;

namespace {

std::optional<json> read(const std::string &text, JsonSyntax syntax)
{
    return unless_refused([&] { return parse_json_object(text, "name", syntax); });
}

bool holds(const json &document, const json &managed)
{
    if (!document.is_object() || !managed.is_object()) return document == managed;
    for (const auto &[key, value] : managed.items())
        if (!document.contains(key) || !holds(document[key], value)) return false;
    return true;
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    const std::vector<std::string> texts = parts_of(input, 2, '\0');
    std::vector<json> documents;
    for (const auto &text : texts) {
        const auto strict = read(text, JsonSyntax::strict);
        const auto lenient = read(text, JsonSyntax::with_comments);
        require(!strict || (lenient && *lenient == *strict), "comments are allowed, and what has none is another document");
        if (!lenient) return;
        require(lenient->is_object(), "the top level is no object");
        const std::string dumped = lenient->dump(); // throws for what is not UTF-8
        require(!nests_deeper(dumped, 128), "deeper than the limit");
        require(read(dumped, JsonSyntax::strict) == lenient, "what was read is not what was written");
        documents.push_back(*lenient);
    }
    const json merged = merge_managed(documents[0], documents[1]);
    require(holds(merged, documents[1]), "a managed value did not win");
    require(merge_managed(merged, documents[1]) == merged, "merged again it is another document");
    require(merge_managed(documents[0], json::object()) == documents[0], "nothing managed changed something");
    require_linear(input, [](const std::string &text) { read(text, JsonSyntax::with_comments); });
}
