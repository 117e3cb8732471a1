// The aftermath notice: looks at what the session is shown before the agent can run and after it has ended, and says what came that runs
// code outside. All of it with the user's own rights, in a child process that nothing waits for but the notice itself.
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
    Aftermath() = default; // none is wanted
    // Begins the first look. `plan` is called in the child: it follows what an agent may have written, to file systems that need not
    // answer. `cwd` is the working directory, from which paths are told.
    Aftermath(const std::function<LookPlan()> &plan, const std::string &cwd);
    Aftermath(Aftermath &&other) noexcept;
    Aftermath(const Aftermath &) = delete;
    Aftermath &operator=(const Aftermath &) = delete;
    ~Aftermath();

    // The agent has ended, and the terminal is the user's again. A signal such as INT ends the wait without a word.
    void tell(const std::string &session);

private:
    UniqueFd channel_;
    pid_t pid_ = -1;
    bool has_screen_ = false; // standard output is a terminal: no pager's
};

} // namespace pi_agent
