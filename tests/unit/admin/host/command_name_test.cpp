// The other name of the command: admin/host/host_things.hpp
#include "admin/host/host_things.hpp"

#include "common/base/files.hpp"
#include "support/accounts.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"
#include "support/policy_text.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sstream>

namespace command_name_test {

using namespace pi_agent;
using namespace pi_agent::test;

namespace {

// A host in a directory, with what the package installs.
struct Host {
    TemporaryDirectory directory{"/srv"};
    AsRoot root = AsRoot::claim();
    CommandPlaces places{directory / "bin/pi", directory / "share", directory / "command"};
    std::ostringstream out;

    Host()
    {
        set_mode(directory.path(), 0755);
        for (const char *name : {"bin", "share/bash-completion/completions", "share/zsh/vendor-completions", "share/man/man1"})
            directory.make(name);
        for (const char *name :
             {"bin/pi", "share/bash-completion/completions/pi", "share/zsh/vendor-completions/_pi", "share/man/man1/pi.1.gz"})
            directory.write(name, "of the package");
    }
    void install(const std::string &name, bool dry_run = false)
    {
        Changes changes(dry_run, out);
        install_command(root, name, places, changes);
    }
    [[nodiscard]] std::string read(const std::string &name) const
    {
        const auto file = open_or_throw("opening", directory / name, O_RDONLY);
        return read_whole(file, 4096, name);
    }
    [[nodiscard]] bool exists(const std::string &name) const
    {
        return std::filesystem::exists(std::filesystem::symlink_status(directory / name));
    }
    [[nodiscard]] std::string problem_of(const std::string &name) const
    {
        Problems problems;
        check_command_name(parse("version: 1\nwrapper: {command_name: " + name + "}\nusers: {alice: {roots: [/srv/a]}}\n"), places,
                           problems);
        return problems.empty() ? std::string() : problems.all().front().problem;
    }
};

} // namespace

TEST_CASE("the name is a symlink to pi, and shells and the manual know it" * doctest::skip(not_root()))
{
    Host host;
    host.install("agent");
    CHECK(std::filesystem::read_symlink(host.directory / "bin/agent") == "pi");
    CHECK(has(host.read("share/bash-completion/completions/agent"), "\ncomplete -F _pi_of_pi_agent agent\n"));
    CHECK(host.read("share/zsh/vendor-completions/_agent").starts_with("#compdef agent\n"));
    CHECK(host.read("share/man/man1/agent.1") == ".so man1/pi.1\n");
    CHECK_FALSE(host.exists("share/fish")); // no directory of the package's there
    const std::string said = host.out.str();
    host.install("agent");
    CHECK_MESSAGE(host.out.str() == said, "a second time there is nothing to do");
}

TEST_CASE("another name replaces the former one, and pi itself stays" * doctest::skip(not_root()))
{
    Host host;
    host.install("agent");
    host.install("coder");
    CHECK(host.exists("bin/coder"));
    for (const char *name :
         {"bin/agent", "share/bash-completion/completions/agent", "share/zsh/vendor-completions/_agent", "share/man/man1/agent.1"})
        CHECK_FALSE_MESSAGE(host.exists(name), name);
    host.install("pi");
    CHECK_FALSE(host.exists("bin/coder"));
    CHECK_FALSE(host.exists("command"));
    CHECK(host.read("bin/pi") == "of the package");
}

TEST_CASE("what somebody else made under a name stays" * doctest::skip(not_root()))
{
    Host host;
    host.directory.write("bin/agent", "another program");
    CHECK(has(host.problem_of("agent"), "bin/agent exists already"));
    CHECK(host.problem_of("coder").empty());
    CHECK(host.problem_of("pi").empty());
    CHECK(has(failure_of([&] {
                  host.install("agent");
                  return 0;
              }).text,
              "exists already"));
    std::filesystem::remove(host.directory / "bin/agent");

    host.directory.write("share/man/man1/agent.1", "another page");
    host.install("agent");
    CHECK(host.read("share/man/man1/agent.1") == "another page");
    std::filesystem::remove(host.directory / "bin/agent");
    host.directory.write("bin/agent", "a package came later");
    host.install("pi");
    CHECK(host.read("bin/agent") == "a package came later");
    CHECK(host.read("share/man/man1/agent.1") == "another page");
    CHECK_FALSE(host.exists("share/bash-completion/completions/agent"));
}

TEST_CASE("the same symlink by the administrator's own hand is theirs" * doctest::skip(not_root()))
{
    Host host;
    host.directory.link("bin/agent", "pi");
    host.install("agent");
    CHECK_FALSE(host.exists("share/man/man1/agent.1"));
    host.install("coder");
    CHECK(host.exists("bin/agent"));
}

TEST_CASE("a run that is killed in the middle is finished by the next, and a dry run makes nothing" * doctest::skip(not_root()))
{
    Host host;
    host.install("agent", true);
    CHECK(has(host.out.str(), "would: make the command " + (host.directory / "bin/agent")));
    CHECK_FALSE(host.exists("bin/agent"));
    host.install("agent");
    std::filesystem::remove(host.directory / "share/man/man1/agent.1");
    host.install("agent");
    CHECK(host.exists("share/man/man1/agent.1"));
    Changes changes(false, host.out);
    remove_command(host.root, host.places, changes);
    CHECK_FALSE(host.exists("bin/agent"));
    CHECK_FALSE(host.exists("command"));
}

} // namespace command_name_test
