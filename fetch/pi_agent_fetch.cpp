// pi-agent-fetch: fetches an agent as an account that has nothing else. Started by pi-agentctl, in a unit of its own; its order is its
// input.
#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/seams/seams.hpp"
#include "fetch/fetch.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace pi_agent;

constexpr std::size_t order_limit = std::size_t{16} << 20U;

void say(const FetchLine &line)
{
    write_whole(FdRef(STDOUT_FILENO), write_fetch_line(line), "answer");
}

} // namespace

int main()
{
    // What it makes is shut: root gives files their modes.
    ::umask(077);
    std::signal(SIGPIPE, SIG_IGN);
    try {
        if (::geteuid() == 0 && defence_is_on("agent-fetch-unprivileged"))
            throw Failure(ExitStatus::internal, "pi-agent-fetch does not run as root; pi-agentctl install-agent starts it");
        say(fetch_agent(read_fetch_order(read_whole(FdRef(STDIN_FILENO), order_limit, "order")), say));
        return EXIT_SUCCESS;
    } catch (const std::exception &failure) {
        FetchLine line;
        line.kind = FetchLine::Kind::failure;
        line.text = failure.what();
        try {
            say(line);
        } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): nobody listens
        }
        const auto *known = dynamic_cast<const Failure *>(&failure);
        return static_cast<int>(known != nullptr ? known->status() : ExitStatus::internal);
    }
}
