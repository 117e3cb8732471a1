// What only sessions with a network of hosts have: asks for the gate, says inside where it is, and opens it.
#include "runner/root/launch/phases.hpp"

#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/trusted_file.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/gate_plan.hpp"
#include "runner/root/errand/provider_keys.hpp"
#include "runner/root/kernel/host_facts.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace pi_agent {

namespace {

constexpr const char *gate_directory = "gate"; // of the session: the gate's file system
constexpr const char *resolv_conf = "resolv.conf";
constexpr const char *hosts_file = "hosts";

bool has_gate(const Entered &entered)
{
    return entered.policy.network.mode == NetworkMode::hosts && defence_is_on("gate");
}

// Forgets the keys, whatever happens: who cleans up after a failure has children with other rights, which inherit this memory.
class Forgetting {
public:
    explicit Forgetting(GateOrder &order) noexcept : order_(order) {}
    Forgetting(const Forgetting &) = delete;
    Forgetting &operator=(const Forgetting &) = delete;
    ~Forgetting() { forget_keys(order_); }

private:
    GateOrder &order_;
};

// A mount costs each start half a millisecond, and one that is asked for in vain hardly less. So what the host does not have is not asked
// for, and the symlinks of a merged /usr are made again as symlinks.
GateRoot make_gate_root(const SessionDirectory &session)
{
    GateRoot root{session.path() + "/" + gate_directory, {}};
    session.make_directory(gate_directory);
    for (const auto &place : places_of_gate()) {
        struct stat facts {};
        if (lstat(place.c_str(), &facts) != 0) {
            require_gone("examining the host's " + place);
            continue;
        }
        if (S_ISLNK(facts.st_mode) && is_within(resolve_trusted(place, "host's").canonical, "/usr"))
            session.make_link(gate_directory + place, read_link(FdRef(AT_FDCWD), place));
        else
            root.shown.push_back(place);
    }
    return root;
}

// Where a name of /etc leads on the host. In /run, which is the session's own, by its text: what the host has there may be a service's own,
// as what systemd-resolved writes is, and only the place counts.
std::string end_on_host(const std::string &path)
{
    const std::string target = read_link(FdRef(AT_FDCWD), path);
    const std::string named = resolved_by_text(target.starts_with('/') ? target : pi_agent::parent_of(path) + "/" + target);
    return is_within(named, "/run") ? named : resolve_trusted(path, "host's").canonical;
}

// A file of /etc that is the session's own. Of the host's view, /etc is the host's own: then the file is where that leads.
void show_in_etc(const Entered &entered, const OpenedSession &session, RootTree &tree, const char *name, const std::string &text)
{
    const std::string path = std::string("/etc/") + name;
    if (entered.admission.view.view == View::minimal)
        return write_whole(session.directory.make_late_file("root" + path), text, "the session's " + path);
    const std::string end = end_on_host(path);
    if (is_within(end, "/run")) {
        session.directory.make_directory(pi_agent::parent_of(end).substr(1));
        return session.directory.write_file(end.substr(1), text);
    }
    session.directory.write_file(name, text);
    const UniqueFd file = open_or_throw("opening the session's " + path, session.directory.fd(), name, O_PATH | O_NOFOLLOW);
    tree.late.push_back({clone_mount(entered.root, file, Submounts::leave_out, MountAttributes{true, nullptr}), end});
}

// What the agent can read of its network; the second is empty, and root writes into it (runner/root/confined/gate_watch.cpp).
UniqueFd show_lists(const Entered &entered, const OpenedSession &session)
{
    session.directory.make_directory(pi_agent::parent_of(network_file));
    session.directory.write_file(network_file, encode({entered.policy.network, routed_providers(entered.policy)}));
    return session.directory.make_file(denials_file);
}

} // namespace

std::vector<std::string> files_of_others(const Entered &entered)
{
    std::vector<std::string> names = entered.sandbox->own_files();
    if (has_gate(entered)) names.insert(names.end(), {resolv_conf, hosts_file});
    return names;
}

std::unique_ptr<SessionGate> ask_for_gate(const Entered &entered, const OpenedSession &session)
{
    if (!has_gate(entered)) return {};
    GateRoot root = make_gate_root(session.directory);
    if (entered.policy.limits.cpu) root.cpu = entered.policy.limits.cpu->amount;
    return std::make_unique<SessionGate>(*entered.sandbox, std::move(root));
}

UniqueFd show_gate(Entered &entered, const OpenedSession &session, RootTree &tree)
{
    entered.environment.gate.merge(gate_environment());
    show_in_etc(entered, session, tree, resolv_conf, resolv_conf_inside());
    show_in_etc(entered, session, tree, hosts_file, hosts_inside(host_name()));
    return show_lists(entered, session);
}

void open_gate(const Entered &entered, SessionGate &gate)
{
    const std::vector<std::uint16_t> ports = host_ports(entered.policy.network); // refuses some, so before a key is read
    GateOrder order = plan_gate(entered.policy, entered.id);
    const Forgetting forgetting(order);
    const std::vector<ProviderRule> &providers = routed_providers(entered.policy);
    order.providers.reserve(providers.size()); // a longer list would leave copies of keys behind
    for (const auto &rule : providers)
        order.providers.push_back(to_gate_provider(rule, read_provider_key(rule)));
    gate.open(entered.root, order, ports);
}

} // namespace pi_agent
