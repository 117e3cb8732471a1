// The section `sandbox`: an explicit method, and what each cannot do.
#include "common/policy/policy_sections.hpp"

#include "common/policy/policy_paths.hpp"

#include <string>

namespace pi_agent {

namespace {

constexpr std::size_t image_name_limit = 255;

// What can stand in a URL of docker's API and is no option on its command line; docker itself is stricter.
bool is_image_name(const std::string &text)
{
    constexpr const char *alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@";
    const auto is_first = [](char byte) { return byte != '.' && byte != '-' && byte != '/' && byte != ':' && byte != '@'; };
    return !text.empty() && text.size() <= image_name_limit && is_first(text.front()) && text.find("..") == std::string::npos &&
           text.find_first_not_of(alphabet) == std::string::npos;
}

} // namespace

void read_sandbox(const PolicyValue &section, Policy &policy, Problems &problems)
{
    const auto read_method = [&](const PolicyValue &value) {
        const auto choice = read_choice(value, problems);
        policy.sandbox.where = value.where;
        if (!choice) return;
        for (const auto method :
             {SandboxMethod::systemd, SandboxMethod::bwrap, SandboxMethod::podman, SandboxMethod::docker, SandboxMethod::none})
            if (*choice == to_string(method)) policy.sandbox.method = method;
    };
    const auto read_image = [&](const PolicyValue &value) {
        policy.sandbox.image_where = value.where;
        const auto name = read_line(value, problems);
        if (!name) return;
        if (is_image_name(*name))
            policy.sandbox.image = *name;
        else
            problems.add(value.where, "sandbox.image", "is no name of an image", "write one as 'docker image ls' does, such as debian:12");
    };
    policy.sandbox.where = section.where;
    read_section(section, {{"method", read_method}, {"image", read_image}}, problems);
}

namespace {

void check_image(const Policy &policy, Problems &problems)
{
    if (problems.has("sandbox.method")) return; // what the image is for is not known
    const bool is_docker = policy.sandbox.method == SandboxMethod::docker;
    const bool is_named = policy.sandbox.image_where.line > 0;
    if (is_docker && !is_named)
        problems.add(policy.sandbox.where, "sandbox.image", "is missing, and the method docker makes no container without one",
                     "name an image that is on this host");
    if (!is_docker && is_named)
        problems.add(policy.sandbox.image_where, "sandbox.image",
                     std::string("is for the method docker alone, and the method is ") + to_string(policy.sandbox.method),
                     "remove the key, or choose the method docker");
}

} // namespace

void refuse_what_method_cannot(const Policy &policy, Problems &problems)
{
    check_image(policy, problems);
    if (policy.sandbox.method != SandboxMethod::bwrap) return;
    const auto mode = policy.network.mode;
    if (mode == NetworkMode::loopback || mode == NetworkMode::listed)
        problems.add(policy.network.where, "network",
                     "sandbox.method bwrap (" + to_string(policy.sandbox.where) +
                         ") cannot filter addresses: it has the host's network, or one of the session's own with nothing in it",
                     "use 'full' or 'none', or the method systemd");
}

} // namespace pi_agent
