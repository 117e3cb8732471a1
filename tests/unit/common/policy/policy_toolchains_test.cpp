// The section `toolchains` of a policy, and the lists behind it.
#include "common/policy/policy_sections.hpp"

#include "common/base/text.hpp"
#include "support/policy_text.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace policy_toolchains_test {

namespace {

const std::string head = "version: 1\nusers: {alice: {roots: [~/projects]}}\n";

ToolchainsPolicy toolchains_of(const std::string &text)
{
    return parse(head + text).toolchains;
}

std::string problems_with(const std::string &text)
{
    return problems_of(head + text);
}

std::vector<std::string> paths_of(const HomeDirectories &directories)
{
    std::vector<std::string> paths;
    for (const auto &path : directories.paths)
        paths.push_back(path.path);
    return paths;
}

} // namespace

TEST_CASE("lists are the default ones, extended, replaced or none")
{
    for (const auto *text :
         {"", "toolchains: {}\n", "toolchains: {readable: default, caches: default}\n", "toolchains: {readable: [default]}\n"}) {
        CHECK(paths_of(toolchains_of(text).readable) == default_readable());
        CHECK(paths_of(toolchains_of(text).caches) == default_caches());
        CHECK_FALSE(toolchains_of(text).caches.best_effort);
    }
    CHECK(paths_of(toolchains_of("toolchains: {caches: best_effort}\n").caches) == default_caches());
    CHECK(toolchains_of("toolchains: {caches: best_effort}\n").caches.best_effort);
    CHECK_FALSE(toolchains_of("toolchains: {caches: best_effort}\n").readable.best_effort);
    CHECK(toolchains_of("toolchains: {readable: []}\n").readable.paths.empty());
    const auto replaced = toolchains_of("toolchains: {caches: [~/.cache/bazel/, best_effort]}\n").caches;
    CHECK(paths_of(replaced) == std::vector<std::string>{".cache/bazel"});
    CHECK(replaced.best_effort);
    CHECK(to_string(replaced.paths[0].where) == "p.yaml:3:23");
    auto extended = default_readable();
    extended.emplace_back(".tools");
    CHECK(paths_of(toolchains_of("toolchains: {readable: [default, ~/.tools]}\n").readable) == extended);
    extended.insert(extended.begin(), ".first"); // in the order of the list, in which the agent's notes name them
    CHECK(paths_of(toolchains_of("toolchains: {readable: [~/.first, default, ~/.tools]}\n").readable) == extended);
}

TEST_CASE("what holds, is or lies in what no session is shown is refused by name")
{
    for (const auto *path : {"~/.ssh", "~/.ssh/keys", "~/.m2", "~/.m2/settings.xml", "~/.gradle", "~/.gradle/init.d", "~/.gradle/init.d/x",
                             "~/.gradle/daemon", "~/.gradle/enterprise", "~/.gradle/gradle.properties", "~/.cargo", "~/.ivy2", "~/.config",
                             "~/.local", "~/.local/share", "~/.cargo/credentials.toml", "~/.ivy2/.credentials", "~/.pi/agent"})
        for (const auto *key : {"readable", "caches"})
            CHECK_MESSAGE(contains(problems_with("toolchains: {" + std::string(key) + ": [" + path + "]}\n"), "which no session is shown"),
                          path);
    CHECK(contains(problems_with("toolchains: {caches: [~/.m2]}\n"), "toolchains.caches[0]: '~/.m2' holds ~/.m2/settings"));
    CHECK(contains(problems_with("toolchains: {caches: [~/.ssh/x]}\n"), "'~/.ssh/x' belongs to ~/.ssh, which no session is shown"));
}

TEST_CASE("beside toolchains that are shown lie tokens and private keys that are not")
{
    for (const auto *path : {".Renviron", ".ansible/galaxy_token", ".config/solana/id.json", ".espressif/rainmaker",
                             ".foundry/keystores/main", ".jupyter/jupyter_server_config.json", ".local/share/jupyter/runtime",
                             ".platformio/appstate.json", ".terraform.d/credentials.tfrc.json"})
        CHECK_MESSAGE(problem_of_secrets(path), path);
    for (const auto *path : {".ansible", ".espressif", ".foundry", ".local/share/jupyter", ".platformio", ".terraform.d"})
        CHECK_MESSAGE(problem_of_home_directory(std::string("~/") + path), path);
}

TEST_CASE("only plain directories of the home")
{
    for (const auto *path : {"/srv/tools", "tools", "'~'", "~/", "~bob/tools", "~/a//b", "~/../bob/tools", "~/a/."})
        CHECK_MESSAGE(contains(problems_with("toolchains: {readable: [" + std::string(path) + "]}\n"), "toolchains.readable[0]: "), path);
    CHECK(contains(problems_with("toolchains: {readable: [/srv/tools]}\n"), "view_paths"));
    CHECK(contains(problems_with("toolchains: {readable: defualt}\n"), "did you mean 'default'"));
    CHECK(contains(problems_with("toolchains: {caches: {}}\n"), "toolchains.caches: "));
    CHECK(contains(problems_with("toolchains: {cache: []}\n"), "did you mean 'caches'"));
}

