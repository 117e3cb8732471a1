// Files of variables that the policy names: runner/root/errand/errand.hpp
#include "runner/root/errand/errand.hpp"

#include "runner/as_user/reader.hpp"
#include "support/failure.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace env_files_test {

namespace {

std::string texts(const HostVariables &variables)
{
    std::string all;
    for (const auto &assignment : variables.assignments)
        all += assignment.name + "=" + assignment.value + ";";
    for (const auto &notice : variables.notices)
        all += notice + ";";
    return all;
}

} // namespace

TEST_CASE("the user's files are read in their order, relative to the home or absolute, and missing ones are none")
{
    const TemporaryDirectory home;
    home.write("one", "A=1\nB=1\n");
    home.write("two", "B=2\n");
    CHECK(texts(read_host_env_files(UserPaths({}), {"one", "missing", "one/below", home / "two"}, home.path())) == "A=1;B=1;B=2;");
    CHECK(texts(read_host_env_files(UserPaths({}), {}, home.path())).empty());
}

TEST_CASE("names that are not the user's are left out and named with file and line, without the value")
{
    const TemporaryDirectory home;
    home.write("env", "PATH=secret\nHOME=secret\nLD_PRELOAD=secret\nPI_CODING_AGENT_DIR=secret\nNODE_OPTIONS=secret\nnpm_config_"
                      "globalconfig=secret\nOK=1\n");
    const HostVariables variables = read_host_env_files(UserPaths({}), {"env"}, home.path());
    REQUIRE(variables.assignments.size() == 1);
    REQUIRE(variables.notices.size() == 6);
    CHECK(variables.notices[0] == (home / "env") + ":1: PATH is left out: it is set by pi-agent itself");
    CHECK(has(variables.notices[2], ":3: LD_PRELOAD is left out: it changes programs before they begin"));
    CHECK(has(variables.notices[4],
              ":5: NODE_OPTIONS is left out: it changes programs before they begin, and is the administrator's to set"));
    CHECK_FALSE(has(texts(variables), "secret"));
}

TEST_CASE("what is no file, is too large or is not in the syntax is an error that names it")
{
    const TemporaryDirectory home;
    home.make("directory");
    REQUIRE(mkfifo((home / "fifo").c_str(), 0600) == 0);
    std::filesystem::create_symlink("/nowhere", home / "dangling");
    home.write("large", std::string(env_file_limit + 1, '#'));
    home.write("odd", "A=1\noops\n");
    for (const char *name : {"directory", "fifo", "dangling", "large", "odd"}) {
        const Caught caught = failure_of([&] { return read_host_env_files(UserPaths({}), {name}, home.path()); });
        CHECK_MESSAGE(caught.status == 78, name);
        CHECK_MESSAGE(has(caught.text, home / name), caught.text);
    }
    CHECK(has(failure_of([&] { return read_host_env_files(UserPaths({}), {"odd"}, home.path()); }).text, "odd:2: this line has no '='"));
}

} // namespace env_files_test
