// Each form of a value as a schema.
#include "admin/apply/apply.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

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

} // namespace

void run_schema(std::ostream &out)
{
    Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                   {"title", "The policy of pi-agent"},
                   {"description", "What /etc/pi-agent/policy.yaml may say. 'pi-agentctl check' knows more than this schema can say."}};
    schema.update(mapping_of(""));
    out << schema.dump(2) << '\n';
}

} // namespace pi_agent
