// One change of this host, by apply, rollback or edit: it is finished, or goes back by itself.
#pragma once

#include "admin/host/root_files.hpp"
#include "admin/host/unfinished_apply.hpp"
#include "common/base/error.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <optional>
#include <ostream>
#include <string>

namespace pi_agent {

// Made and used under the lock of apply. Until begin() it has changed nothing.
class Transaction {
public:
    // Takes up what a command that was killed has left unfinished: going back leads to what that one found.
    explicit Transaction(const AsRoot &root);

    [[nodiscard]] bool was_cut_short() const noexcept { return was_cut_short_; }

    // Looks at the host before the first change. `policy_change`: where the command itself replaces the policy's files.
    void look(const Policy &policy, const std::optional<PolicyChange> &policy_change);
    // Writes down what it saw, on disk; the directory of applied policies exists.
    void begin();
    // Whether nobody else went on with it, or ended it, while the lock was free.
    [[nodiscard]] bool is_ours() const;
    // From here on nothing goes back.
    void finish();
    // Makes the host what it was. Returns how the message about the failure begins.
    std::string go_back(std::ostream &out, std::ostream &warnings);

private:
    const AsRoot &root_;
    HostBefore before_;
    std::string noted_; // the command that the note names; empty without one
    bool was_cut_short_ = false;
};

} // namespace pi_agent
