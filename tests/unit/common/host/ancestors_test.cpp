// Climbing to the processes that this one descends from: common/host/identity.hpp
#include "common/host/identity.hpp"

#include "support/forked.hpp"

#include <doctest/doctest.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace pi_agent;
using namespace pi_agent::test;

namespace ancestors_test {

TEST_CASE("the parent comes first, and its directory is its own")
{
    const std::string parent = std::to_string(::getpid());
    CHECK(in_child([&] {
              std::string first;
              has_ancestor([&](const Ancestor &ancestor) {
                  first = read_link(FdRef(AT_FDCWD), "/proc/self/fd/" + std::to_string(ancestor.directory.get()));
                  return true;
              });
              return first;
          }) == "/proc/" + parent);
}

TEST_CASE("all are asked up to the first process, which is none")
{
    CHECK(in_child([&] {
              int count = 0;
              const bool found = has_ancestor([&](const Ancestor & /*ancestor*/) {
                  ++count;
                  return false;
              });
              return std::string(!found && count > 0 && count < 1000 ? "asked" : "not asked");
          }) == "asked");
}

TEST_CASE("a name with line ends adds no line, and a name alone is no job")
{
    CHECK(in_child([&] {
              ::prctl(PR_SET_NAME, "x\nUid:\t0\t0\t0\t0", 0, 0, 0);
              return in_child([&] {
                  std::string name;
                  has_ancestor([&](const Ancestor &ancestor) {
                      name = ancestor.name;
                      return true;
                  });
                  return name;
              });
          }).find('\n') == std::string::npos);
    CHECK(!looks_like_job({FdRef(-1), "slurmstepd", false}));
    CHECK(looks_like_job({FdRef(-1), "slurmstepd", true}));
    CHECK(!looks_like_job({FdRef(-1), "bash", true}));
}

} // namespace ancestors_test
