// The order in which a change of the host is written down, finished, or taken back.
#include "admin/apply/transaction.hpp"

#include "common/seams/seams.hpp"
#include "runner/root/session/session_directory.hpp"

#include <utility>

namespace pi_agent {

Transaction::Transaction(const AsRoot &root) : root_(root)
{
    auto earlier = read_unfinished(root);
    if (!earlier) return;
    before_ = std::move(*earlier);
    noted_ = before_.command;
    was_cut_short_ = true;
}

void Transaction::look(const Policy &policy, const std::optional<PolicyChange> &policy_change)
{
    auto now = look_at_host(root_, policy);
    now.command = make_session_id();
    now.policy = policy_change;
    before_ = was_cut_short_ ? joined(std::move(before_), now) : std::move(now);
}

void Transaction::begin()
{
    write_unfinished(root_, before_);
    noted_ = before_.command;
    fault_point("apply-begun");
}

bool Transaction::is_ours() const
{
    const auto note = read_unfinished(root_);
    return note ? note->command == noted_ : noted_.empty();
}

void Transaction::finish()
{
    remove_unfinished_note(root_);
    noted_.clear();
}

std::string Transaction::go_back(std::ostream &out, std::ostream &warnings)
{
    if (noted_.empty()) return "nothing is applied: ";
    Changes changes(false, out);
    const bool is_whole = pi_agent::go_back(root_, before_, changes, warnings);
    mark_host_changed(root_);
    return is_whole ? "nothing is applied, and what had been changed is as it was: "
                    : "nothing is applied, and the warnings say what is not as it was, which the next apply goes on with: ";
}

} // namespace pi_agent
