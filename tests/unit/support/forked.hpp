// Runs a piece of a test in a forked child, for what a process cannot take back: identities, namespaces, filters, signals.
#pragma once

#include <array>
#include <csignal>
#include <doctest/doctest.h>
#include <exception>
#include <functional>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pi_agent::test {

// Doctest counts these as skipped: TEST_CASE("…" * doctest::skip(not_root())).
inline bool not_root()
{
    return ::geteuid() != 0;
}

inline std::string text_of_end(int status)
{
    if (WIFSIGNALED(status)) return "died of signal " + std::to_string(WTERMSIG(status));
    return "exited with " + std::to_string(WEXITSTATUS(status));
}

// What `task` returns in the child; "threw: …" for an exception, "died of signal N" or "exited with N" when it never returned.
inline std::string in_child(const std::function<std::string()> &task)
{
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::close(ends[0]);
        std::string text = "=";
        try {
            text += task();
        } catch (const std::exception &error) {
            text = std::string("=threw: ") + error.what();
        }
        // Not _exit(3): before it a sanitizer asks for its signal stack, which a filter of the task's may refuse.
        ::syscall(SYS_exit_group, ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 125);
    }
    ::close(ends[1]);
    std::string answer;
    std::array<char, 4096> buffer{};
    for (ssize_t count = ::read(ends[0], buffer.data(), buffer.size()); count > 0; count = ::read(ends[0], buffer.data(), buffer.size()))
        answer.append(buffer.data(), static_cast<std::size_t>(count));
    ::close(ends[0]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (status != 0 || answer.empty()) return text_of_end(status);
    return answer.substr(1);
}

} // namespace pi_agent::test
