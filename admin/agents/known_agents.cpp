// The agents that this release can fetch, from the product's own data.
#include "admin/agents/agents.hpp"

#include "common/agents/fetch_order.hpp"
#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/host/trusted_file.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>

namespace pi_agent {

namespace {

constexpr std::size_t agent_data_limit = std::size_t{8} << 20U;
constexpr const char *agent_suffix = ".json";

std::string read_data(const std::string &name)
{
    return read_trusted_file(std::string(build::agents_path) + "/" + name, agent_data_limit, "data of agents");
}

PinnedPackage pinned_from(const nlohmann::json &json)
{
    return {json.at("package"), json.at("version"), json.at("integrity")};
}

} // namespace

std::vector<std::string> known_agents()
{
    std::vector<std::string> names;
    for (auto &file : list_trusted_directory(build::agents_path, agent_suffix, "data of agents")) {
        file.resize(file.size() - std::string_view(agent_suffix).size());
        if (file != "node") names.push_back(std::move(file));
    }
    return names;
}

KnownAgent read_known_agent(const std::string &name)
{
    const auto names = known_agents();
    if (std::find(names.begin(), names.end(), name) == names.end())
        throw Failure(ExitStatus::usage, fmt::format("this release does not know the agent {}; it knows {}", escape_for_display(name),
                                                     fmt::join(names, ", ")));
    utsname host{};
    if (::uname(&host) != 0) throw_errno("asking for the kind of this machine");
    try {
        const auto json = nlohmann::json::parse(read_data(name + agent_suffix));
        const auto shared = nlohmann::json::parse(read_data("node.json"));
        const auto node = shared.at("node").find(host.machine);
        if (node == shared.at("node").end())
            throw Failure(ExitStatus::unavailable, fmt::format("there is no node for {} here, so {} cannot be installed on it; "
                                                               "install the agent yourself, and name it in agent.binary",
                                                               host.machine, name));
        const auto platforms = json.value("platform_package", nlohmann::json::object());
        return {name,
                json.at("package"),
                json.at("command"),
                platforms.value(host.machine, ""),
                json.at("version"),
                read_data(name + ".package"),
                read_data(name + ".lock"),
                pinned_from(*node),
                pinned_from(shared.at("npm"))};
    } catch (const nlohmann::json::exception &failure) {
        throw Failure(ExitStatus::configuration,
                      std::string("the data in ") + build::agents_path + " is damaged; install pi-agent again: " + failure.what());
    }
}

} // namespace pi_agent
