// Finding these installations, and closing them.
#include "admin/host/npm_installs.hpp"

#include "admin/host/agent_binary.hpp"
#include "common/base/error.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/defence.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <sys/stat.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr std::array<const char *, 2> agent_packages = {"@earendil-works/pi-coding-agent",
                                                        "@mariozechner/pi-coding-agent"}; // it has had two names
constexpr std::array<const char *, 2> global_modules = {"/usr/lib/node_modules/", "/usr/local/lib/node_modules/"};

constexpr const char *npm_agent = "agent's package of npm"; // in messages

// None for what is not there, and where others can change the way.
std::optional<std::string> try_resolve(const std::string &path)
{
    try {
        return resolve_trusted(path, npm_agent).canonical;
    } catch (const Failure &) {
        return std::nullopt;
    }
}

bool is_agents(const std::string &package)
{
    return std::any_of(agent_packages.begin(), agent_packages.end(), [&](const std::string &name) {
        const auto end = "/node_modules/" + name;
        return package.size() > end.size() && package.compare(package.size() - end.size(), end.size(), end) == 0;
    });
}

// With another prefix than npm's own (/opt/node/lib/node_modules), the command tells where.
std::set<std::string> find_packages(const Policy &policy)
{
    std::set<std::string> packages;
    for (const std::string modules : global_modules)
        for (const auto *name : agent_packages)
            packages.insert(modules + name);
    for (const auto *directory : system_program_directories)
        for (const auto &command : {std::string("pi"), policy.wrapper.command_name})
            if (const auto program = try_resolve(std::string(directory) + "/" + command))
                if (const auto package = npm_package_of(*program); package && is_agents(*package)) packages.insert(*package);
    return packages;
}

// None for what is not there. Nothing is looked at on a way that others can change: such a package counts as open.
std::optional<NpmInstall> look_at(const std::string &package)
{
    try {
        if (const auto real = resolve_trusted(package, npm_agent).canonical; real != package && defence_is_on("npm-own-place"))
            return NpmInstall{package, true, "it is a link to " + real};
        struct stat facts {};
        if (::stat(package.c_str(), &facts) != 0) throw_errno("examining " + package);
        return NpmInstall{package, (facts.st_mode & S_IXOTH) != 0, ""};
    } catch (const SystemFailure &failure) {
        if (failure.error_number() == ENOENT || failure.error_number() == ENOTDIR) return std::nullopt;
        return NpmInstall{package, true, failure.what()};
    } catch (const Failure &failure) {
        return NpmInstall{package, true, failure.what()};
    }
}

} // namespace

std::vector<NpmInstall> find_npm_installs(const AsRoot & /*root*/, const Policy &policy)
{
    const auto agent = try_resolve(policy.agent.binary);
    std::vector<NpmInstall> installs;
    for (const auto &package : find_packages(policy)) {
        if (agent && is_within(*agent, try_resolve(package).value_or(package))) continue;
        if (auto install = look_at(package)) installs.push_back(std::move(*install));
    }
    return installs;
}

std::vector<NpmInstall> hide_npm_installs(const AsRoot &root, const Policy &policy, Changes &changes)
{
    std::vector<NpmInstall> left;
    for (const auto &install : find_npm_installs(root, policy)) {
        const bool concerns = policy.wrapper.hide_direct_binary == install.is_open; // closed by hand is closed
        if (concerns && install.why_left.empty())
            hide_place(root, policy, install.path, "the agent's package that npm installed for everybody: ", changes);
        else if (concerns && install.is_open)
            left.push_back(install);
    }
    return left;
}

} // namespace pi_agent
