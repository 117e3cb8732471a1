// Which agent is asked for, npm's configuration, a registry's answers, and the lines between the two programs.
#include "common/agents/fetch_order.hpp"
#include "common/base/error.hpp"

#include <doctest/doctest.h>

namespace agents_test {

using namespace pi_agent;

const std::string zeros = "sha512-" + std::string(86, 'A') + "==";

std::string answer_with(const std::string &tarball, const std::string &integrity)
{
    return R"({"dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": {"dist": {"tarball": ")" + tarball + R"(", "integrity": ")" +
           integrity + R"("}}}})";
}

TEST_CASE("an agent is asked for by its name, with a version or a tag")
{
    CHECK(read_agent_request("").agent == "pi");
    CHECK(read_agent_request("pi").version.empty());
    CHECK(read_agent_request("pi@1.2.3-rc.1").version == "1.2.3-rc.1");
    CHECK(read_agent_request("pi@latest").version == "latest");
    for (const char *wrong : {"@", "pi@", "pi@1", "pi@^1.2.3", "pi@1.2.3/..", "../pi", "-pi", "p i", "pi@-x", "pi@1.2.3\n", "pi@file:x"})
        CHECK_THROWS_AS(read_agent_request(wrong), Failure);
}

TEST_CASE("versions are those of Semantic Versioning, and safe in a path")
{
    for (const char *version : {"0.0.0", "1.2.3", "10.20.30-alpha.1", "1.0.0+build.5", "1.0.0-x-y"})
        CHECK(is_package_version(version));
    for (const char *wrong : {"", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.", "1.2.3-", "1.2.3-a..b", "1.2.3-a/b", "1.2.3+", "..", "v1.2.3",
                              "1.2.3 ", "1.2.3-\xc3\xa4"})
        CHECK_FALSE(is_package_version(wrong));
}

TEST_CASE("versions are ordered as npm orders them")
{
    const std::vector<std::string> order = {"0.9.9",         "1.0.0-2", "1.0.0-10", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta.2",
                                            "1.0.0-beta.11", "1.0.0",   "1.0.1",    "1.2.0",       "1.10.0",        "2.0.0"};
    for (std::size_t one = 0; one < order.size(); ++one)
        for (std::size_t other = 0; other < order.size(); ++other)
            CHECK_MESSAGE(is_older_version(order[one], order[other]) == (one < other), order[one], " ", order[other]);
    CHECK_FALSE(is_older_version("1.0.0+a", "1.0.0+b"));
}

TEST_CASE("a program of a package is a path inside of it")
{
    for (const char *path : {"cli.js", "dist/bundle/cli.js", "node_modules/@scope/name/cli.js"})
        CHECK(is_path_in_package(path));
    for (const char *wrong : {"", "/bin/sh", "../x", "a/../../x", "a//b", "a/", "a b", "a$(x)", "a\"b", "-x", "a\nb"})
        CHECK_FALSE(is_path_in_package(wrong));
}

TEST_CASE("npmrc: the last line of a key counts, quotes and comments go, variables are replaced where they are set")
{
    const auto settings =
        read_npmrc("; comment\n# another\nregistry = \"https://one.example/\"\r\n[section]\nregistry=https://two.example/npm\n"
                   "list[]=x\n//two.example/npm/:_authToken=${TOKEN}\nproxy=${NONE}\nstrict\n=x\n",
                   [](const std::string &name) { return name == "TOKEN" ? std::optional<std::string>("secret") : std::nullopt; });
    CHECK(settings.size() == 4);
    CHECK(settings.at("registry") == "https://two.example/npm");
    CHECK(settings.at("proxy") == "${NONE}");
    CHECK(settings.at("strict") == "true");
    CHECK(token_of_registry(settings, "https://two.example/npm/") == "secret");
    CHECK(token_of_registry(settings, "https://two.example/npm-evil/").empty());
    CHECK(token_of_registry(settings, "https://two.example.evil.example/npm/").empty());
}

TEST_CASE("what npm gets of the host's configuration are settings of a fetch, each on a line")
{
    CHECK(write_npmrc({{"registry", "https://x.example/"}, {"script-shell", "/bin/evil"}, {"@a:registry", "https://y.example/"}}) ==
          "@a:registry=\"https://y.example/\"\nregistry=\"https://x.example/\"\n");
    CHECK(write_npmrc({{"registry", "x\nscript-shell=y"}, {"//a=b", "c"}, {"proxy", "\"x"}}).empty());
}

TEST_CASE("a registry is an http or https URL without a name in it")
{
    for (const char *url : {"https://a.example/", "http://127.0.0.1:4873", "https://a.example/npm/proxy", "http://[::1]:80/"})
        CHECK(is_registry_url(url));
    for (const char *wrong :
         {"", "file:///etc", "https://", "https:///x", "ftp://a/", "https://user:pw@a.example/", "https://a b/", "https://a\n"})
        CHECK_FALSE(is_registry_url(wrong));
}

