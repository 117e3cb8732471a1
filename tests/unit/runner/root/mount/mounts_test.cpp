// Reading the kernel's list of mounts: runner/root/mount/mounts.hpp
#include "common/host/identity.hpp"

#include "common/base/error.hpp"
#include "support/failure.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace mounts_test {

TEST_CASE("a line of mountinfo is taken apart, whatever optional fields it has")
{
    struct Row {
        std::string line;
        std::uint64_t id, parent;
        std::string point, type, source;
    };
    const std::vector<Row> rows = {
        {"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue", 36, 35, "/mnt2", "ext3", "/dev/root"},
        {"1 0 0:1 / / rw - rootfs rootfs rw", 1, 0, "/", "rootfs", "rootfs"},
        {"24 1 0:22 / /sys rw,nosuid shared:7 master:3 propagate_from:2 unbindable - sysfs sysfs rw", 24, 1, "/sys", "sysfs", "sysfs"},
        {R"(40 1 0:30 / /home/alice/a\040b rw - tmpfs x\040y rw)", 40, 1, "/home/alice/a b", "tmpfs", "x y"},
        {R"(40 1 0:30 / /a\011b\012c\134d rw - tmpfs none rw)", 40, 1, "/a\tb\nc\\d", "tmpfs", "none"},
        {R"(40 1 0:30 / /a\134040b rw - tmpfs none rw)", 40, 1, "/a\\040b", "tmpfs", "none"},
        {R"(40 1 0:30 / /end\040 rw - tmpfs none rw)", 40, 1, "/end ", "tmpfs", "none"},
        {R"(40 1 0:30 / /\040\040 rw - tmpfs none rw)", 40, 1, "/  ", "tmpfs", "none"},
        {R"(40 1 0:30 / /hash\043 rw - tmpfs none rw)", 40, 1, "/hash#", "tmpfs", "none"},
        {"40 1 0:30 / /\xff\xfe rw - tmpfs none rw", 40, 1, "/\xff\xfe", "tmpfs", "none"},
        {R"(40 1 0:30 /\040-\040x /p rw - fuse.x\040y none rw)", 40, 1, "/p", R"(fuse.x\040y)", "none"},
        {"40 1 0:30 / /gone//deleted rw - tmpfs none rw", 40, 1, "/gone//deleted", "tmpfs", "none"},
        {"18446744073709551615 1 0:30 / /p rw - tmpfs none rw", 18446744073709551615U, 1, "/p", "tmpfs", "none"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.line);
        const MountEntry entry = parse_mount(row.line);
        CHECK(entry.id == row.id);
        CHECK(entry.parent == row.parent);
        CHECK(entry.point == row.point);
        CHECK(entry.type == row.type);
        CHECK(entry.source == row.source);
    }
}

TEST_CASE("a line of another form is a failure, never half a mount")
{
    for (const std::string line :
         {"", "x", "36", "36 35 98:0 /mnt1 /mnt2 rw", "36 35 98:0 /mnt1 /mnt2 rw -", "36 35 98:0 /mnt1 /mnt2 rw - ext3",
          "x 35 98:0 /mnt1 /mnt2 rw - ext3 /dev/root rw", "36 x 98:0 /mnt1 /mnt2 rw - ext3 /dev/root rw"}) {
        CAPTURE(line);
        CHECK(failure_of([&] { return parse_mount(line); }).status == 70);
    }
}

TEST_CASE("the mount points below a path are told once each, and not those below another of them")
{
    std::vector<MountEntry> mounts;
    for (const std::string point : {"/", "/srv", "/srv/app", "/srv/app/b", "/srv/app/a/deep", "/srv/app/a", "/srv/app/b", "/srv/apple",
                                    "/srv/app/a2", "/srv/app/b/c"}) {
        mounts.push_back(MountEntry{});
        mounts.back().point = point;
    }
    CHECK(topmost_mounts_below(mounts, "/srv/app") == std::vector<std::string>{"a", "a2", "b"});
    CHECK(topmost_mounts_below(mounts, "/srv") == std::vector<std::string>{"app", "apple"});
    CHECK(topmost_mounts_below(mounts, "/home").empty());
    CHECK(topmost_mounts_below({}, "/srv").empty());
}

TEST_CASE("this process's own mounts are listed, each with its id")
{
    const auto mounts = list_mounts();
    const auto at = [&](const std::string &point) {
        return std::find_if(mounts.begin(), mounts.end(), [&](const MountEntry &entry) { return entry.point == point; });
    };
    REQUIRE(at("/") != mounts.end());
    REQUIRE(at("/proc") != mounts.end());
    CHECK(at("/proc")->type == "proc");
    for (const auto &mount : mounts) {
        CHECK(mount.id != 0);
        CHECK(mount.point[0] == '/');
        CHECK_FALSE(mount.type.empty());
    }
}

} // namespace mounts_test
