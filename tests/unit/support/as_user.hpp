// Runs a piece of a test as a user, in a child as the runner makes them.
#pragma once

#include "runner/root/errand/errand.hpp"
#include "runner/wire/answer.hpp"
#include "support/accounts.hpp"
#include "support/forked.hpp"

namespace pi_agent::test {

// What `task` returns there; throws what it throws.
inline std::string as_user(const std::function<std::string(const AsUser &)> &task)
{
    const AsRoot root = AsRoot::claim();
    Child child(root, "test", user_account(), {}, [&](const AsUser &user, FdRef channel) { send_long_answer(channel, task(user)); });
    return child.receive_long(child_patience_seconds);
}

} // namespace pi_agent::test
