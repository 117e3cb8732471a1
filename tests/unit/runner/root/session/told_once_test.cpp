// What starts tell once: runner/root/session/session_directory.hpp
#include "runner/root/session/session_directory.hpp"

#include "support/writing.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace told_once_test {

namespace {

using Notices = std::vector<std::string>;

struct Told {
    Told() { state.meta = open_path(place.make("meta"), O_RDONLY | O_DIRECTORY); }
    [[nodiscard]] bool is_told(const std::string &where, const Notices &notices, bool always = false) const
    {
        const Notices told = untold_of(state, "told", where, notices, always);
        CHECK((told.empty() || told == notices));
        return !told.empty();
    }
    [[nodiscard]] bool is_told(const Notices &notices) const { return !untold(state, "told", notices, false).empty(); }

    TemporaryDirectory place;
    StateDirectory state;
};

} // namespace

TEST_CASE("a notice is told once, and again when it changes or is back")
{
    const Told home;
    CHECK_FALSE(home.is_told(Notices{}));
    CHECK_FALSE(fs::exists(home.place / "meta/told"));
    CHECK(home.is_told({"a", "b"}));
    CHECK_FALSE(home.is_told({"a", "b"}));
    CHECK(home.is_told({"a"}));
    CHECK_FALSE(home.is_told(Notices{}));
    CHECK(home.is_told({"a"}));
}

TEST_CASE("a notice about a place is told once for each place, in whatever order they come")
{
    const Told home;
    CHECK_FALSE(home.is_told("/one", {}));
    for (const auto *where : {"/one", "/two"})
        CHECK(home.is_told(where, {"a"}));
    for (const auto *where : {"/two", "/one", "/two"})
        CHECK_FALSE(home.is_told(where, {"a"}));
    CHECK(home.is_told("/one", {"b"}));
    CHECK_FALSE(home.is_told("/one", {"a"}));
    CHECK(home.is_told("/one", {"a"}, true));
    CHECK_FALSE(home.is_told("/one", {"a"}));
}

TEST_CASE("where nothing can be remembered a notice is told again, and nobody's start fails")
{
    const Told home;
    fs::create_directory(home.place / "meta/told");
    for (int start = 0; start < 2; ++start) {
        CHECK(home.is_told({"a"}));
        CHECK(home.is_told("/one", {"a"}));
    }
}

TEST_CASE("of many places the first are forgotten, and the file stays small")
{
    const Told home;
    for (int count = 0; count < 1000; ++count)
        CHECK(home.is_told("/" + std::to_string(count), {"a"}));
    CHECK(fs::file_size(home.place / "meta/told") <= 4096);
    CHECK_FALSE(home.is_told("/999", {"a"}));
    CHECK_FALSE(home.is_told("/900", {"a"}));
    CHECK(home.is_told("/0", {"a"}));
}

} // namespace told_once_test
