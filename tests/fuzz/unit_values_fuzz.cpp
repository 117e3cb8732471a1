// What becomes a unit property, a path in a view or a line of a log: nothing outside its alphabet, and nothing that stands for two things.
#include "common/base/text.hpp"
#include "common/policy/policy_paths.hpp"
#include "runner/as_agent/home.hpp"
#include "runner/as_agent/sync_messages.hpp"
#include "runner/as_user/protected_paths.hpp"
#include "runner/plan/sandbox_plan.hpp"
#include "runner/root/session/session_directory.hpp"
#include "support/property.hpp"

#include <algorithm>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

void append_utf8(std::string &text, unsigned long value)
{
    if (value < 0x80) {
        text += static_cast<char>(value);
    } else if (value < 0x800) {
        text += static_cast<char>(0xC0U | (value >> 6U));
        text += static_cast<char>(0x80U | (value & 0x3FU));
    } else if (value < 0x10000) {
        text += static_cast<char>(0xE0U | (value >> 12U));
        text += static_cast<char>(0x80U | ((value >> 6U) & 0x3FU));
        text += static_cast<char>(0x80U | (value & 0x3FU));
    } else {
        text += static_cast<char>(0xF0U | (value >> 18U));
        text += static_cast<char>(0x80U | ((value >> 12U) & 0x3FU));
        text += static_cast<char>(0x80U | ((value >> 6U) & 0x3FU));
        text += static_cast<char>(0x80U | (value & 0x3FU));
    }
}

// Back from \xNN and \u{...}: that this is possible means that no two texts are shown alike.
std::string unescaped(const std::string &shown)
{
    std::string text;
    for (std::size_t at = 0; at < shown.size(); ++at) {
        if (shown[at] != '\\') {
            text += shown[at];
        } else if (shown[at + 1] == 'x') {
            text += static_cast<char>(std::stoul(shown.substr(at + 2, 2), nullptr, 16));
            at += 3;
        } else {
            const std::size_t end = shown.find('}', at);
            append_utf8(text, std::stoul(shown.substr(at + 3, end - at - 3), nullptr, 16));
            at = end;
        }
    }
    return text;
}

void try_escape(const std::string &text)
{
    const std::string shown = escape_for_display(text);
    require_harmless(shown);
    require(shown.find('\n') == std::string::npos, "an escaped text of two lines");
    require(unescaped(shown) == text, "two texts are shown alike");
    const bool safe = is_property_safe(text);
    const bool plain =
        std::all_of(text.begin(), text.end(), [](unsigned char byte) { return byte > ' ' && byte < 0x7F && byte != '%' && byte != '\\'; });
    require(!safe || (plain && shown == text), "a unit property may hold what is not plain");
}

void try_path(const std::string &path)
{
    if (path.empty()) return;
    if (!problem_of_root(path)) {
        require(path.front() == '/' || path.starts_with("~/"), "a root that is not absolute");
        require(path.find("/../") == std::string::npos && !path.ends_with("/.."), "a root that leaves itself");
        require(problem_of_root_in_unit(path) || is_property_safe(path.substr(path.front() == '~' ? 1 : 0)), "a root outside the alphabet");
    }
    if (is_plain_relative(path)) {
        const std::vector<std::string> names = path_components(path);
        std::string joined;
        for (const auto &name : names)
            joined = join_path(joined, name);
        require(joined == path && std::find(names.begin(), names.end(), "..") == names.end(), "a relative path that is not plain");
        require(is_within(join_path("/top", path), "/top") && !is_within(join_path("/top-evil", path), "/top"), "beneath what it is not");
    }
    const std::string alias = alias_of(path);
    require(is_property_safe(alias) && alias.find('/') == std::string::npos && alias.front() != '.' && alias.front() != '-' &&
                alias.size() <= 80,
            "an alias that is no plain name");
    require(!session_of_scope(path) || is_property_safe(path), "a scope whose name is none");
}

std::string text_of(const UnitProperty &property)
{
    std::string text;
    if (const auto *one = std::get_if<std::string>(&property.value)) text = *one;
    if (const auto *many = std::get_if<std::vector<std::string>>(&property.value))
        for (const auto &each : *many)
            text += each;
    if (const auto *binds = std::get_if<BindList>(&property.value))
        for (const auto &bind : binds->binds)
            text += bind.source + bind.target;
    return text;
}

// Of a plan whose roots are in the alphabet, every property is; and a text is in no property but where the plan has it.
void try_plan(const std::string &root)
{
    if (problem_of_root(root) || problem_of_root_in_unit(root) || root.front() != '/') return;
    SandboxPlan plan{std::string(32, 'a'), Uid(1000), Uid(990), Gid(990), {Gid(7)}, {}, "/run/pi-agent/sessions/a/root", {},
                     "/var/lib/home",      {root},    {}};
    plan.binds.push_back({root, root, false});
    for (const auto &property : session_properties(SandboxMethod::systemd, plan, {257, true, true, true}))
        require(is_property_safe(text_of(property)) && is_property_safe(property.name), "a property outside the alphabet");
    for (const auto &argument : bwrap_options(plan, 3))
        require(argument.find('\n') == std::string::npos, "an argument of two lines");
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    const std::string text(input);
    try_escape(text);
    require_linear(input, [](const std::string &many) { escape_for_display(many); });
    if (text.find('\0') == std::string::npos) try_path(text);
    try_plan(text.empty() ? "/srv" : text);
}
