// pi-agentctl render: what a start of pi would be given, written down for an engine that exists.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

struct RenderOptions {
    std::string target;              // of render_targets()
    std::optional<std::string> user; // each target but seccomp wants both
    std::optional<std::string> directory;
    std::string image;
    std::string volume;                 // of workspaces, for kubernetes; empty: the cluster's storage class
    std::vector<std::string> arguments; // the agent's
};

std::string default_image();

// What --target may say.
std::vector<std::string> render_targets();

// For root, but for seccomp, which is the same everywhere.
void run_render(const RenderOptions &options, std::ostream &out);

} // namespace pi_agent
