// The container that docker is asked for: runner/plan/sandbox_plan.hpp
#include "runner/plan/sandbox_plan.hpp"

#include "common/base/error.hpp"
#include "runner/root/method/sandbox.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace pi_agent;

namespace docker_command_test {

namespace {

const std::string id = "0123456789abcdef0123456789abcdef";
const std::string session = "/run/pi-agent/sessions/" + id;

SandboxPlan plan_for(const NetworkMode mode)
{
    return SandboxPlan{id,
                       Uid(1000),
                       Uid(990),
                       Gid(991),
                       {Gid(1500)},
                       {992},
                       session + "/root",
                       {Bind{session + "/project", "/home/alice/projects", false}, Bind{session + "/sys", "/sys", true}},
                       "/var/lib/pi-agent/users/alice/home",
                       {"/home/alice/projects"},
                       NetworkPolicy{mode, {}, {}}};
}

std::vector<std::string> command_for(const SandboxPlan &plan)
{
    return docker_command(plan, {"host", {"sha256:abc"}, {Bind{session + "/root/usr", "/usr", true}}, "/pi.slice/x.service"});
}

bool has(const std::vector<std::string> &list, const std::string &wanted)
{
    return std::find(list.begin(), list.end(), wanted) != list.end();
}

} // namespace

TEST_CASE("a container of docker's has no capability, no way to new ones, and the account's ids")
{
    const auto command = command_for(plan_for(NetworkMode::full));
    for (const auto *argument : {"--cap-drop=ALL", "--security-opt=no-new-privileges", "--ipc=private", "--read-only", "--pull=never",
                                 "--rm", "--user=990:991", "--group-add=992", "--group-add=1500", "--hostname=host", "--ulimit=core=0:0",
                                 "--userns=host", "--no-healthcheck", "--init=false", "--runtime=runc", "--oom-score-adj=500"})
        CHECK_MESSAGE(has(command, argument), argument);
    for (const auto *argument : {"--privileged", "--pid=host", "--ipc=host", "--cap-add=ALL"})
        CHECK_MESSAGE(!has(command, argument), argument);
}

TEST_CASE("docker's client is told which daemon to ask and where there are no settings, before what to do")
{
    const auto command = command_for(plan_for(NetworkMode::full));
    REQUIRE(command.size() > 4);
    CHECK(command[1] == "--host=unix:///run/docker.sock");
    CHECK(command[2] == "--config=/run/pi-agent/docker");
    CHECK(command[3] == "run");
}

TEST_CASE("the container's control group is below the unit's")
{
    CHECK(has(command_for(plan_for(NetworkMode::full)), "--cgroup-parent=/pi.slice/x.service"));
}

TEST_CASE("without a network there is one of its own, else the host's, which the unit filters")
{
    CHECK(has(command_for(plan_for(NetworkMode::none)), "--network=none"));
    CHECK(has(command_for(plan_for(NetworkMode::none)), "--sysctl=net.ipv4.ip_unprivileged_port_start=1024"));
    CHECK_FALSE(has(command_for(plan_for(NetworkMode::full)), "--sysctl=")); // it would be the host's
    for (const auto mode : {NetworkMode::full, NetworkMode::loopback, NetworkMode::listed})
        CHECK(has(command_for(plan_for(mode)), "--network=host"));
}

TEST_CASE("the view is bound over the image, and what runs first is ours, with the place to knock at")
{
    const auto command = command_for(plan_for(NetworkMode::full));
    CHECK(has(command, "--mount=type=bind,src=" + session + "/root/usr,dst=/usr,ro=true,bind-propagation=rprivate"));
    CHECK(has(command, "--mount=type=bind,src=" + session + "/project,dst=/home/alice/projects,ro=false,bind-propagation=rprivate"));
    CHECK(has(command, "--mount=type=bind,src=" + session + "/sys/fs/cgroup,dst=/sys/fs/cgroup,ro=true,bind-propagation=rprivate"));
    const auto last = command.end() - 3;
    CHECK(last[0].compare(0, 14, "--entrypoint=/") == 0);
    CHECK(last[1] == "sha256:abc");
    CHECK(last[2] == "/run/pi-agent/door");
}

TEST_CASE("a path in which docker would find options of its own is refused")
{
    for (const auto *path : {"/srv/a,ro=false", "/srv/a\"b", "/srv/a\nb"}) {
        auto plan = plan_for(NetworkMode::full);
        plan.binds.push_back(Bind{session + "/other", path, true});
        CHECK_THROWS_AS(command_for(plan), Failure);
    }
}

} // namespace docker_command_test
