// What the systemd of this host gives a session, as a part of an explanation.
#include "admin/diagnose/explain.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

std::string systemd_text(const Explanation &explanation)
{
    const auto method = explanation.policy.sandbox.method;
    if (const auto *failure = std::get_if<Failure>(&explanation.systemd))
        return fmt::format("systemd:  no start is possible: {}\n", failure->what());
    const auto *features = std::get_if<SystemdFeatures>(&explanation.systemd);
    if (features == nullptr) return "";
    if (method == SandboxMethod::podman || method == SandboxMethod::docker)
        return fmt::format("systemd:  {}: sessions have process numbers of their own, by {}\n", features->version, to_string(method));
    auto text = fmt::format("systemd:  {}: sessions {} (PrivatePIDs=, from {} on)\n", features->version,
                            features->private_pids ? "have process numbers of their own"
                                                   : "share the host's process numbers, and can find out which are in use",
                            systemd_with_private_pids);
    if (method != SandboxMethod::systemd) return text;
    if (features->identity_ids)
        return text + fmt::format("          access control lists: copies keep entries for accounts and groups with ids below {} "
                                  "(PrivateUsers=, from {} on)\n",
                                  identity_ids, systemd_with_identity_ids);
    return text +
           fmt::format("          access control lists: entries for other accounts and groups cannot be copied (\"Invalid argument\"; "
                       "PrivateUsers=, from {} on)\n",
                       systemd_with_identity_ids);
}

nlohmann::json systemd_json(const Explanation &explanation)
{
    if (const auto *failure = std::get_if<Failure>(&explanation.systemd)) return {{"reason", failure->what()}};
    const auto *features = std::get_if<SystemdFeatures>(&explanation.systemd);
    if (features == nullptr) return nullptr;
    return {{"version", features->version},
            {"private_pids", features->private_pids},
            {"log_sockets", features->log_sockets},
            {"identity_ids", features->identity_ids}};
}

} // namespace pi_agent
