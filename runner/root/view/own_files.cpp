// Writing what a session has of its own in /etc and at the top of its view.
#include "runner/root/view/own_files.hpp"

#include "common/base/whole_file.hpp"
#include "runner/plan/etc_files.hpp"

#include <utility>
#include <vector>

namespace pi_agent {

void show_box_notes(const SessionDirectory &session, const BoxFacts &facts)
{
    write_whole(session.make_late_file("root/AGENTS.md"), box_notes(facts), "the notes about the sandbox");
}

void show_accounts(const SessionDirectory &session, const HostView &view, const Account &user, const Account &agent,
                   const std::string &agent_home, std::optional<Gid> by_group)
{
    if (view.view == View::host) return;
    std::vector<Account> accounts;
    std::vector<std::pair<std::string, Gid>> groups;
    const auto add_group = [&](Gid gid) { groups.emplace_back(group_name(gid).value_or(""), gid); };
    const auto add = [&](const Account &account) {
        accounts.push_back(account);
        add_group(account.gid);
    };
    for (const char *name : {"root", "nobody"})
        if (const auto account = find_account(std::string(name))) add(*account);
    add(agent);
    add(user);
    if (by_group) add_group(*by_group);
    const auto write = [&](const std::string &path, const std::string &text) {
        if (!is_shown(view, path) && !view.links.contains(path))
            write_whole(session.make_file("root" + path), text, "the session's " + path);
    };
    write("/etc/passwd", passwd_text(accounts, agent.name, agent_home));
    write("/etc/group", group_text(groups));
}

} // namespace pi_agent
