// A place where what root makes below /run is gone with the test: a mount namespace of its own with an empty /run and /var/lib.
#pragma once

#include "support/forked.hpp"

#include <sched.h>
#include <sys/mount.h>

namespace pi_agent::test {

constexpr const char *no_private_run = "no mount namespace here";

// What `task` returns there, or no_private_run where the place makes no mount namespaces.
inline std::string in_private_run(const std::function<std::string()> &task)
{
    return in_child([&]() -> std::string {
        if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("none", "/run", "tmpfs", 0, "mode=0755") != 0 || ::mount("none", "/var/lib", "tmpfs", 0, "mode=0755") != 0)
            return no_private_run;
        return task();
    });
}

} // namespace pi_agent::test
