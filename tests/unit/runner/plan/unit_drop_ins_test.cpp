// Which settings of a host's drop-ins keep a session from starting: runner/plan/sandbox_plan.hpp
#include "runner/plan/sandbox_plan.hpp"

#include "common/base/error.hpp"
#include "support/failure.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace unit_drop_ins_test {

using Names = std::vector<std::string>;

TEST_CASE("what schedules, counts, logs, limits or notifies may be there for all services")
{
    CHECK(settings_in_the_way("") == Names{});
    CHECK(settings_in_the_way("[Unit]\nOnFailure=mailer@%n.service\nDocumentation=man:x\nConditionPathExists=/x\n") == Names{});
    CHECK(settings_in_the_way("[Service]\nNice=5\nCPUWeight = 20\nMemoryHigh=1G\nIOWeight=5\nTimeoutStopSec=5min\nRestart=always\n"
                              "Environment=A=b\nLogRateLimitBurst=5\nTimeoutStopFailureMode=abort\nTasksMax=\n") == Names{});
    CHECK(settings_in_the_way("[Install]\nWantedBy=x\n[X-Site]\nUser=root\n") == Names{});
}

TEST_CASE("whatever could weaken the sandbox is named, once, and so is what nobody knows")
{
    CHECK(settings_in_the_way("[Service]\nProtectHome=no\nNice=1\nUser=root\nProtectHome=\n") == Names{"ProtectHome", "User"});
    for (const char *key :
         {"RootDirectory", "NoNewPrivileges", "ExecStartPre", "IPAddressDeny", "SystemCallFilter", "KillMode", "LimitCORE", "PrivatePIDs",
          "BindPaths", "ASettingOfTheFuture", "StandardInput", "CapabilityBoundingSet", "MemoryDenyWriteExecute"})
        CHECK_MESSAGE(settings_in_the_way(std::string("[Service]\n") + key + "=x\n") == Names{key}, key);
    CHECK(settings_in_the_way("[Unit]\nRefuseManualStop=no\nCollectMode=inactive\n") == Names{"RefuseManualStop", "CollectMode"});
}

TEST_CASE("it reads as systemd does: blanks, comments, and settings of several lines")
{
    CHECK(settings_in_the_way("  [Service]  \n\t User = root\r\n") == Names{"User"});
    CHECK(settings_in_the_way("[Service]\n# User=root\n; User=root\n\nNice=1") == Names{});
    CHECK(settings_in_the_way("[Service]\nEnvironment=A=b \\\n# a comment\n  User=root\nUser=x") == Names{"User"});
    CHECK(settings_in_the_way("[Service]\nEnvironment=A \\\n\nUser=root\n") == Names{"User"});
}

TEST_CASE("the refusal names file and settings, in harmless words, and how to leave pi-agent out")
{
    const auto caught = failure_of([] { require_harmless_drop_in("/etc/x.conf", "[Service]\nUser=root\nPr\x1botectHome=no\n"); });
    CHECK(caught.text.find("/etc/x.conf sets User=, Pr") != std::string::npos);
    CHECK(caught.text.find('\x1b') == std::string::npos);
    CHECK(caught.text.find("/etc/systemd/system/pi-agent-.service.d") != std::string::npos);
    CHECK_NOTHROW(require_harmless_drop_in("/etc/x.conf", "[Service]\nNice=1\n"));
}

} // namespace unit_drop_ins_test
