// Properties as lines of a unit file: admin/render/render_text.hpp
#include "admin/render/render_text.hpp"

#include "runner/plan/limits.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace unit_file_value_test {

TEST_CASE("properties are written as unit files have them")
{
    CHECK(unit_file_lines({"NoNewPrivileges", true}) == "NoNewPrivileges=yes\n");
    CHECK(unit_file_lines({"UMask", std::uint32_t{0077}}) == "UMask=0077\n");
    CHECK(unit_file_lines({"CapabilityBoundingSet", std::uint64_t{0}}) == "CapabilityBoundingSet=\n");
    CHECK(unit_file_lines({"RestrictNamespaces", std::uint64_t{0}}) == "RestrictNamespaces=yes\n");
    CHECK(unit_file_lines({"CPUQuotaPerSecUSec", std::uint64_t{4'000'000}}) == "CPUQuota=400%\n");
    CHECK(unit_file_lines({"RuntimeMaxUSec", std::uint64_t{43'200'000'000}}) == "RuntimeMaxSec=43200s\n");
    CHECK(unit_file_lines({"SystemCallFilter", NameFilter{false, {"ptrace", "kcmp"}}}) == "SystemCallFilter=~ptrace kcmp\n");
    CHECK(unit_file_lines({"RestrictAddressFamilies", NameFilter{true, {"AF_UNIX"}}}) == "RestrictAddressFamilies=AF_UNIX\n");
    CHECK(unit_file_lines({"BindPaths", BindList{{{"/a", "/b", false}, {"/c", "/c", false}}}}) ==
          "BindPaths=/a:/b:norbind\nBindPaths=/c\n");
    CHECK(unit_file_lines({"TemporaryFileSystem", TemporaryFileSystems{{{"/home", "ro"}}}}) == "TemporaryFileSystem=/home:ro\n");
    CHECK(unit_file_lines({"DeviceAllow", DeviceRules{{"/dev/kvm", "/dev/dri/card0"}}}) ==
          "DeviceAllow=/dev/kvm rw\nDeviceAllow=/dev/dri/card0 rw\n");
    CHECK(unit_file_lines({"IPAddressAllow", AddressRanges{{{{10, 0, 0, 0}, 8}}}}) == "IPAddressAllow=10.0.0.0/8\n");
}

TEST_CASE("a share of memory is the percentage that it was made of")
{
    for (std::uint64_t percent = 1; percent <= 100; ++percent)
        CHECK(unit_file_lines({"MemoryMaxScale", share_of_memory(percent)}) == "MemoryMax=" + std::to_string(percent) + "%\n");
}

} // namespace unit_file_value_test
