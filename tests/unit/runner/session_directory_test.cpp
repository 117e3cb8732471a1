// The form of a session's id, and the names made of it: runner/session_directory.hpp
#include "runner/session_directory.hpp"

#include "common/escape.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"

#include <set>

using namespace pi_agent;
using namespace pi_agent::test;

TEST_CASE("an id is 32 lower-case hexadecimal digits, and no two are alike")
{
    std::set<std::string> seen;
    for (int count = 0; count < 1000; ++count) {
        const std::string id = make_session_id();
        CHECK(is_session_id(id));
        seen.insert(id);
    }
    CHECK(seen.size() == 1000);
    std::set<char> digits;
    for (const auto &id : seen)
        digits.insert(id.begin(), id.end());
    CHECK(digits.size() == 16);
}

TEST_CASE("nothing else is taken for an id")
{
    const std::string good = "0123456789abcdef0123456789abcdef";
    CHECK(is_session_id(good));
    for (const std::string &text :
         {std::string(), good.substr(1), good + "0", std::string("0123456789ABCDEF0123456789abcdef"),
          std::string("0123456789abcdeg0123456789abcdef"), std::string("../../../../../../../../../../..").append(1, 'a'),
          std::string("/123456789abcdef0123456789abcdef"), std::string("0123456789abcdef0123456789abcde\n"),
          std::string("0123456789abcdef0123456789abcde\0", 32), std::string(" 123456789abcdef0123456789abcdef"),
          std::string("%123456789abcdef0123456789abcdef")}) {
        CAPTURE(text);
        CHECK_FALSE(is_session_id(text));
    }
}

TEST_CASE("scope and service are named after the session, in the alphabet of properties")
{
    const std::string id = make_session_id();
    CHECK(scope_name(id) == "pi-agent-run-" + id + ".scope");
    CHECK(service_name(id) == "pi-agent-" + id + ".service");
    CHECK(is_property_safe(scope_name(id)));
    CHECK(is_property_safe(service_name(id)));
}

TEST_CASE("removing what is no session id is refused before anything is opened" * doctest::skip(not_root()))
{
    const AsRoot root = AsRoot::claim();
    for (const auto *text : {"", "..", ".", "../../../etc", "0123456789abcdef0123456789abcde"})
        CHECK(failure_of([&] { remove_session(root, text); }).status == 64);
}
