// Says which rule lets a session reach a host, or why none does: `pi-agentctl why HOST[:PORT]`.
#include "admin/diagnose/explain.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/decide/host_access.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace pi_agent {

namespace {

const char *verdict_on_host(Reach reach)
{
    switch (reach) {
    case Reach::yes:
        return "may be reached";
    case Reach::no:
        return "cannot be reached";
    case Reach::unknown:
        break;
    }
    return "cannot be decided by its name";
}

std::string place_in_answer(const HostAccess &access)
{
    return access.where.line > 0 ? to_string(access.where) : "";
}

// A user, a group or a root may say it instead of the whole policy.
std::string key_in_answer(const HostAccess &access, const Policy &policy)
{
    const std::string first = access.key.substr(0, access.key.find('.'));
    const auto &places = policy.rules.places;
    const auto place = places.find(first);
    return place == places.end() ? access.key : place->second.key + access.key.substr(first.size());
}

} // namespace

std::optional<HostRule> host_of_question(const std::string &text, const std::string &directory)
{
    const bool is_url = text.find("://") != std::string::npos;
    if (text.empty() || text.front() == '.' || (!is_url && text.find('/') != std::string::npos)) return std::nullopt;
    if (text.starts_with("*.")) throw Failure(ExitStatus::usage, quote(text) + " is many hosts; name one of them");
    const auto asked = parse_host_question(text);
    if (!asked && is_url)
        throw Failure(ExitStatus::usage, quote(text) + " is not the name of a host; ask as in github.com:22 or https://github.com");
    if (!asked || is_url || text.find(':') != std::string::npos || is_address(*asked) || asked->host == "localhost") return asked;
    std::error_code unknown;
    const bool is_file = std::filesystem::exists(std::filesystem::symlink_status(std::filesystem::path(directory) / text, unknown));
    if (is_file || asked->host.find('.') == std::string::npos) return std::nullopt;
    return asked;
}

std::string host_text(const HostRule &asked, const Policy &policy)
{
    const auto access = host_access(policy.network, routed_providers(policy), asked);
    const std::string where = place_in_answer(access);
    return fmt::format("{}: {}\n  rule:      {}{}\n  to change: {}\n", host_and_port(asked.host, asked.port), verdict_on_host(access.reach),
                       access.rule, where.empty() ? "" : " (" + where + ")", key_in_answer(access, policy));
}

nlohmann::json host_json(const HostRule &asked, const Policy &policy)
{
    const auto access = host_access(policy.network, routed_providers(policy), asked);
    return {{"host", asked.host},
            {"port", asked.port},
            {"reach", access.reach == Reach::unknown ? nlohmann::json() : nlohmann::json(access.reach == Reach::yes)},
            {"rule", access.rule},
            {"key", key_in_answer(access, policy)},
            {"where", place_in_answer(access)},
            {"may_be_added", access.may_be_added}};
}

} // namespace pi_agent
