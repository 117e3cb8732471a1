// Which file systems are another host's: runner/root/session/session_directory.hpp
#include "runner/root/session/session_directory.hpp"

#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/magic.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace network_file_system_test {

TEST_CASE("file systems of the network are known by name, and those of the host are none")
{
    CHECK(network_file_system(NFS_SUPER_MAGIC) == "NFS"); // EFS as well
    CHECK(network_file_system(CIFS_SUPER_MAGIC) == "CIFS");
    CHECK(network_file_system(CEPH_SUPER_MAGIC) == "Ceph");
    CHECK(network_file_system(FUSE_SUPER_MAGIC) == "FUSE");
    CHECK(network_file_system(0x6B414653) == "AFS"); // of the kernel, whose number is not OpenAFS'
    CHECK(network_file_system(0x5346414F) == "AFS");
    CHECK(network_file_system(0x01161970) == "GFS2");
    CHECK(network_file_system(0x7461636F) == "OCFS2");
    for (const unsigned long own :
         std::initializer_list<unsigned long>{EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC})
        CHECK(network_file_system(own).empty());
}

TEST_CASE("a directory of the host's own is no hindrance")
{
    const TemporaryDirectory place;
    const UniqueFd directory = UniqueFd::adopt(::open(place.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(directory);
    CHECK_NOTHROW(require_own_file_system(directory, place.path(), "agent.state_dir"));
}

} // namespace network_file_system_test