TEST_CASE("a registry is safe on the way by https, and on this host")
{
    for (const char *safe : {"https://a.example/", "http://localhost/", "http://localhost:4873/x", "http://127.0.0.1:4873/",
                             "http://127.8.8.8/", "http://[::1]:4873/npm/"})
        CHECK_MESSAGE(is_safe_on_the_way(safe), safe);
    for (const char *open : {"http://a.example/", "http://10.0.0.1/", "http://localhost.example/", "http://127.0.0.1.example/",
                             "http://127.example/", "http://[::2]/", "http://", "", "localhost", "ftp://localhost/"})
        CHECK_FALSE_MESSAGE(is_safe_on_the_way(open), open);
}

TEST_CASE("what was meant as a URL is shown without its password")
{
    CHECK(without_secrets("https://alice:s3cret@a.example/npm/") == "https://***@a.example/npm/");
    CHECK(without_secrets("alice:s3cret@a.example") == "***@a.example");
    CHECK(without_secrets("https://alice:s3/cr@et@a.example") == "https://***@a.example");
    CHECK(without_secrets("https://a.example/x?token=s3cret#y") == "https://a.example/x?***");
    CHECK(without_secrets("https://a.example/npm/") == "https://a.example/npm/");
    CHECK(without_secrets("") == "");
}

TEST_CASE("an integrity is the sha512 among the check sums")
{
    CHECK(read_integrity(zeros) == std::string(64, '\0'));
    CHECK(read_integrity("sha1-AAAA " + zeros) == std::string(64, '\0'));
    for (const std::string &wrong : {std::string("sha1-AAAA"), std::string("sha512-"), std::string("sha512-AA=="), zeros + "A",
                                     zeros.substr(0, 90), "sha512-" + std::string(85, 'A') + "*=="})
        CHECK_FALSE(read_integrity(wrong));
}

TEST_CASE("a registry's answer names archive and check sum of a version, or of what a tag stands for")
{
    const auto json = answer_with("https://a.example/x.tgz", zeros);
    CHECK(read_registry_answer(json, "x", "1.2.3").tarball == "https://a.example/x.tgz");
    CHECK(read_registry_answer(json, "x", "latest").version == "1.2.3");
    CHECK_THROWS_WITH_AS(read_registry_answer(json, "x", "2.0.0"), "the registry's answer about x does not have the version 2.0.0",
                         Failure);
    CHECK_THROWS_AS(read_registry_answer(json, "x", "next"), Failure);
    CHECK_THROWS_AS(read_registry_answer(answer_with("file:///etc/shadow", zeros), "x", "1.2.3"), Failure);
    CHECK_THROWS_AS(read_registry_answer(answer_with("https://a.example/x.tgz", "sha1-AAAA"), "x", "1.2.3"), Failure);
    for (const std::string &wrong : {std::string(), std::string("[]"), std::string("<html>"), std::string(R"({"versions": 5})"),
                                     std::string(R"({"versions": {"1.2.3": []}})"), std::string(100, '[')})
        CHECK_THROWS_AS(read_registry_answer(wrong, "x", "1.2.3"), Failure);
}

TEST_CASE("a package names its program by one text or by many")
{
    CHECK(read_package_program(R"({"version": "1.0.0", "bin": {"pi": "./dist/cli.js", "other": "x"}})", "x", "pi").program ==
          "dist/cli.js");
    CHECK(read_package_program(R"({"version": "1.0.0", "bin": "cli.js"})", "x", "pi").program == "cli.js");
    for (const char *wrong : {R"({"version": "1.0.0"})", R"({"version": "1.0.0", "bin": {"pi": "../../bin/sh"}})", R"({"bin": "cli.js"})",
                              R"({"version": "1/0", "bin": "cli.js"})"})
        CHECK_THROWS_AS(read_package_program(wrong, "x", "pi"), Failure);
}

TEST_CASE("an order is read as it was written")
{
    FetchOrder order;
    order.registry = "https://a.example/";
    order.settings = {{"registry", "https://a.example/"}, {"proxy", "\"x\\"}};
    order.node = {"node", "1.0.0", zeros};
    order.lock = "{}\n";
    const auto read = read_fetch_order(write_fetch_order(order));
    CHECK(read.settings == order.settings);
    CHECK(read.node.integrity == zeros);
    CHECK(read.lock == order.lock);
    CHECK_THROWS_AS(read_fetch_order("{}"), Failure);
}

TEST_CASE("lines of the fetching program: what is no such line is none")
{
    FetchLine done;
    done.kind = FetchLine::Kind::done;
    done.version = "1.2.3";
    done.program = "node_modules/x/cli.js";
    const auto text = write_fetch_line(done);
    const auto read = read_fetch_line(std::string_view(text).substr(0, text.size() - 1));
    REQUIRE(read);
    CHECK(read->version == "1.2.3");
    CHECK(read->program == done.program);
    for (const char *wrong : {"", "done", "done\t1.2.3", "done\t../x\tcli.js", "done\t1.2.3\t../../bin/sh", "done\t1.2.3\t/bin/sh",
                              "size\t1", "size\t-1\t2", "size\ta\tb", "step\ta\tb", "other\tx"})
        CHECK_FALSE(read_fetch_line(wrong));
    FetchLine failure;
    failure.kind = FetchLine::Kind::failure;
    failure.text = "two\nlines\tand a tab";
    CHECK(write_fetch_line(failure) == "failure\ttwo lines and a tab\n");
}

} // namespace agents_test
