// The sandbox that bubblewrap is asked for: runner/plan/sandbox_plan.hpp
#include "runner/plan/sandbox_plan.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace pi_agent;

namespace bwrap_arguments_test {

namespace {

SandboxPlan plan_for(const NetworkMode mode)
{
    const std::string session = "/run/pi-agent/sessions/0123456789abcdef0123456789abcdef";
    return SandboxPlan{"0123456789abcdef0123456789abcdef",
                       Uid(1000),
                       Uid(990),
                       Gid(991),
                       {},
                       {},
                       session + "/root",
                       {Bind{session + "/project", "/home/alice/projects", false},
                        Bind{session + "/home", "/var/lib/pi-agent/users/alice/home", false}, Bind{session + "/run", "/run", true}},
                       "/var/lib/pi-agent/users/alice/home",
                       {"/home/alice/projects"},
                       NetworkPolicy{mode, {}, {}}};
}

// Where `wanted` begins in `list`; the list's size when it is not there.
std::size_t find(const std::vector<std::string> &list, const std::vector<std::string> &wanted)
{
    return static_cast<std::size_t>(std::search(list.begin(), list.end(), wanted.begin(), wanted.end()) - list.begin());
}

bool has(const std::vector<std::string> &list, const std::vector<std::string> &wanted)
{
    return find(list, wanted) < list.size();
}

const std::string session = "/run/pi-agent/sessions/0123456789abcdef0123456789abcdef";

} // namespace

TEST_CASE("every namespace but the network's is the session's own, and the network's when the policy says none")
{
    const auto options = bwrap_options(plan_for(NetworkMode::full), 4);
    for (const auto *option : {"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--clearenv"})
        CHECK_MESSAGE(has(options, {option}), option);
    CHECK_FALSE(has(options, {"--unshare-net"}));
    CHECK(has(bwrap_options(plan_for(NetworkMode::none), 4), {"--unshare-net"}));
    CHECK(has(options, {"--info-fd", "4"}));
}

TEST_CASE("bwrap keeps three capabilities, which setpriv gives up with everything else")
{
    const auto options = bwrap_options(plan_for(NetworkMode::full), 4);
    CHECK(has(options, {"--cap-drop", "ALL"}));
    CHECK(std::count(options.begin(), options.end(), "--cap-add") == 3);
    auto plan = plan_for(NetworkMode::full);
    const auto command = bwrap_command(plan);
    for (const auto &words : std::vector<std::vector<std::string>>{{"--reuid", "990"},
                                                                   {"--regid", "991"},
                                                                   {"--clear-groups"},
                                                                   {"--bounding-set", "-all"},
                                                                   {"--inh-caps", "-all"},
                                                                   {"--ambient-caps", "-all"},
                                                                   {"--no-new-privs"}})
        CHECK_MESSAGE(has(command, words), words.front());
    plan.groups = {Gid(100), Gid(101)};
    CHECK(has(bwrap_command(plan), {"--groups", "100,101"}));
    CHECK_FALSE(has(bwrap_command(plan), {"--clear-groups"}));
}

TEST_CASE("what lies in another's place is mounted after it, and what holds places is closed at the end")
{
    const auto options = bwrap_options(plan_for(NetworkMode::full), 4);
    const auto project = find(options, {"--bind", session + "/project", "/home/alice/projects"});
    CHECK(find(options, {"--bind", session + "/root", "/"}) < find(options, {"--ro-bind", session + "/run", "/run"}));
    CHECK(find(options, {"--ro-bind", session + "/run", "/run"}) < find(options, {"--tmpfs", "/run/user"}));
    CHECK(find(options, {"--tmpfs", "/home"}) < project);
    CHECK(find(options, {"--perms", "0755", "--dir", "/home/alice"}) < project);
    CHECK(project < find(options, {"--remount-ro", "/home"}));
    for (const auto *place : {"/", "/home", "/root", "/run/user", "/dev"})
        CHECK_MESSAGE(has(options, {"--remount-ro", place}), place);
}

} // namespace bwrap_arguments_test
