// Credentials entry by entry, through many starts: merge_credentials of runner/as_agent/writer.hpp
#include "runner/as_agent/writer.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using nlohmann::json;

namespace credentials_test {

namespace {

json key(const std::string &text)
{
    return {{"type", "api_key"}, {"key", text}};
}

json login(const std::string &token)
{
    return {{"type", "oauth"}, {"refresh", token}};
}

// auth.json through any number of starts, with what the writer remembers between them.
struct Credentials {
    std::string name = "auth.json";
    FileClass file_class = FileClass::seed;
    json host = json::object();
    std::optional<json> inside;
    std::set<std::string> managed;

    json sync()
    {
        if (!inside) base_host = std::nullopt;
        inside = merge_credentials(name, file_class, {host, inside, base_host, std::nullopt, std::nullopt}, managed);
        base_host = file_class == FileClass::mirror || file_class == FileClass::seed ? host : json::object();
        for (const auto &provider : managed)
            base_host->erase(provider);
        return *inside;
    }
    // The entry of the provider that these tests are about; null where there is none.
    json next(int starts = 1)
    {
        for (int start = 1; start < starts; ++start)
            sync();
        return sync().value("p", json());
    }

    std::optional<json> base_host;
};

} // namespace

TEST_CASE("an API key is the host's")
{
    Credentials auth;
    auth.host["p"] = key("one");
    CHECK(auth.next() == key("one"));
    (*auth.inside)["p"] = key("changed inside");
    CHECK(auth.next() == key("one"));
    auth.inside->erase("p"); // logged out inside
    CHECK(auth.next() == key("one"));
    auth.host["p"] = key("two");
    CHECK(auth.next() == key("two"));
    auth.host.erase("p");
    CHECK(auth.next().is_null());
}

TEST_CASE("a login that was refreshed inside survives any number of starts")
{
    Credentials auth;
    auth.host["p"] = login("H1");
    CHECK(auth.next() == login("H1"));
    for (int start = 0; start < 10; ++start) {
        (*auth.inside)["p"] = login("R" + std::to_string(start));
        CHECK(auth.next() == login("R" + std::to_string(start)));
        CHECK(auth.next(3) == login("R" + std::to_string(start))); // and starts without a refresh
    }
}

TEST_CASE("a new login on the host wins once, and is then the agent's again")
{
    Credentials auth;
    auth.host["p"] = login("H1");
    auth.sync();
    (*auth.inside)["p"] = login("R1");
    auth.sync();
    auth.host["p"] = login("H2");
    CHECK(auth.next() == login("H2"));
    (*auth.inside)["p"] = login("R2");
    CHECK(auth.next(10) == login("R2"));
}

TEST_CASE("what goes on the host goes inside, unless it was changed there")
{
    Credentials auth;
    auth.host["p"] = login("H1");
    auth.host["q"] = login("Q1");
    auth.sync();
    (*auth.inside)["q"] = login("refreshed");
    auth.next(3);
    auth.host = json::object();
    CHECK(auth.next().is_null());
    CHECK(auth.sync() == json{{"q", login("refreshed")}});
    CHECK(auth.next(5).is_null());
    CHECK(auth.sync() == json{{"q", login("refreshed")}});
}

TEST_CASE("who logged out inside stays so until a new login on the host")
{
    Credentials auth;
    auth.host["p"] = login("H1");
    auth.sync();
    auth.inside->erase("p");
    CHECK(auth.next(5).is_null());
    auth.host["p"] = login("H2");
    CHECK(auth.next() == login("H2"));
    auth.inside.reset(); // not logged out: the file is gone, e.g. a new home
    CHECK(auth.next() == login("H2"));
}

TEST_CASE("a login inside counts more than the host's before the first sync, and lives beside other entries")
{
    Credentials auth;
    auth.host = {{"p", login("H1")}, {"q", key("host")}};
    auth.inside = {{"p", login("own")}, {"r", key("own")}};
    const json expected = {{"p", login("own")}, {"q", key("host")}, {"r", key("own")}};
    for (int start = 0; start < 3; ++start)
        CHECK(auth.sync() == expected);
}

TEST_CASE("an entry changes its kind with the host")
{
    Credentials auth;
    auth.host["p"] = login("H1");
    auth.sync();
    (*auth.inside)["p"] = login("R1");
    auth.sync();
    auth.host["p"] = key("instead");
    CHECK(auth.next(2) == key("instead"));
    auth.host["p"] = login("H2");
    CHECK(auth.next() == login("H2"));
    (*auth.inside)["p"] = login("R2");
    CHECK(auth.next(2) == login("R2"));
}

TEST_CASE("a login inside in the place of the host's API key is the agent's until the host's changes")
{
    Credentials auth;
    auth.host["p"] = key("one");
    auth.sync();
    (*auth.inside)["p"] = login("own");
    CHECK(auth.next(5) == login("own"));
    auth.host["p"] = key("two");
    CHECK(auth.next(2) == key("two"));
}

TEST_CASE("a managed provider beats both, and the host's entry comes back when it is managed no longer")
{
    Credentials auth;
    auth.host["p"] = login("H1");
    auth.host["q"] = login("Q1");
    auth.sync();
    (*auth.inside)["p"] = login("R1");
    auth.managed = {"p"};
    for (int start = 0; start < 3; ++start)
        CHECK(auth.sync() == json{{"q", login("Q1")}});
    (*auth.inside)["p"] = login("own");
    CHECK(auth.next().is_null());
    auth.managed.clear();
    CHECK(auth.next() == login("H1"));
    (*auth.inside)["p"] = login("R2");
    CHECK(auth.next(5) == login("R2"));
}

TEST_CASE("of a provider whose key is held a login alone is left")
{
    const json mixed = {{"p", key("mine")}, {"q", login("Q1")}, {"r", key("other")}, {"s", 5}};
    CHECK(without_keys_of(mixed, {"p", "q", "s", "not there"}) == json{{"q", login("Q1")}, {"r", key("other")}});
    CHECK(without_keys_of(mixed, {}) == mixed);
}

TEST_CASE("in mcp-auth.json every entry rotates, and no provider is managed")
{
    Credentials auth;
    auth.name = "mcp-auth.json";
    auth.managed = {"p"};
    const json first = {{"tokens", "H1"}};
    const json refreshed = {{"tokens", "R1"}};
    auth.host["p"] = first;
    CHECK(merge_credentials(auth.name, auth.file_class, {auth.host, std::nullopt, {}, {}, {}}, auth.managed) == auth.host);
    auth.managed.clear();
    auth.sync();
    (*auth.inside)["p"] = refreshed;
    CHECK(auth.next(10) == refreshed);
    auth.host["p"] = {{"tokens", "H2"}};
    CHECK(auth.next() == json{{"tokens", "H2"}});
}

TEST_CASE("the class of credentials is obeyed")
{
    Credentials auth;
    auth.file_class = FileClass::mirror;
    auth.host["p"] = login("H1");
    auth.sync();
    (*auth.inside)["p"] = login("R1");
    (*auth.inside)["own"] = login("own");
    CHECK(auth.sync() == auth.host);

    auth.file_class = FileClass::agent;
    CHECK(auth.next() == login("H1")); // what was copied is the agent's from now on
    (*auth.inside)["p"] = login("R1");
    auth.host["p"] = login("H2");
    CHECK(auth.next(5) == login("R1"));

    Credentials never;
    never.host = {{"p", login("H1")}, {"r", login("H1")}, {"k", key("host's")}};
    never.sync();
    (*never.inside)["own"] = login("own");
    never.file_class = FileClass::never;
    (*never.inside)["r"] = login("R1");
    const json expected = {{"own", login("own")},
                           {"r", login("R1")}}; // what came from the host goes, what was refreshed inside is no more that
    never.host = {{"p", login("H2")}};
    for (int start = 0; start < 3; ++start)
        CHECK(never.sync() == expected);
    never.file_class = FileClass::seed;
    json all = expected; // a login inside counts more than one that is new
    all["p"] = login("H2");
    CHECK(never.sync() == all);
}

TEST_CASE("entries of odd shapes cost nothing but themselves")
{
    for (const std::string text : {"null", "5", "[]", "{}", R"({"type":5})", R"({"type":null})", R"("oauth")"}) {
        CAPTURE(text);
        Credentials auth;
        auth.host["p"] = json::parse(text);
        CHECK(auth.sync() == auth.host);
        auth.inside = json{{"p", json::parse(text)}, {"q", json::parse(text)}};
        CHECK(auth.sync() == json{{"p", json::parse(text)}, {"q", json::parse(text)}});
    }
}

} // namespace credentials_test
