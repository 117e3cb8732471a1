// Roots that others can exchange, or that overlap: admin/diagnose/faults.hpp
#include "admin/diagnose/faults.hpp"

#include "common/base/channel.hpp"
#include "support/policy_text.hpp"
#include "support/temporary_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace root_check_test {

namespace {

constexpr uid_t alices = 61'234; // nobody's on any host of these tests
constexpr uid_t bobs = 61'235;

const Account alice{"alice", Uid(alices), Gid(alices), "/home/alice", {alices}};

std::string danger(const std::vector<StepToRoot> &way)
{
    return danger_of_way(way, alice).problem;
}

FoundRoot found(const std::string &path, const std::string &user, int line)
{
    return {path, user, "users." + user + ".roots[0]", {"p.yaml", line, 1}};
}

} // namespace

TEST_CASE("a way that only root and the user can change is no danger, whoever owns the root")
{
    CHECK(danger({{"/", 0, 0755}, {"/home", 0, 0755}, {"/home/alice", alices, 0700}, {"/home/alice/p", alices, 0755}}).empty());
    CHECK(danger({{"/", 0, 0755}, {"/srv", 0, 0755}, {"/srv/devs", bobs, 02775}}).empty());
    CHECK(danger({{"/", 0, 0755}, {"/srv", 0, 0775}, {"/srv/devs", 0, 0755}}).empty()); // a group's members are meant
}

TEST_CASE("a directory above the root that everybody or somebody else can write to is told with owner and mode")
{
    const auto open = danger({{"/", 0, 0755}, {"/srv", 0, 0777}, {"/srv/app", alices, 0755}});
    CHECK(contains(open, "everybody can write to /srv (owner root, mode 0777), and so put another directory in the root's place"));
    const auto of_bob = danger({{"/", 0, 0755}, {"/home/bob", bobs, 0755}, {"/home/bob/app", alices, 0755}});
    CHECK(contains(of_bob, "uid 61235 can write to /home/bob (owner uid 61235, mode 0755)"));
    CHECK(contains(danger_of_way({{"/", 0, 0777}, {"/app", alices, 0755}}, alice).remedy, "let only root and alice write there"));
}

TEST_CASE("the sticky bit keeps what is the user's or root's, and nothing else")
{
    CHECK(danger({{"/", 0, 0755}, {"/scratch", 0, 01777}, {"/scratch/a", alices, 0755}}).empty());
    CHECK(danger({{"/", 0, 0755}, {"/scratch", 0, 01777}, {"/scratch/a", 0, 0755}}).empty());
    const auto strange = danger({{"/", 0, 0755}, {"/scratch", 0, 01777}, {"/scratch/b", bobs, 0755}});
    CHECK(contains(strange, "uid 61235 can put another directory in the root's place: everybody can write to /scratch"));
}

TEST_CASE("a root that everybody can write to is told")
{
    CHECK(contains(danger({{"/", 0, 0755}, {"/srv", 0, 0755}, {"/srv/all", 0, 01777}}), "the agent reads and obeys what they leave there"));
}

TEST_CASE("the way to an open root is looked at on this host")
{
    const TemporaryDirectory directory(place_for_projects());
    const auto root = directory.make("open/root");
    const auto above = directory / "open";
    const Account self{"self", Uid(::geteuid()), Gid(::getegid()), "/", {}};
    const auto look = [&] {
        const auto fd = UniqueFd::adopt(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        REQUIRE(fd);
        return danger_of_root(fd, root, self).problem;
    };
    REQUIRE(::chmod(above.c_str(), 0777) == 0);
    CHECK(contains(look(), "everybody can write to " + above));
    REQUIRE(::chmod(above.c_str(), 0755) == 0);
    CHECK_FALSE(contains(look(), above + " (owner"));
}

TEST_CASE("a root that is another's too, or is in one, is told with both places")
{
    const auto overlaps = find_overlaps({found("/srv/b/x", "bob", 5), found("/srv/b-side", "eve", 9), found("/srv/b", "alice", 3)});
    REQUIRE(overlaps.size() == 1);
    CHECK(overlaps.front().key == "users.bob.roots[0]");
    CHECK(overlaps.front().where.line == 5);
    CHECK(contains(overlaps.front().problem, "/srv/b/x lies in /srv/b (users.alice.roots[0], p.yaml:3:1), a root of alice"));
    const auto same = find_overlaps({found("/srv/b", "alice", 3), found("/srv/b", "bob", 5)});
    REQUIRE(same.size() == 1);
    CHECK(contains(same.front().problem, "/srv/b is also /srv/b (users.alice.roots[0]"));
    const auto own = find_overlaps({found("/srv/b", "alice", 3), found("/srv/b/x", "alice", 4)});
    REQUIRE(own.size() == 1);
    CHECK(contains(own.front().problem, "a session there has the inner root alone"));
    FoundRoot ruled = found("/srv/b/secret", "alice", 4); // which sessions that start in /srv/b do not see
    ruled.has_rules = true;
    CHECK(find_overlaps({found("/srv/b", "alice", 3), ruled}).empty());
    CHECK(find_overlaps({found("/srv/b", "bob", 3), ruled}).size() == 1);
}

TEST_CASE("very many overlaps are told up to what anybody reads, in little time")
{
    std::vector<FoundRoot> roots;
    for (int index = 0; index < 20'000; ++index)
        roots.push_back(found("/srv/all", "user" + std::to_string(index), index + 1));
    const auto overlaps = find_overlaps(std::move(roots));
    CHECK(overlaps.size() >= 100);
    CHECK(overlaps.size() <= 101);
}

} // namespace root_check_test
