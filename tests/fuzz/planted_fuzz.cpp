// Bugs on purpose, each behind the word that FUZZ_PLANTED names: planted_test.py sees each of them found, and the suite failing.
#include "support/property.hpp"

#include <cstdlib>
#include <ctime>
#include <limits>
#include <vector>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

int read_behind(std::string_view input)
{
    const std::vector<int> few(input.size());
    return few.data()[few.size() + 1];
}

std::string planted()
{
    const char *value = std::getenv("FUZZ_PLANTED"); // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? "" : value;
}

void go_wrong(const std::string &bug, std::string_view input)
{
    [[maybe_unused]] volatile int sink = 0;
    if (bug == "memory") sink = read_behind(input);
    if (bug == "undefined") sink = std::numeric_limits<int>::max() + static_cast<int>(input.size());
    if (bug == "exception") throw std::out_of_range("planted");
    if (bug == "property") require(false, "planted");
    if (bug == "internal") unless_refused([]() -> int { throw Failure(ExitStatus::internal, "planted"); });
    if (bug == "message") unless_refused([]() -> int { throw Failure(ExitStatus::denied, "planted\x1b[2J"); });
    if (bug == "slow")
        require_linear(input, [](const std::string & /*text*/) {
            for (const std::clock_t start = std::clock(); std::clock() - start < 5 * CLOCKS_PER_SEC;) {
            }
        });
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    static const std::string bug = planted();
    if (input.size() >= 2 && input[0] == '?' && input[1] == '!') go_wrong(bug, input);
}
