// The wrapper's signals.
#include "wrapper/job_signals.hpp"

#include "common/base/error.hpp"
#include "common/base/request.hpp"

#include <ctime>
#include <sys/signalfd.h>
#include <unistd.h>

namespace pi_agent {

namespace {

bool is_ignored(int number)
{
    struct sigaction present {};
    return sigaction(number, nullptr, &present) == 0 && present.sa_handler == SIG_IGN;
}

// These would end the wrapper with the terminal in raw mode, and are not for the agent (USR1 opens node's debugger, request.cpp).
bool is_survived(int number)
{
    return number == SIGUSR1 || number == SIGPIPE;
}

} // namespace

JobSignals::JobSignals()
{
    sigemptyset(&watched_);
    for (const int number : {SIGCHLD, SIGWINCH, SIGCONT}) {
        signal(number, SIG_DFL); // an inherited "ignore" for CHLD would reap sudo before we see how it ended
        sigaddset(&watched_, number);
    }
    // A blocked signal is queued even where it is ignored, so those are left alone.
    for (int number = 1; number < NSIG; ++number)
        if ((is_forwarded_signal(number) || is_survived(number)) && !is_ignored(number)) sigaddset(&watched_, number);
    if (sigprocmask(SIG_BLOCK, &watched_, nullptr) != 0) throw_errno("blocking signals");
    fd_ = UniqueFd::adopt(signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_) throw_errno("watching signals");
}

JobSignals::Signal JobSignals::next()
{
    for (;;) {
        signalfd_siginfo information{};
        if (read(fd_.get(), &information, sizeof information) != static_cast<ssize_t>(sizeof information)) return {0, false};
        const int number = static_cast<int>(information.ssi_signo);
        if (!is_survived(number) || is_forwarded_signal(number)) return {number, information.ssi_code == SI_KERNEL};
    }
}

bool JobSignals::are_waiting() const
{
    sigset_t pending;
    sigpending(&pending);
    for (int number = 1; number < NSIG; ++number)
        if (is_forwarded_signal(number) && sigismember(&watched_, number) == 1 && sigismember(&pending, number) == 1) return true;
    return false;
}

bool JobSignals::stop_job(int number)
{
    sigset_t continued;
    sigemptyset(&continued);
    sigaddset(&continued, SIGCONT);
    const timespec at_once{};
    while (sigtimedwait(&continued, nullptr, &at_once) == SIGCONT) { // an earlier one must not look like ours
    }
    struct sigaction before {};
    struct sigaction stop {};
    stop.sa_handler = SIG_DFL;
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    if (sigaction(number, &stop, &before) != 0) throw_errno("preparing to stop");
    kill(0, number); // the pipeline's other members too
    sigset_t mask;
    sigprocmask(SIG_UNBLOCK, &only, &mask); // stopped here
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    sigaction(number, &before, nullptr);
    return sigtimedwait(&continued, nullptr, &at_once) == SIGCONT;
}

} // namespace pi_agent
