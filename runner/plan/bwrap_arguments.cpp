// The view of a session, mount by mount, in the order in which bubblewrap makes it.
#include "runner/plan/bwrap_arguments.hpp"

#include "common/base/build_settings.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <initializer_list>

namespace pi_agent {

namespace {

// bwrap runs as root without a user namespace, so that what it mounts keeps the host's ids; these are what setpriv needs to become the
// agent and to give all of them up.
constexpr const char *capabilities_of_setpriv[] = {"CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"};

constexpr const char *shared_memory_bytes = "1073741824"; // it counts against the session's memory, too

// Places of the root tree that only a session's own mounts fill: tmpfs that stay empty but for these, and read-only.
constexpr const char *homes[] = {"/home", "/root", "/run/user"};

class Arguments {
public:
    void add(std::initializer_list<std::string> more) { list_.insert(list_.end(), more); }
    void add_if(const char *defence, std::initializer_list<std::string> more)
    {
        if (defence_is_on((std::string("bwrap:") + defence).c_str())) add(more);
    }
    [[nodiscard]] std::vector<std::string> take() { return std::move(list_); }

private:
    std::vector<std::string> list_;
};

// bwrap makes missing directories 0700; the agent has to pass them.
void add_parents(const std::string &path, Arguments &arguments)
{
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
        arguments.add({"--perms", "0755", "--dir", path.substr(0, slash)});
}

void add_bind(const Bind &bind, Arguments &arguments)
{
    add_parents(bind.target, arguments);
    arguments.add({bind.read_only ? "--ro-bind" : "--bind", bind.source, bind.target});
}

std::size_t depth(const std::string &path)
{
    return static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
}

void add_view(const SandboxPlan &plan, Arguments &arguments)
{
    arguments.add({"--bind", plan.root_directory, "/", "--proc", "/proc", "--dev", "/dev"});
    arguments.add({"--perms", "1777", "--size", shared_memory_bytes, "--tmpfs", "/dev/shm"});
    std::vector<Bind> binds = plan.binds;
    // What lies in another's place comes after it.
    std::stable_sort(binds.begin(), binds.end(),
                     [](const Bind &one, const Bind &other) { return depth(one.target) < depth(other.target); });
    const auto is_run = [](const Bind &bind) { return bind.target == "/run"; };
    for (const auto &bind : binds)
        if (is_run(bind)) add_bind(bind, arguments); // it holds the place of /run/user
    for (const char *home : homes)
        arguments.add({"--perms", "0755", "--tmpfs", home});
    for (const auto &bind : binds)
        if (!is_run(bind)) add_bind(bind, arguments);
    for (const char *home : homes)
        arguments.add_if("read-only", {"--remount-ro", home});
    arguments.add_if("read-only", {"--remount-ro", "/dev"});
    arguments.add_if("read-only", {"--remount-ro", "/"});
}

std::string joined(const std::vector<gid_t> &groups)
{
    std::string text;
    for (const gid_t group : groups)
        text += (text.empty() ? "" : ",") + std::to_string(group);
    return text;
}

} // namespace

std::vector<std::string> bwrap_command(const SandboxPlan &plan)
{
    Arguments arguments;
    arguments.add(
        {build::setpriv_path, "--reuid", std::to_string(plan.agent.value()), "--regid", std::to_string(plan.agent_group.value())});
    std::vector<gid_t> groups = plan.account_groups;
    for (const Gid group : plan.groups)
        groups.push_back(group.value());
    if (groups.empty())
        arguments.add({"--clear-groups"});
    else
        arguments.add({"--groups", joined(groups)});
    arguments.add_if("no-capabilities", {"--bounding-set", "-all", "--inh-caps", "-all", "--ambient-caps", "-all"});
    arguments.add({"--no-new-privs", "--", build::exec_path});
    return arguments.take();
}

std::vector<std::string> bwrap_options(const SandboxPlan &plan, int info_fd)
{
    Arguments arguments;
    arguments.add({"--info-fd", std::to_string(info_fd), "--clearenv"});
    arguments.add_if("die-with-parent", {"--die-with-parent"});
    arguments.add_if("own-processes", {"--unshare-pid"});
    arguments.add_if("own-ipc", {"--unshare-ipc"});
    arguments.add({"--unshare-uts"});
    if (plan.network.mode == NetworkMode::none) arguments.add_if("own-network", {"--unshare-net"});
    arguments.add({"--cap-drop", "ALL"});
    for (const char *capability : capabilities_of_setpriv)
        arguments.add({"--cap-add", capability});
    add_view(plan, arguments);
    arguments.add({"--chdir", "/"});
    return arguments.take();
}

} // namespace pi_agent
