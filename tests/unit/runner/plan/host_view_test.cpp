// What sessions see of the host: runner/plan/host_view.hpp
#include "runner/plan/host_view.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace host_view_test {

TEST_CASE("of /etc the minimal view shows certificates and what programs keep there, and nothing of accounts, services or keys")
{
    const HostView view;
    for (const char *path : {"/usr/bin/env", "/opt", "/nix/store/x", "/lib64/ld.so", "/etc/ssl", "/etc/ssl/certs/a.pem",
                             "/var/lib/dpkg/status", "/var/lib/texmf/ls-R", "/etc/alternatives/pager", "/etc/java-17-openjdk/security",
                             "/etc/python3.11", "/etc/php/8.4/cli/php.ini", "/etc/php/8.4/mods-available"})
        CHECK_MESSAGE(is_shown(view, path), path);
    for (const char *path : {"/",
                             "/etc",
                             "/etc/passwd",
                             "/etc/shadow",
                             "/etc/sudoers.d/pi-agent",
                             "/etc/ssh/sshd_config",
                             "/etc/sslx",
                             "/usrx",
                             "/nix",
                             "/nix/var/nix/daemon-socket",
                             "/var/lib/apt",
                             "/etc/php",
                             "/etc/php/8.4",
                             "/etc/php/8.4/fpm/pool.d/www.conf",
                             "/etc/php/8.4/client",
                             "/etc/java",
                             "/srv",
                             "/home/alice",
                             "/run",
                             "/boot",
                             "/data"})
        CHECK_MESSAGE(!is_shown(view, path), path);
}

TEST_CASE("a directory of /etc that only leads to what is shown is a way to it")
{
    CHECK(shown_of_etc("php") == ShownOfEtc::way);
    CHECK(shown_of_etc("php/8.4") == ShownOfEtc::way);
    CHECK(shown_of_etc("php/8.4/cli") == ShownOfEtc::whole);
    CHECK(shown_of_etc("php/8.4/cli/conf.d") == ShownOfEtc::whole);
    CHECK(shown_of_etc("php/8.4/fpm") == ShownOfEtc::nothing);
    CHECK(shown_of_etc("php.d") == ShownOfEtc::whole);
    CHECK(shown_of_etc("ssh") == ShownOfEtc::nothing);
}

TEST_CASE("the host's view shows all of /etc and nothing else more")
{
    HostView view;
    view.view = View::host;
    CHECK(is_shown(view, "/etc/ssh/sshd_config"));
    CHECK(!is_shown(view, "/nix/var/nix/daemon-socket"));
    CHECK(!is_shown(view, "/var"));
}

TEST_CASE("what is shown besides is shown with all below it")
{
    HostView view;
    view.trees = {"/srv/tools"};
    CHECK(is_shown(view, "/srv/tools"));
    CHECK(is_shown(view, "/srv/tools/bin/x"));
    CHECK(!is_shown(view, "/srv/tools2"));
    CHECK(!is_shown(view, "/srv"));
}

TEST_CASE("a program is shown with the tree that it was installed in, and never with a top-level directory")
{
    CHECK(tree_of_program("/srv/pi/bin/pi") == "/srv/pi");
    CHECK(tree_of_program("/data/agents/pi-1.5/lib/node_modules/pi/dist/cli.js") == "/data/agents/pi-1.5/lib");
    CHECK(tree_of_program("/data/lib/node_modules/a/node_modules/b/cli.js") == "/data/lib");
    CHECK(tree_of_program("/srv/node_modules/pi/cli.js") == "/srv/node_modules");
    CHECK(tree_of_program("/srv/bin/pi") == "/srv/bin");
    CHECK(tree_of_program("/srv/pi") == "/srv/pi");
    CHECK(tree_of_program("/data/agents/node/pi") == "/data/agents/node");
}

TEST_CASE("a script's interpreter is what follows #!, up to its argument")
{
    CHECK(interpreter_of("#!/usr/bin/env node\n") == "/usr/bin/env");
    CHECK(interpreter_of("#! \t/srv/node/bin/node --flag\n#!/x") == "/srv/node/bin/node");
    CHECK(interpreter_of("#!/bin/sh") == "/bin/sh");
    for (const char *other : {"", "#", "#!", "#!\n", "#! \n/bin/sh", "#!node\n",
                              "\x7f"
                              "ELF",
                              "/bin/sh"})
        CHECK_MESSAGE(interpreter_of(other).empty(), other);
}

} // namespace host_view_test
