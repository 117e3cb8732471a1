// Decides on the working directory and the roots that a child which is the caller has opened (design rules 6 and 7).
#pragma once

#include "common/decide/start.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/errand/errand.hpp"

namespace pi_agent {

// A directory that the session shows writable, as the caller opened it in the host's mount namespace.
struct ShownTree {
    std::string root_path;       // of the allowed root that holds it: canonical, from the descriptor; in the property alphabet
    std::string inside;          // beneath that root, "" for the root itself; any bytes
    UniqueFd directory;          // O_PATH
    std::optional<Gid> by_group; // that granted the root
    // On the host; any bytes.
    [[nodiscard]] std::string path() const;
};

// Whether the tree is still where it was opened.
bool is_at_its_path(const ShownTree &tree);

struct OpenedProject {
    ShownTree shown;
    UniqueFd root_directory; // O_PATH, of the root of which `shown` is a part; empty where all of it is shown
    std::string below;       // the working directory beneath it; any bytes
    std::uint64_t cwd_device = 0;
    std::uint64_t cwd_inode = 0;
    std::optional<std::string> repository;  // the nearest beneath `shown` that holds the working directory; "" for all of it
    std::vector<ShownTree> git_directories; // of that repository, where they are in another place, and another root
    std::vector<std::string> notices;       // of git directories that are not shown, and why
    std::vector<AgentPlace> roots;          // all roots of the caller that exist
    std::vector<AgentPlace> closed;         // of these, inside its root and with other rules: this session does not see them
    Policy policy;                          // as it holds for this start
    std::size_t root = 0;                   // which of them holds the working directory, in the order of their rules
    // On the host; any bytes. The repository's is empty where the session has no repository.
    [[nodiscard]] std::string directory() const;
    [[nodiscard]] std::string repository_path() const;
    // The project first. Valid as long as this object lives and is not changed.
    [[nodiscard]] std::vector<const ShownTree *> trees() const;
};

// Takes what `child` sends in open_as_caller (runner/as_user/project.hpp), and decides on what was opened. `callers` is the policy as it
// holds for the caller.
std::variant<OpenedProject, Refused> open_project(Child &child, const Account &caller, const AccessRules &all, const HostView &view,
                                                  Policy callers, const AskedOfStart &asked);

} // namespace pi_agent
