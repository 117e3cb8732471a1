// When the wrapper waits no more, and that its words wait for no reader: wrapper/session_client.hpp
#include "wrapper/session_client.hpp"

#include "common/base/channel.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

using namespace pi_agent;

namespace asked_end_test {

namespace {

// In place of standard error while it lives: a pipe that nobody reads and that is full.
class FullStandardError {
public:
    FullStandardError() : kept_(dup(STDERR_FILENO)), pipe_(make_pipe())
    {
        const std::string much(65536, 'x');
        fcntl(pipe_.writing.get(), F_SETPIPE_SZ, 65536);
        CHECK(write(pipe_.writing.get(), much.data(), much.size()) == 65536);
        dup2(pipe_.writing.get(), STDERR_FILENO);
    }
    FullStandardError(const FullStandardError &) = delete;
    FullStandardError &operator=(const FullStandardError &) = delete;
    ~FullStandardError()
    {
        dup2(kept_, STDERR_FILENO);
        close(kept_);
    }

private:
    int kept_;
    Pipe pipe_;
};

} // namespace

TEST_CASE("a signal is waited for less than two seconds, and no longer once it is answered")
{
    AskedEnd end;
    CHECK(end.due() == Deadline::max());
    end.ask(SIGTERM);
    CHECK(end.due() < in_seconds(2));
    end.look();
    CHECK_FALSE(end.is_over());
    end.answered();
    CHECK(end.due() == Deadline::max());
    end.ask(SIGTERM);
    std::this_thread::sleep_until(end.due());
    end.look();
    CHECK(end.is_over());
}

TEST_CASE("a second signal ends the wait at once, unless it comes with the first")
{
    AskedEnd end;
    end.ask(SIGHUP);
    end.ask(SIGHUP);
    CHECK_FALSE(end.is_over());
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    end.ask(SIGINT);
    CHECK(end.is_over());
}

TEST_CASE("words wait a second for a reader that does not read, once")
{
    const auto began = Clock::now();
    {
        const FullStandardError full;
        for (int count = 0; count < 5; ++count)
            say("words\n");
    }
    CHECK(Clock::now() - began < std::chrono::seconds(2));
}

} // namespace asked_end_test
