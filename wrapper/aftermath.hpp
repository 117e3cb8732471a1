// The aftermath notice: looks at the shown tree before the agent runs and after it has ended, and lists what came that runs code outside.
// It works with the user's rights, in a child process for which only the notice waits.
#pragma once

#include "common/base/fd.hpp"
#include "wrapper/aftermath_look.hpp"

#include <functional>
#include <string>
#include <sys/types.h>

namespace pi_agent {

constexpr int aftermath_seconds = 2;                   // for one look
constexpr std::size_t aftermath_entries = 300'000;     // in one look
constexpr std::size_t aftermath_link_entries = 20'000; // of what a start reads as the user

class Aftermath {
public:
    Aftermath() = default; // switched off
    // Begins the first look. `plan` is called in the child: it follows what an agent may have written, to file systems that may not answer.
    // Paths are shown relative to `cwd`, the working directory.
    Aftermath(const std::function<LookPlan()> &plan, const std::string &cwd);
    Aftermath(Aftermath &&other) noexcept;
    Aftermath(const Aftermath &) = delete;
    Aftermath &operator=(const Aftermath &) = delete;
    Aftermath &operator=(Aftermath &&) = delete;
    ~Aftermath();

    // The agent has ended, and the terminal is the user's again. A signal such as INT ends the wait silently.
    void tell(const std::string &session);

private:
    UniqueFd channel_;
    pid_t pid_ = -1;
    bool has_screen_ = false; // standard output is a terminal, not a pager
};

} // namespace pi_agent
