// The table of keys says what the parser does: common/policy/policy_sections.hpp
#include "common/decide/explained.hpp"

#include "common/decide/decision.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/policy/policy_sections.hpp"
#include "support/policy_text.hpp"
#include "support/policy_with.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <map>
#include <set>

using namespace pi_agent;
using namespace pi_agent::test;

namespace policy_keys_test {

namespace {

// Kinds of values, each as YAML.
const std::map<std::string, std::string> kinds = {{"null", "null"}, {"boolean", "true"}, {"integer", "5"},           {"real", "1.5"},
                                                  {"text", "word"}, {"list", "[word]"},  {"mapping", "{word: word}"}};

std::set<std::string> kinds_of(ValueForm form)
{
    switch (form) {
    case ValueForm::version:
    case ValueForm::count:
        return {"integer"};
    case ValueForm::section:
    case ValueForm::names:
    case ValueForm::document:
        return {"mapping"};
    case ValueForm::boolean:
        return {"boolean"};
    case ValueForm::text:
    case ValueForm::line:
    case ValueForm::name:
    case ValueForm::choice:
    case ValueForm::amount:
        return {"text"};
    case ValueForm::list:
    case ValueForm::roots:
        return {"list"};
    case ValueForm::choice_or_list:
        return {"text", "list"};
    case ValueForm::network:
        return {"text", "list", "mapping"};
    case ValueForm::toggle:
        return {"boolean", "mapping"};
    }
    return {};
}

// What is reported of just this key.
std::string problem_of(const std::string &text, const std::string &key)
{
    try {
        static_cast<void>(parse(text));
    } catch (const PolicyError &error) {
        for (const auto &diagnostic : error.diagnostics())
            if (diagnostic.key == key) return diagnostic.problem;
    }
    return "";
}

bool is_about_kind(const std::string &problem)
{
    return problem.starts_with("must be ");
}

std::string paths(const std::vector<PolicyPath> &list)
{
    std::string text;
    for (const auto &path : list)
        text += path.path + ";";
    return text;
}

using Show = std::function<std::string(const Policy &)>;

// What a policy says for each key that has a default.
const std::map<std::string, Show> &shown()
{
    static const std::map<std::string, Show> table = {
        {"agent.binary", [](const Policy &policy) { return policy.agent.binary; }},
        {"agent.user", [](const Policy &policy) { return policy.agent.user; }},
        {"agent.group", [](const Policy &policy) { return policy.agent.group; }},
        {"agent.create_user", [](const Policy &policy) { return fmt::format("{}", policy.agent.create_user); }},
        {"agent.binary_name", [](const Policy &policy) { return policy.agent.binary_name; }},
        {"agent.state_dir", [](const Policy &policy) { return policy.agent.state_dir; }},
        {"wrapper.enable", [](const Policy &policy) { return fmt::format("{}", policy.wrapper.enable); }},
        {"wrapper.command_name", [](const Policy &policy) { return policy.wrapper.command_name; }},
        {"wrapper.hide_direct_binary", [](const Policy &policy) { return fmt::format("{}", policy.wrapper.hide_direct_binary); }},
        {"wrapper.clipboard", [](const Policy &policy) { return fmt::format("{}", policy.wrapper.clipboard); }},
        {"wrapper.ports", [](const Policy &policy) { return fmt::format("{}", policy.wrapper.ports); }},
        {"sandbox.method", [](const Policy &policy) { return std::string(to_string(policy.sandbox.method)); }},
        {"projects.paths",
         [](const Policy &policy) { return std::string(policy.projects.paths == ProjectPaths::host ? "host" : "alias"); }},
        {"projects.scope",
         [](const Policy &policy) { return std::string(policy.projects.scope == ProjectScope::root ? "root" : "project"); }},
        {"projects.protect", [](const Policy &policy) { return policy.projects.protect ? paths(*policy.projects.protect) : "default"; }},
        {"projects.mask", [](const Policy &policy) { return paths(policy.projects.mask); }},
        {"projects.aftermath", [](const Policy &policy) { return fmt::format("{}", policy.projects.aftermath); }},
        {"projects.undo",
         [](const Policy &policy) { return fmt::format("{} {}", policy.projects.undo.on, policy.projects.undo.size.text); }},
        {"projects.undo.size", [](const Policy &policy) { return policy.projects.undo.size.text; }},
        {"projects.undo.file", [](const Policy &policy) { return policy.projects.undo.file.text; }},
        {"projects.read_only", [](const Policy &policy) { return fmt::format("{}", policy.projects.read_only); }},
        {"users.*.readable",
         [](const Policy &policy) { return paths(rules_of(policy.users.at(0).rules).own_readable.value_or(std::vector<PolicyPath>())); }},
        {"settings_lock", [](const Policy &policy) { return fmt::format("{}", policy.settings_lock); }},
        {"mcp_lock", [](const Policy &policy) { return fmt::format("{}", policy.mcp_lock); }},
        {"git_identity", [](const Policy &policy) { return fmt::format("{}", policy.git_identity); }},
        {"box_notes", [](const Policy &policy) { return fmt::format("{}", policy.box_notes); }},
        {"env", [](const Policy &policy) { return fmt::format("{}", policy.env.size()); }},
        {"env_files", [](const Policy &policy) { return paths(policy.env_files); }},
        {"host_env_files", [](const Policy &policy) { return fmt::format("{}", fmt::join(policy.host_env_files, ";")); }},
        {"network",
         [](const Policy &policy) { return fmt::format("{} {}", static_cast<int>(policy.network.mode), policy.network.allowed.size()); }},
        {"toolchains.readable", [](const Policy &policy) { return paths(policy.toolchains.readable.paths); }},
        {"toolchains.caches", [](const Policy &policy) { return paths(policy.toolchains.caches.paths); }},
        {"view", [](const Policy &policy) { return std::string(policy.view == View::host ? "host" : "minimal"); }},
        {"view_paths", [](const Policy &policy) { return paths(policy.view_paths); }},
        {"path", [](const Policy &policy) { return paths(policy.path); }},
        {"projects.ownership",
         [](const Policy &policy) { return std::string(policy.projects.ownership == ProjectOwnership::idmap ? "idmap" : "none"); }},
        {"hardening.deny_system_calls", [](const Policy &policy) { return paths(policy.calls.denied); }},
        {"hardening.allow_system_calls", [](const Policy &policy) { return paths(policy.calls.allowed); }},
        {"hardening.address_families", [](const Policy &policy) { return std::to_string(address_families_of(policy.calls)); }},
        {"hardening.tracing", [](const Policy &policy) { return std::to_string(static_cast<int>(policy.tracing)); }},
        {"devices", [](const Policy &policy) { return paths(policy.devices); }},
        {"limits.disk_without_quota",
         [](const Policy &policy) { return std::to_string(static_cast<int>(policy.limits.without_quota.value_or(WithoutQuota::tell))); }},
        {"placement.engine",
         [](const Policy &policy) { return std::to_string(static_cast<int>(policy.placement.engine.value_or(PlacementEngine::none))); }},
        {"placement.srun", [](const Policy &policy) { return srun_of(policy); }},
        {"scratch", [](const Policy &policy) { return std::string(policy.scratch == ScratchKind::disk ? "disk" : "tmpfs"); }},
    };
    return table;
}

// Defaults for which Policy has no field: of limits (limit_rows), of users.*.config (common/decide/decision.cpp), and of
// documents, over which the policy merges nothing.
const std::set<std::string_view> not_in_policy = {"users.*.config", "settings",     "models",         "keybindings", "mcp",
                                                  "limits.memory",  "limits.tasks", "limits.sessions"};

// A method and its image say each that the other is needed. A provider needs a file with its key, and a network with a gate.
std::string with_companions(std::string text)
{
    if (text.find("{host: ") != std::string::npos) {
        text.replace(text.find("{host: "), 7, "{key_file: /etc/k, host: ");
        text.replace(text.find("{anthropic"), 10, "{amazon-bedrock");
    }
    for (const std::string_view part : {"{direct: ", "{via_login_file: "})
        if (const auto at = text.find(part); at != std::string::npos)
            text.insert(at + 1, "hosts: [a.example], via: 'http://proxy.example.com:3128', ");
    if (text.find("providers: ") != std::string::npos) text += "network: {hosts: []}\n";
    for (const auto &[part, whole] :
         {std::pair("{method: docker}", "{method: docker, image: debian}"), {"{image: ", "{method: docker, image: "}})
        if (const auto at = text.find(part); at != std::string::npos) return text.replace(at, std::string_view(part).size(), whole);
    return text;
}

} // namespace

TEST_CASE("each entry lies below another, and is told")
{
    std::set<std::string_view> known = {""};
    for (const auto &key : policy_keys()) {
        const auto dot = key.path.rfind('.');
        CHECK_MESSAGE(known.count(dot == std::string_view::npos ? "" : key.path.substr(0, dot)) == 1, key.path);
        CHECK_MESSAGE(known.insert(key.path).second, key.path);
        CHECK_MESSAGE(!key.meaning.empty(), key.path);
        const bool has_choices = key.form == ValueForm::choice || key.form == ValueForm::choice_or_list || key.form == ValueForm::network ||
                                 key.form == ValueForm::amount;
        CHECK_MESSAGE(has_choices == !key.choices.empty(), key.path);
        if (key.form == ValueForm::names) CHECK_MESSAGE(policy_keys_below(key.path).size() == 1, key.path);
    }
}

TEST_CASE("a reader that the table does not know, and an entry that nobody reads, are bugs")
{
    Problems problems;
    const auto node = parse_yaml("p.yaml", "method: systemd\n", problems);
    const auto ignore = [](const PolicyValue &) {};
    const PolicyValue section{*node, problems, "sandbox", {}, find_policy_key("", "sandbox")};
    CHECK_NOTHROW(read_section(section, {{"method", ignore}, {"image", ignore}}));
    CHECK_THROWS_WITH_AS(read_section(section, {{"method", ignore}, {"image", ignore}, {"other", ignore}}),
                         doctest::Contains("'other' is not in the table"), Failure);
    CHECK_THROWS_WITH_AS(read_section(section, {}), doctest::Contains("nobody reads"), Failure);
    CHECK_THROWS_WITH_AS(static_cast<void>(read_choice({*node, problems, "settings", {}, find_policy_key("", "settings")})),
                         doctest::Contains("no choices for settings"), Failure);
}

TEST_CASE("the parser takes every example, every default and every choice of the table")
{
    for (const auto &key : policy_keys()) {
        std::vector<std::string> values;
        for (const auto value : {key.example, key.standard})
            if (!value.empty()) values.emplace_back(value);
        if (key.form == ValueForm::choice || key.form == ValueForm::choice_or_list || key.form == ValueForm::network)
            for (const auto choice : split(key.choices, ' '))
                values.emplace_back(choice);
        for (const auto &value : values)
            CHECK_MESSAGE(problems_of(with_companions(policy_with(key, value))).empty(), policy_with(key, value));
    }
}

TEST_CASE("the parser takes the kinds of values that the table says, and no other")
{
    for (const auto &key : policy_keys()) {
        if (key.form == ValueForm::version || key.path == "users.*.roots.*") continue; // which text can be, too
        for (const auto &[kind, value] : kinds) {
            const bool taken = kinds_of(key.form).count(kind) == 1;
            const auto text =
                policy_with(key, taken && !key.example.empty() && key.form == ValueForm::amount ? std::string(key.example) : value);
            const auto problem = problem_of(text, key_in_policy(key));
            CHECK_MESSAGE(is_about_kind(problem) == !taken, (text + problem));
        }
    }
}

TEST_CASE("what a level merges is not said to replace what holds for others")
{
    std::set<std::string_view> merged;
    for (const auto &key : policy_keys()) {
        if (key.repeats.empty()) continue;
        const bool replaces = key.meaning.ends_with(", instead of what holds for others.");
        CHECK_MESSAGE(replaces != key.meaning.ends_with(", merged over what holds for others."), key.path);
        if (!replaces) merged.insert(key.path);
    }
    CHECK(merged == std::set<std::string_view>{"users.*.settings", "users.*.models", "users.*.keybindings", "users.*.mcp"});
}

TEST_CASE("a default of the table is what holds where the key is not there")
{
    const auto without = parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\n");
    for (const auto &key : policy_keys()) {
        if (key.standard.empty() || not_in_policy.count(key.path) == 1) continue;
        const auto found = shown().find(std::string(key.path));
        REQUIRE_MESSAGE(found != shown().end(), key.path);
        const auto &show = found->second;
        CHECK_MESSAGE(show(parse(policy_with(key, std::string(key.standard)))) == show(without), key.path);
        if (key.example != key.standard) CHECK_MESSAGE(show(parse(policy_with(key, std::string(key.example)))) != show(without), key.path);
    }
}

} // namespace policy_keys_test
