// What the runner tells the canary, and its answers about paths as JSON: by access(2), statvfs(3) and statx(2).
#include "runner/inside/canary.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sys/statvfs.h>

namespace pi_agent {

namespace {

constexpr int chained_links_at_most = 40; // the kernel's own limit

std::string above(const std::string &path)
{
    const std::size_t slash = path.rfind('/');
    return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

bool is_mount_point(const std::string &path)
{
    struct statx facts {};
    return statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &facts) == 0 &&
           (facts.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// Where a path through symlinks ends, if nothing exists there and it is not the path itself.
std::string dangling_end(const std::string &path)
{
    std::error_code unknown;
    if (std::filesystem::exists(path, unknown) || unknown) return "";
    // The part of it that exists, symlinks followed; the rest as it is written.
    std::filesystem::path end = path;
    for (int links = 0; links < chained_links_at_most; ++links) {
        const std::filesystem::path real = std::filesystem::weakly_canonical(end, unknown);
        if (unknown) return "";
        std::filesystem::path place;
        bool is_link = false;
        for (const auto &part : real) { // weakly_canonical() does not resolve a symlink to nothing
            place /= part;
            if (is_link || !std::filesystem::is_symlink(place, unknown)) continue;
            place = place.parent_path() / std::filesystem::read_symlink(place, unknown);
            is_link = true;
        }
        end = place.lexically_normal();
        if (!is_link) break;
    }
    return end == std::filesystem::path(path).lexically_normal() ? "" : end.string();
}

} // namespace

CanaryPlan parse_canary_arguments(const std::vector<std::string> &arguments)
{
    CanaryPlan plan;
    for (const auto &argument : arguments) {
        const std::size_t equals = argument.find('=');
        const std::string name = argument.substr(0, equals);
        const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
        if (name == "project")
            plan.project = value;
        else if (name == "home")
            plan.home = value;
        else if (name == "user-home")
            plan.user_home = value;
        else if (argument == canary_unconfined)
            plan.confined = false;
        else if (argument == canary_with_gate)
            plan.has_gate = true;
        else if (name == canary_allowed_call)
            plan.allowed_calls.push_back(value);
        else if (name.compare(0, canary_namespace_prefix.size(), canary_namespace_prefix) == 0)
            plan.namespaces[name.substr(canary_namespace_prefix.size())] = value;
        else
            throw Failure(ExitStatus::usage,
                          "pi-agent-canary is started by pi-agent's runner and does not know the argument " + escape_for_display(argument));
    }
    if (plan.project.empty() || plan.home.empty())
        throw Failure(ExitStatus::usage, "pi-agent-canary is started by pi-agent's runner, in the agent's place: pi --pi-agent-canary");
    return plan;
}

PathAccess look_at_path(const std::string &path)
{
    const auto may = [&](int mode) { return faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0; };
    PathAccess found;
    struct stat facts {};
    found.exists = lstat(path.c_str(), &facts) == 0;
    found.read = may(R_OK);
    found.write = may(W_OK);
    found.execute = may(X_OK);
    std::string nearest = path;
    while (nearest != "/" && lstat(nearest.c_str(), &facts) != 0)
        nearest = above(nearest);
    struct statvfs system {};
    found.read_only = statvfs(nearest.c_str(), &system) == 0 && (system.f_flag & ST_RDONLY) != 0;
    while (nearest != "/" && !is_mount_point(nearest))
        nearest = above(nearest);
    found.mount = nearest;
    found.leads_to = dangling_end(path);
    return found;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PathAccess, exists, read, write, execute, read_only, mount, leads_to)

std::string encode(const std::vector<PathAccess> &answers)
{
    return nlohmann::json{{"paths", answers}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<PathAccess> decode_path_access(const std::string &line)
{
    try {
        return nlohmann::json::parse(line).at("paths").get<std::vector<PathAccess>>();
    } catch (const nlohmann::json::exception &) { // it came through processes of the user's and the agent's
        throw Failure(ExitStatus::unavailable, "the session's answer cannot be understood");
    }
}

} // namespace pi_agent
