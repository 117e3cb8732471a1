// The wrapper's own options: they begin with --pi-agent- and come first; everything else goes to the agent unchanged.
#pragma once

#include "common/base/request.hpp"

namespace pi_agent {

struct WrapperOptions {
    bool help = false;
    bool explain = false;
    bool debug = false;
    bool sessions = false;
    bool on_node = false; // for a session that was asked for elsewhere (wrapper/carrier.hpp)
    Program program = Program::agent;
    Narrowing narrowing;
    std::vector<std::string> allow;           // hosts
    std::string tmpdir;                       // empty: not given
    std::vector<std::string> agent_arguments; // or for the shell that replaces it
};

// `pi update` without a target, or with one that is pi itself: root owns the agent's program, and no session can change it.
bool asks_for_self_update(const std::vector<std::string> &agent_arguments);

// Throws Failure(usage).
WrapperOptions parse_options(int argc, const char *const *argv);

extern const char *const wrapper_help;

} // namespace pi_agent
