// What which systemd has: runner/plan/sandbox_plan.hpp
#include "runner/plan/sandbox_plan.hpp"

#include "support/failure.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace systemd_features_test {

TEST_CASE("process numbers of their own from systemd 257 on, whatever a distribution adds to the number")
{
    for (const char *text : {"252.39-1~deb12u1", "252", "254.5-1.fc39", "256-12-g0123abc"})
        CHECK_MESSAGE(!systemd_features(text).private_pids, text);
    for (const char *text : {"257", "257.9-1~deb13u1", "258~rc1-1", "1000.1"})
        CHECK_MESSAGE(systemd_features(text).private_pids, text);
    CHECK(!systemd_features("256.9").log_sockets);
    CHECK(systemd_features("257").log_sockets);
    CHECK(!systemd_features("256.9").identity_ids);
    CHECK(systemd_features("257").identity_ids);
    CHECK(systemd_features("257.9-1~deb13u1").version == 257);
}

TEST_CASE("an older systemd is refused with both versions and what to do")
{
    const Caught caught = failure_of([] { return systemd_features("251.99-1").version; });
    CHECK(caught.status == 69);
    CHECK(has(caught.text, "this host runs systemd 251"));
    CHECK(has(caught.text, "needs 252 or newer; ask the administrator to upgrade this host"));
}

TEST_CASE("a version that is no number is refused, and shown harmlessly")
{
    for (const char *text : {"", "v257", "-257", " 257", "99999999999", "elogind\n257"}) {
        const Caught caught = failure_of([&] { return systemd_features(text).version; });
        CHECK_MESSAGE(caught.status == 69, text);
        CHECK(has(caught.text, "which does not begin with a number; compare it with: systemctl --version"));
        CHECK(!has(caught.text, "\n"));
    }
}

} // namespace systemd_features_test
