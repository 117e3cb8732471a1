// Takes back what a caller can choose for a program run by sudo (environment, limits, signals, scheduling, session; design rule 8).
#pragma once

#include "common/host/identity.hpp"

namespace pi_agent {

// A caller's slack of years would keep every time-out of this process from firing (PR_SET_TIMERSLACK(2const) survives fork, exec and sudo).
void reset_timer_slack();

// Copies the one variable that is used, SUDO_UID, and empties the environment, so that no library reads the rest.
std::optional<std::string> take_sudo_uid();

// Moves standard input, the wrapper's socket, to a descriptor of its own. The three standard descriptors become /dev/null, and every other
// descriptor is closed.
UniqueFd take_channel(const AsRoot &root);

// Throws Failure(denied) unless this process is in every namespace of PID 1: in others, paths, ids, addresses and names mean something
// else, and somebody else decided who may reach what there.
void require_host_namespaces(const AsRoot &root);

// Waits until this process is in the control group of a unit, whose place is_in_unit() (control_group.hpp) describes. The kernel tells so,
// not a signal of systemd's, which anybody on the bus can imitate.
void wait_until_inside(const std::string &place, Deadline deadline);

// Sets resource limits, scheduling, signals, timers, umask, session and process attributes to PID 1's or to a fixed value. Throws when one
// cannot be set.
void reset_process_state(const AsRoot &root);

} // namespace pi_agent
