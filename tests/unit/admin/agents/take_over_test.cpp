// What root takes over of a tree that somebody else made, and what starts it.
#include "admin/agents/agents.hpp"

#include "common/base/build_settings.hpp"

#include <doctest/doctest.h>

namespace take_over_test {

using namespace pi_agent;

struct stat entry(mode_t mode, uid_t owner = 61'200, nlink_t names = 1)
{
    struct stat facts {};
    facts.st_mode = mode;
    facts.st_uid = owner;
    facts.st_nlink = names;
    return facts;
}

TEST_CASE("files, directories and links of the fetching account are taken over, and nothing else")
{
    constexpr uid_t owner = 61'200;
    CHECK_FALSE(problem_of_entry(entry(S_IFREG | 0644), owner));
    CHECK_FALSE(problem_of_entry(entry(S_IFDIR | 0755, owner, 7), owner));
    CHECK_FALSE(problem_of_entry(entry(S_IFLNK | 0777), owner));
    CHECK(problem_of_entry(entry(S_IFREG | 04755), owner));
    CHECK(problem_of_entry(entry(S_IFREG | 02755), owner));
    CHECK(problem_of_entry(entry(S_IFDIR | 02755), owner));
    CHECK(problem_of_entry(entry(S_IFREG | 0644, 0), owner));
    CHECK(problem_of_entry(entry(S_IFREG | 0644, owner, 2), owner));
    for (const mode_t kind : {mode_t{S_IFCHR}, mode_t{S_IFBLK}, mode_t{S_IFIFO}, mode_t{S_IFSOCK}})
        CHECK(problem_of_entry(entry(kind | mode_t{0644}), owner));
}

TEST_CASE("a link stays inside the tree, whatever other links are on its way")
{
    for (const char *text : {"a", "a/b", "../c", "../../c/d", "./a", "..", "../.."})
        CHECK_FALSE(problem_of_link(text, 2));
    for (const char *text : {"/etc/passwd", "../../..", "../../../c", "a/../b", "a/../../../..", "", "../a/../x", "././../../.."})
        CHECK(problem_of_link(text, 2));
    CHECK(problem_of_link("..", 0));
    CHECK_FALSE(problem_of_link("a", 0));
}

TEST_CASE("the launcher starts the program of its own tree")
{
    KnownAgent agent;
    agent.name = "pi";
    FetchLine fetched;
    fetched.version = "1.2.3";
    fetched.program = "node_modules/x/cli.js";
    CHECK(launcher_text(agent, fetched) == "#!/bin/sh\n# pi 1.2.3, installed by pi-agentctl agent install.\n"
                                           "tree=/usr/lib/pi-agent/agents/pi/1.2.3\n[ -d \"$tree\" ] || tree=${0%/bin/*}\n"
                                           "exec \"$tree/node/bin/node\" --require " +
                                               std::string(build::agents_path) +
                                               "/compile-cache.cjs \"$tree/node_modules/x/cli.js\" \"$@\"\n");
    agent.platform_package = "x-linux";
    CHECK(launcher_text(agent, fetched).ends_with("\nexec \"$tree/node_modules/x/cli.js\" \"$@\"\n"));
}

TEST_CASE("the fetching unit has an account of its own, no capability, and one directory")
{
    const auto properties = fetch_unit_properties();
    const auto has = [&](const std::string &name, const PropertyValue &value) {
        return std::any_of(properties.begin(), properties.end(), [&](const UnitProperty &property) {
            return property.name == name && property.value.index() == value.index() &&
                   (!std::holds_alternative<bool>(value) || std::get<bool>(property.value) == std::get<bool>(value)) &&
                   (!std::holds_alternative<std::uint64_t>(value) ||
                    std::get<std::uint64_t>(property.value) == std::get<std::uint64_t>(value)) &&
                   (!std::holds_alternative<std::string>(value) || std::get<std::string>(property.value) == std::get<std::string>(value));
        });
    };
    for (const char *name : {"DynamicUser", "NoNewPrivileges", "PrivateTmp", "PrivateDevices", "RestrictSUIDSGID"})
        CHECK_MESSAGE(has(name, true), name);
    CHECK(has("ProtectSystem", std::string("strict")));
    CHECK(has("CapabilityBoundingSet", std::uint64_t{0}));
    CHECK(has("RestrictNamespaces", std::uint64_t{0}));
}

} // namespace take_over_test
