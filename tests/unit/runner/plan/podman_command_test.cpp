// The container that podman is asked for: runner/plan/sandbox_plan.hpp
#include "runner/plan/sandbox_plan.hpp"

#include "common/base/error.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace pi_agent;

namespace podman_command_test {

namespace {

const std::string session = "/run/pi-agent/sessions/0123456789abcdef0123456789abcdef";

SandboxPlan plan_for(const NetworkMode mode)
{
    return SandboxPlan{"0123456789abcdef0123456789abcdef",
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

bool has(const std::vector<std::string> &list, const std::string &wanted)
{
    return std::find(list.begin(), list.end(), wanted) != list.end();
}

} // namespace

TEST_CASE("a container has no capability, no way to new ones, no image, and the account's ids")
{
    const auto command = podman_command(plan_for(NetworkMode::full), {"host"});
    for (const auto *argument :
         {"--cap-drop=ALL", "--security-opt=no-new-privileges", "--pid=private", "--ipc=private", "--read-only", "--pull=never",
          "--cgroups=disabled", "--user=990:991", "--group-add=992", "--group-add=1500", "--hostname=host"})
        CHECK_MESSAGE(has(command, argument), argument);
}

TEST_CASE("a container has the unit's network, whatever that is")
{
    for (const auto mode : {NetworkMode::full, NetworkMode::listed, NetworkMode::none})
        CHECK(has(podman_command(plan_for(mode), {"host"}), "--network=host"));
}

TEST_CASE("the engine keeps all that it knows below one directory of the unit's own")
{
    const auto command = podman_command(plan_for(NetworkMode::full), {"host"});
    for (const auto *option : {"--root=", "--runroot=", "--tmpdir=", "--network-config-dir=", "--hooks-dir="}) {
        const std::string wanted = std::string(option) + podman_directory;
        CHECK_MESSAGE(
            std::any_of(command.begin(), command.end(), [&](const std::string &one) { return one.compare(0, wanted.size(), wanted) == 0; }),
            option);
    }
}

TEST_CASE("the host's list of directories for every container is not read; podman is told so before what to do")
{
    const auto command = podman_command(plan_for(NetworkMode::full), {"host"});
    const auto option = std::find(command.begin(), command.end(), "--default-mounts-file=/dev/null");
    CHECK(option < std::find(command.begin(), command.end(), "run"));
}

TEST_CASE("the view is bound as it is, the host's control groups are left out, and the tree is the root")
{
    const auto command = podman_command(plan_for(NetworkMode::full), {"host"});
    CHECK(has(command, "--mount=type=bind,src=" + session + "/project,dst=/home/alice/projects,ro=false,bind-propagation=rprivate"));
    CHECK(has(command, "--mount=type=bind,src=" + session + "/sys,dst=/sys,ro=true,bind-propagation=rprivate"));
    CHECK(has(command, "--mount=type=bind,src=" + session + "/sys/fs/cgroup,dst=/sys/fs/cgroup,ro=true,bind-propagation=rprivate"));
    const auto rootfs = std::find(command.begin(), command.end(), "--rootfs");
    REQUIRE(command.end() - rootfs == 4);
    CHECK(rootfs[1] == session + "/root");
    CHECK(rootfs[3] == "/run/pi-agent/door");
}

TEST_CASE("a path in which podman would find options of its own is refused")
{
    for (const auto *path : {"/srv/a,ro=false", "/srv/a\"b", "/srv/a\nb"}) {
        auto plan = plan_for(NetworkMode::full);
        plan.binds.push_back(Bind{session + "/other", path, true});
        CHECK_THROWS_AS(podman_command(plan, {"host"}), Failure);
    }
}

TEST_CASE("an image is named by its id, read from root's store, and gives the container its files alone")
{
    const std::string id(64, 'a');
    const auto command =
        podman_command(plan_for(NetworkMode::full), {"host", {id, "overlay"}, {Bind{session + "/root/usr", "/usr", false}}});
    for (const std::string &argument :
         {std::string("--storage-driver=overlay"), "--storage-opt=overlay.imagestore=" + std::string(podman_images),
          std::string("--unsetenv-all"), std::string("--image-volume=ignore"), std::string("--no-healthcheck"), std::string("--pull=never"),
          std::string("--read-only"), std::string("--user=990:991"),
          "--mount=type=bind,src=" + session + "/root/usr,dst=/usr,ro=true,bind-propagation=rprivate"})
        CHECK_MESSAGE(has(command, argument), argument);
    CHECK_FALSE(has(command, "--rootfs"));
    REQUIRE(command.size() > 3);
    CHECK(command[command.size() - 3].starts_with("--entrypoint=/"));
    CHECK(command[command.size() - 2] == id);
    CHECK(command.back() == "/run/pi-agent/door");
}

} // namespace podman_command_test
