// Waiting for a lock: runner/root/session/session_directory.hpp
#include "runner/root/session/session_directory.hpp"

#include "support/failure.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace file_lock_test {

TEST_CASE("a lock that somebody holds is waited for until the deadline, or until it is free")
{
    const TemporaryDirectory directory;
    const std::string path = directory.write("lock", "");
    UniqueFd holder = UniqueFd::adopt(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    const UniqueFd other = UniqueFd::adopt(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(lock_until(holder, Clock::now(), "a file"));
    CHECK(lock_until(holder, Clock::now(), "a file")); // it has it
    CHECK_FALSE(lock_until(other, Clock::now(), "a file"));
    int tries = 0;
    CHECK(lock_until(other, in_seconds(10), "a file", [&] {
        if (++tries == 3) holder.reset();
    }));
    CHECK(tries == 3);
}

TEST_CASE("what cannot be locked is said by its name")
{
    CHECK(errno_of([] { return lock_until(FdRef(-1), Clock::now(), "a file"); }) == EBADF);
}

} // namespace file_lock_test
