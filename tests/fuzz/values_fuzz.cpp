// Single values from arguments, the environment and files: each has one spelling, or is refused.
#include "admin/text/terminal.hpp"

#include "common/base/text.hpp"
#include "common/host/account.hpp"
#include "common/policy/host_rule.hpp"
#include "common/policy/policy.hpp"
#include "runner/inside/canary.hpp"
#include "runner/plan/sandbox_plan.hpp"
#include "runner/root/door/admission.hpp"
#include "support/property.hpp"
#include "wrapper/session_client.hpp"

#include <algorithm>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

void try_numbers(const std::string &text)
{
    if (const auto uid = parse_uid(text)) require(std::to_string(uid->value()) == text, "a uid that is written otherwise");
    if (const auto version = parse_version(text)) require(to_string(*version) == text, "a version that is written otherwise");
    const auto range = parse_ip_range(text);
    if (const auto *is = std::get_if<IpRange>(&range)) {
        const auto again = parse_ip_range(to_string(*is));
        const auto *same = std::get_if<IpRange>(&again);
        require(same != nullptr && same->address == is->address && same->prefix == is->prefix, "a range that is another one when written");
        require(is->prefix > 0 && is->prefix <= is->address.size() * 8, "a range of every address");
    }
    const auto features = unless_refused([&] { return systemd_features(text); });
    if (features) require(features->version >= oldest_systemd, "a systemd that is too old");
}

void try_host(const std::string &text)
{
    const auto parsed = parse_host_rule(text);
    const auto *rule = std::get_if<HostRule>(&parsed);
    if (rule == nullptr) return;
    const auto again = parse_host_rule(to_string(*rule));
    const auto *same = std::get_if<HostRule>(&again);
    require(same != nullptr && same->host == rule->host && same->port == rule->port, "a rule that is another one when written");
    require(covers(*rule, *rule), "a rule that does not cover itself");
    require(rule->port != 0 && rule->host.size() <= 256 && rule->host.find_first_of("ABCXYZ \n@%[]") == std::string::npos,
            "a host that cannot be one");
    require(rule->host.find('*', 1) == std::string::npos && rule->host != "*" && rule->host != "*.", "a '*' that is more than one part");
}

void try_time(const std::string &text)
{
    const std::uint64_t now = 1'790'000'000'000'000;
    const auto time = unless_refused([&] { return parse_time(text, now); });
    if (!time) return;
    unless_refused([&] { return to_utc_time(*time); });
    unless_refused([&] { return to_local_time(*time); });
}

void try_name(const std::string &text)
{
    if (!is_plain_name(text)) return;
    const bool plain = std::all_of(text.begin(), text.end(), [](char byte) {
        return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '_' || byte == '-' || byte == '.';
    });
    require(plain && text.size() <= 32 && text.front() != '-' && text.front() != '.' && text.find("..") == std::string::npos,
            "a name that is not plain");
}

void try_arguments(const std::vector<std::string> &texts)
{
    std::vector<const char *> argv = {"pi"};
    for (const auto &text : texts)
        argv.push_back(text.c_str());
    const auto options = unless_refused([&] { return parse_options(static_cast<int>(argv.size()), argv.data()); });
    if (options) {
        require(options->request.arguments.size() < argv.size(), "more arguments than there were");
        require(std::equal(options->request.arguments.rbegin(), options->request.arguments.rend(), texts.rbegin()),
                "an argument is changed");
        asks_for_self_update(options->request.arguments);
    }
    const auto plan = unless_refused([&] { return parse_canary_arguments(texts); });
    if (!plan) return;
    const auto again = parse_canary_arguments(canary_arguments(*plan));
    require(canary_arguments(again) == canary_arguments(*plan), "a canary that is told otherwise");
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    const std::string text(input);
    try_numbers(text);
    try_time(text);
    try_host(text);
    try_name(text);
    if (const auto file_class = parse_file_class(text)) require(to_string(*file_class) == text, "a class that is written otherwise");
    const auto arguments = parts_of(input, 1 + static_cast<std::size_t>(std::count(input.begin(), input.end(), '\0')), '\0');
    try_arguments(arguments);
}
