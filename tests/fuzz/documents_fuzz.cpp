// Documents merged by key, over several starts of a session: a start without changes changes nothing, managed values win, and what the
// agent alone changed stays.
#include "runner/as_agent/writer.hpp"
#include "support/property.hpp"

#include <array>

using namespace pi_agent;
using namespace pi_agent::fuzz;
using nlohmann::json;

namespace {

struct Merged {
    json chosen;
    json document;
};

bool is_credentials(const std::string &name)
{
    return name == "auth.json" || name == "mcp-auth.json";
}

// As runner/as_agent/document_writer.cpp does it.
Merged merge(const std::string &name, FileClass file_class, const DocumentVersions &versions, const json &managed)
{
    if (is_credentials(name)) {
        const json merged = merge_credentials(name, file_class, versions, providers_with_keys(managed));
        return {merged, merged};
    }
    json chosen = merge_document(name, file_class, versions);
    json document = merge_managed(chosen, managed);
    return {std::move(chosen), std::move(document)};
}

json remembered(const json &document)
{
    return json::parse(document.dump());
}

void require_stable(const std::string &name, FileClass file_class, DocumentVersions versions, const json &managed)
{
    const Merged first = merge(name, file_class, versions, managed);
    require(first.document.is_object(), "a document that is no object");
    json counted = is_copied(file_class) ? versions.host : json::object();
    if (name == "auth.json")
        for (const auto &provider : providers_with_keys(managed))
            counted.erase(provider);
    versions.inside = remembered(first.document);
    versions.base_host = remembered(counted);
    versions.base_chosen = remembered(first.chosen);
    versions.base_written = remembered(first.document);
    const Merged second = merge(name, file_class, versions, managed);
    require(second.document == first.document, "a start at which nothing had changed changed a document");
    if (is_credentials(name) || file_class == FileClass::mirror) return;
    (*versions.inside)["changed only inside"] = "by the agent";
    versions.base_chosen = remembered(second.chosen);
    const Merged third = merge(name, file_class, versions, managed);
    const bool is_managed = managed.contains("changed only inside") || versions.host.contains("changed only inside");
    require(is_managed || third.document.contains("changed only inside"), "what the agent alone changed is gone");
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    std::vector<json> documents;
    for (const auto &text : parts_of(input, 6, '\0')) {
        const auto document = text.empty() ? json::object() : unless_refused([&] { return parse_json_object(text, "name"); });
        if (!document) return;
        documents.push_back(*document);
    }
    const json &managed = documents[1];
    DocumentVersions versions{documents[0], std::nullopt, std::nullopt, std::nullopt, std::nullopt};
    if (!documents[2].empty()) versions.inside = documents[2];
    if (!documents[3].empty()) versions.base_host = documents[3];
    if (!documents[4].empty()) versions.base_chosen = documents[4];
    if (!documents[5].empty()) versions.base_written = documents[5];
    for (const char *name : {"settings.json", "models.json", "auth.json", "mcp-auth.json"})
        for (const FileClass file_class : {FileClass::mirror, FileClass::seed, FileClass::once, FileClass::agent, FileClass::never})
            require_stable(name, file_class, versions, managed);
    for (const auto &path : paths_that_leave(documents[0]))
        require(path.find(": ") != std::string::npos, "a path without its key");
    require(providers_with_keys(without_keys(documents[0], providers_with_keys(documents[0]))).empty() ||
                !documents[0]["providers"].is_object(),
            "a managed provider's key is left");
}
