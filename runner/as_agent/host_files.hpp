// The single files of /etc in the minimal view. They are copies, made while systemd builds the unit: read by a child with the agent's
// rights, so by whatever links and owners they are reached on this host, the agent gets what its account may read there, and root opens
// none.
#pragma once

#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/errand/child.hpp"
#include "runner/root/session/session_directory.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

constexpr std::size_t host_file_limit = std::size_t{1} << 20U; // bytes of one; what is larger is left out and told

// A line of passwd(5) or group(5) each for these and nobody else. Accounts come from wherever the host has them: the database was asked.
// Names that these files cannot hold are left out.
std::string passwd_text(const std::vector<Account> &accounts, const std::string &agent_name, const std::string &agent_home);
std::string group_text(const std::vector<std::pair<std::string, Gid>> &groups);

// Their names below /etc.
std::vector<std::string> shown_etc_files();

class HostFilesReader {
public:
    // Starts the child; nothing in the host's own view.
    HostFilesReader(const AsRoot &root, const Account &agent, const HostView &view);
    // Waits for it, and writes them. Returns what the user should know.
    // But for `left_out`.
    std::vector<std::string> show(const SessionDirectory &session, const std::vector<std::string> &left_out);

private:
    const HostView &view_;
    std::optional<Child> child_;
};

// passwd and group of the session: root, nobody, the agent and its user, and the groups of these and of `by_group`. Not in the host's view.
void show_accounts(const SessionDirectory &session, const HostView &view, const Account &user, const Account &agent,
                   const std::string &agent_home, std::optional<Gid> by_group);

} // namespace pi_agent