TEST_CASE("what a policy names takes the place of the defaults that it overlaps, of either list")
{
    const auto count = [](const HomeDirectories &list, const std::string &path) {
        const auto paths = paths_of(list);
        return std::count_if(paths.begin(), paths.end(), [&](const auto &one) { return is_within(one, path); });
    };
    const auto toolchains = toolchains_of("toolchains: {readable: [default, ~/.sdkman, ~/.npm, ~/.bun]}\n");
    CHECK(count(toolchains.readable, ".sdkman") == 1);
    CHECK(count(toolchains.readable, ".npm") == 1);
    CHECK(count(toolchains.caches, ".npm") == 0);
    CHECK(count(toolchains.readable, ".bun") == 1);
    CHECK(count(toolchains.caches, ".bun") == 0);
    CHECK(count(toolchains_of("toolchains: {caches: [default, ~/go/pkg]}\n").caches, "go/pkg") == 1);
}

TEST_CASE("credentials beside programs are masked where a directory is shown as an environment, whichever list names it")
{
    const auto toolchains = toolchains_of("toolchains: {readable: [~/.dotnet, ~/.opam], caches: []}\n");
    CHECK(toolchains.readable.paths.empty());
    CHECK(paths_of(toolchains.caches) == std::vector<std::string>{".dotnet", ".opam"});
    CHECK(is_at_own_path(".dotnet", true));
    for (const auto *path : {"~/.dotnet/corefx", "~/.cache", "~/.opam/plugins/opam-publish", "~/.cache/huggingface/token"})
        CHECK_MESSAGE(contains(problems_with("toolchains: {caches: [" + std::string(path) + "]}\n"), "which no session is shown"), path);
    for (const auto &path : default_caches())
        for (const auto &name : masked_in(path))
            CHECK_MESSAGE(problem_of_secrets(path + "/" + name), path);
    for (const auto &path : default_readable())
        CHECK_MESSAGE(masked_in(path).empty(), path); // only a layer above the user's can hide a name
}

TEST_CASE("no two in one place, outside or inside")
{
    for (const auto *text : {"{readable: [~/.nvm, ~/.nvm]}", "{readable: [~/a/b, ~/a]}", "{readable: [~/.npm], caches: [~/.npm]}",
                             "{caches: [~/go/pkg, ~/.local/share/go/pkg/mod]}"})
        CHECK_MESSAGE(contains(problems_with("toolchains: " + std::string(text) + "\n"), "are both listed for the same place"), text);
    CHECK(problems_with("toolchains: {readable: [~/.npm], caches: []}\n").empty());
}

TEST_CASE("tools inside look where their variables lead them")
{
    CHECK(place_in_agent_home(".rustup") == ".local/share/rustup");
    CHECK(place_in_agent_home(".cargo/registry") == ".local/share/cargo/registry");
    CHECK(place_in_agent_home("go/pkg/mod") == ".local/share/go/pkg/mod");
    CHECK(place_in_agent_home("gopher") == "gopher");
    CHECK(place_in_agent_home(".cargo/bin") == ".cargo/bin"); // `cargo install` inside writes to another place
    CHECK(place_in_agent_home("go/bin") == "go/bin");
    CHECK(place_in_agent_home(".local/bin").empty());
    CHECK(place_in_agent_home(".local/share/uv/tools").empty());
    CHECK(is_at_own_path(".local/bin", false));
    CHECK(is_at_own_path(".virtualenvs", true));
    CHECK_FALSE(is_at_own_path(".npm", true));
    CHECK(place_in_agent_home(".npm") == ".npm");
    for (const auto *path : {".local/lib", "bin"}) // an agent's own pip and people's own scripts
        CHECK_MESSAGE((place_in_agent_home(path).empty() && is_at_own_path(path, false)), path);
    // Links of projects and the programs there name these by the user's home.
    for (const auto *path : {".cache/R/renv", ".local/share/jupyter/kernels", ".platformio/penv", ".terraform.d/plugin-cache", "quicklisp"})
        CHECK_MESSAGE(is_at_own_path(path, true), path);
}

TEST_CASE("the default lists keep the rules of the others")
{
    for (const auto *list : {&default_readable(), &default_caches()})
        for (const auto &path : *list)
            CHECK_MESSAGE(!problem_of_home_directory("~/" + path), path);
    std::vector<std::string> all = default_readable();
    all.insert(all.end(), default_caches().begin(), default_caches().end());
    for (const auto &one : all)
        CHECK_MESSAGE(std::count_if(all.begin(), all.end(), [&](const auto &other) { return is_within(other, one); }) == 1, one);
}

} // namespace policy_toolchains_test
