// What the user's settings and project name that a session does not have: runner/as_user/argument_files.cpp
#include "runner/as_user/reader.hpp"

#include "support/failure.hpp"
#include "support/temporary_directory.hpp"

#include <fmt/ranges.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace settings_places_test {

namespace {

using Texts = std::vector<std::string>;

// A home with a config directory, and a project that shows itself and /usr.
struct Home {
    Home()
    {
        directory.make("home/config");
        directory.make("home/project/app");
        plan.sources = {ConfigSource{directory / "home/config", ".pi/agent", true}};
        plan.places.is_there = [project = directory / "home/project"](const std::string &path) {
            return is_within(path, project) || is_within(path, "/usr");
        };
        plan.places.home = directory / "home";
        plan.places.project = directory / "home/project";
        plan.places.directory = directory / "home/project/app";
        plan.places.env_files = {"env"};
    }
    void write(const std::string &name, const std::string &text) const { directory.write("home/config/" + name, text); }
    // Without what each begins with: the path of the file.
    [[nodiscard]] Texts notices() const
    {
        Texts list;
        for (const auto &notice : name_missing_places(plan))
            list.push_back(notice.substr(notice.find(directory / "home/") + (directory / "home/").size()));
        return list;
    }

    TemporaryDirectory directory;
    ReadingPlan plan;
};

} // namespace

TEST_CASE("what settings name that is there in a session is not told")
{
    Home home;
    CHECK(home.notices().empty());
    home.write("settings.json", R"({"shellCommandPrefix": ". ~/.pi/agent/rc.sh; set -e; /usr/bin/true >/usr/x"})");
    home.write("models.json",
               R"({"providers": {"a": {"apiKey": "sk-literal"}, "b": {"apiKey": "$FROM_POLICY"}, "c": {"apiKey": "$MINE"}, "d": 1},
        // a comment, and a comma at the end
        })");
    home.write("mcp.json",
               R"({"mcpServers": {"x": {"command": "npx"}, "y": {"command": "/usr/bin/python3"}, "z": {"url": "https://example.org"}}})");
    home.directory.write("home/env", "MINE=x\n");
    home.directory.link("home/project/AGENTS.md", "app/AGENTS.md");
    home.directory.link("home/project/app/CLAUDE.md", "../AGENTS.md");
    home.plan.places.variables = {"FROM_POLICY"};
    CHECK(home.notices() == Texts{});
    const Home same;
    for (const char *odd : {"", "[]", "{", "{\"providers\": 1, \"mcpServers\": [], \"shellCommandPrefix\": 1}"}) {
        for (const char *name : {"settings.json", "models.json", "mcp.json"})
            same.write(name, odd);
        CHECK(same.notices() == Texts{});
    }
}

TEST_CASE("names setting, path and remedy of what is not there")
{
    const Home home;
    home.write("settings.json", R"({"shellCommandPrefix": "source ~/.aliases && . \"$HOME/x\"; PATH=/opt/mine/bin:$PATH"})");
    home.write("models.json", R"({"providers": {"a": {"apiKey": "!pass show key"}, "b": {"apiKey": "${MY_KEY}"}}})");
    home.write("mcp.json", R"({"mcpServers": {"x": {"command": "/home/me/server"}}})");
    home.directory.link("home/project/AGENTS.md", "../notes.md");
    home.directory.link("home/project/app/.pi", "/home/me/pi");
    const std::string into = "; move it into ~/.pi/agent, and name it by that path, which leads there on both sides";
    const std::string file = "write the key into ~/env, a file that you alone can read (mode 0600)";
    const std::string prefix = "config/settings.json: shellCommandPrefix names ";
    const std::string place = home.directory / "home/notes.md";
    const Texts expected = Texts{
        prefix + "~/.aliases, which a session does not have" + into,
        prefix + "$HOME/x, which a session does not have" + into,
        prefix + "/opt/mine/bin:$PATH, which a session does not have" + into,
        "config/models.json: the apiKey of a is a command, which a session runs without your home, keyring and agents' sockets; if it "
        "needs them, name a variable (\"$NAME\") instead, and " +
            file,
        "config/models.json: the apiKey of b is the variable MY_KEY, which a session does not get from your shell; " + file,
        "config/mcp.json: the server x is /home/me/server, which a session does not have; ask the administrator to show it "
        "(users.NAME.readable), or install it in a session",
        "project/app/.pi is a link to /home/me/pi, which a session does not have; copy it into the project",
        "project/AGENTS.md is a link to " + place +
            ", which a session does not have; copy it into the project, or start with: pi --append-system-prompt " + place};
    CHECK(fmt::format("{}", fmt::join(home.notices(), "\n")) == fmt::format("{}", fmt::join(expected, "\n")));
}

TEST_CASE("the policy's own keys are not told, and names are harmless")
{
    Home home;
    home.plan.places.held_providers = {"a"};
    home.write("models.json", R"({"providers": {"a": {"apiKey": "!x"}, "\u001b[31m": {"apiKey": "!x"}}})");
    const Texts notices = home.notices();
    REQUIRE(notices.size() == 1);
    CHECK(notices[0].find('\x1b') == std::string::npos);
}

} // namespace settings_places_test
