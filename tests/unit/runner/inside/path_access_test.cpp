// What may be done with a path, and its way out of a session: runner/inside/canary.hpp
#include "runner/inside/canary.hpp"

#include "runner/wire/user_files.hpp"
#include "support/failure.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace path_access_test {

TEST_CASE("what is there, and what is not")
{
    const TemporaryDirectory directory;
    const std::string file = directory.path() + "/file";
    std::ofstream(file) << "x";
    REQUIRE(chmod(file.c_str(), 0700) == 0);
    const PathAccess found = look_at_path(file);
    CHECK((found.exists && found.read && found.write && found.execute && !found.read_only));
    const PathAccess missing = look_at_path(directory.path() + "/no/such");
    CHECK((!missing.exists && !missing.read && !missing.write));
    CHECK(missing.mount == found.mount);
    REQUIRE(symlink("nowhere", (directory.path() + "/link").c_str()) == 0);
    CHECK(look_at_path(directory.path() + "/link").exists);
    CHECK(look_at_path("/").mount == "/");
    CHECK(found.leads_to.empty());
    CHECK(missing.leads_to.empty());
    const std::string top = std::filesystem::canonical(directory.path());
    CHECK(look_at_path(top + "/link").leads_to == top + "/nowhere");
    REQUIRE(symlink("link/deep", (directory.path() + "/two").c_str()) == 0);
    REQUIRE(symlink("two", (directory.path() + "/three").c_str()) == 0);
    CHECK(look_at_path(top + "/three/file").leads_to == top + "/nowhere/deep/file");
    REQUIRE(symlink("round", (directory.path() + "/round").c_str()) == 0);
    CHECK(look_at_path(top + "/round").leads_to.empty());
    CHECK(look_at_path("/proc/self").mount == "/proc");
}

TEST_CASE("answers come back as they were sent, and nothing else is one")
{
    const auto answers = decode_path_access(encode({look_at_path("/"), {true, false, true, false, true, "/a b\n"}, {}}));
    REQUIRE(answers.size() == 3);
    CHECK((answers[0].exists && answers[0].execute));
    CHECK((answers[1].exists && !answers[1].read && answers[1].write && !answers[1].execute && answers[1].read_only));
    CHECK(answers[1].mount == "/a b\n");
    CHECK(!answers[2].exists);
    CHECK(decode_path_access(encode({{true, false, false, false, false, "/", "/x"}}))[0].leads_to == "/x");
    for (const char *text : {"", "[]", "{}", "{\"paths\": [{}]}", "{\"paths\": [{\"exists\": 1}]}"})
        CHECK_MESSAGE(failure_of([&] { return decode_path_access(text).size(); }).status == 69, text);
}

TEST_CASE("a child tells of so many unchanged files of /etc, and of no more")
{
    UnchangedFiles found{std::vector<std::string>(UnchangedFiles::unchanged_files_limit, "x")};
    CHECK(decode_fields<UnchangedFiles>(encode(found)).paths == found.paths);
    found.paths.emplace_back("x");
    CHECK(has(failure_of([&] { return decode_fields<UnchangedFiles>(encode(found)).paths; }).text, "more entries"));
}

} // namespace path_access_test
