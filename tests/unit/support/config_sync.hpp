// A user and an agent with all that the config sync needs.
#pragma once

#include "common/base/channel.hpp"
#include "runner/root/errand/errand.hpp"
#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace pi_agent::test {

namespace fs = std::filesystem;

inline std::string content_of(const std::string &path)
{
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

// A user with a config directory, an agent with a home, and root's own things beside them.
struct Both {
    Both()
        : config(make_private(place, "config", user_account())), home(make_private(place, "home", agent_account())),
          staging(make_private(place, "staging", agent_account())), outside(make_private(place, "outside", agent_account())),
          user_home(make_private(place, "user", user_account())), meta(place.make("meta"))
    {
        place.write("outside/canary", "alive");
        give(outside + "/canary", agent_account());
        place.write("secret", "root's");
        set_mode(place / "secret", 0600);
    }
    void write(const std::string &name, const std::string &text, mode_t mode = 0600) const
    {
        give(place.write("config/" + name, text), user_account());
        set_mode(config + "/" + name, mode);
    }
    void make(const std::string &name) const { give(place.make("config/" + name), user_account()); }
    [[nodiscard]] std::string inside(const std::string &name) const { return content_of(home + "/.pi/agent/" + name); }
    [[nodiscard]] bool outside_is_unchanged() const
    {
        return content_of(outside + "/canary") == "alive" && std::distance(fs::directory_iterator(outside), fs::directory_iterator()) == 1;
    }
    // As the agent writes it: in place.
    void write_inside(const std::string &name, const std::string &text) const
    {
        give(place.write("home/.pi/agent/" + name, text), agent_account());
    }
    [[nodiscard]] nlohmann::json json_inside(const std::string &name) const { return nlohmann::json::parse(inside(name)); }
    [[nodiscard]] std::string path_inside(const std::string &name) const { return home + "/.pi/agent/" + name; }
    [[nodiscard]] std::vector<std::string> sync(const nlohmann::json &managed = nlohmann::json::object()) const
    {
        Policy policy;
        policy.documents["settings.json"] = managed.dump();
        return sync_with(policy);
    }
    [[nodiscard]] std::vector<std::string> sync_with(const Policy &policy, FdRef locked_settings = FdRef(-1)) const
    {
        const AsRoot root = AsRoot::claim();
        const auto [wrapper, peer] = make_channel();
        const auto [termination, silent] = make_channel();
        AccessRules rules;
        rules.config_directory = config;
        Account user = user_account();
        user.home = user_home;
        StateDirectory state;
        state.home = open_path(home, O_RDONLY | O_DIRECTORY);
        state.staging = open_path(staging, O_RDONLY | O_DIRECTORY);
        state.meta = open_path(meta, O_RDONLY | O_DIRECTORY);
        return sync_config(root, user, agent_account(), plan_sync(policy, rules, user, policy.env, agents), state, locked_settings,
                           SessionWatch{wrapper, termination}, [](const std::string &) {});
    }

    TemporaryDirectory place;
    std::string config;
    std::string home;
    std::string staging;
    std::string outside;
    std::string user_home;
    std::string meta;
    AgentPlaces agents;
};

} // namespace pi_agent::test
