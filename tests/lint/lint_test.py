"""Feeds bad and good snippets to every house rule: a rule that cannot fire, or fires on good code, fails here."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import lint
import room_rules
import rooms
import rules
from sources import SourceFile, code_of, read_sources

PURPOSE = "// Says what this file is for, in a sentence.\n"

# For each dangerous thing: lines that must be found outside its home.
DANGEROUS = {
    "yaml-cpp": ["#include <yaml-cpp/yaml.h>", '  #  include "yaml-cpp/node/node.h"'],
    "sdbus-c++": ["#include <sdbus-c++/sdbus-c++.h>", "#include <systemd/sd-bus.h>"],
    "libseccomp": ["#include <seccomp.h>", "#include <linux/seccomp.h>"],
    "Landlock": ["syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);", "landlock_restrict_self(fd, 0);"],
    "bpf(2)": ["#include <linux/bpf.h>"],
    "changing identity": ["if (::setresuid(a, a, a) != 0) return;", "auto f = &setgroups;", "syscall(SYS_setuid, 0);", "seteuid(0);",
                          "setgid(0);", "setfsuid(0);", "initgroups(name, gid);", "setreuid(1, 1);", "setresgid(1, 1, 1);"],
    "capabilities": ["syscall(SYS_capset, &header, words.data());", "::capset(&header, &data);", "cap_set_proc(all);"],
    "mounting": ["umount2(path, MNT_DETACH);", "syscall(SYS_open_tree, fd);", "::move_mount(a);", "mount_setattr(fd);",
                 "syscall(__NR_fsopen, name, 0);", "umount(path);", "pivot_root(a, b);"],
    "mount(2)": ["mount(a, b, c, 0, nullptr);", "::mount (a);", "syscall(SYS_mount, a);", "chroot(path);", "x = ::mount(\n  a);"],
    "namespaces": ["setns(fd, 0);", "::unshare(CLONE_NEWUSER);"],
    "new processes": ["auto pid = fork();", "if (::fork() == 0) {}", "vfork();", "syscall(SYS_clone3, &a);", "posix_spawn(&pid);",
                      "clone(f, stack, 0, nullptr);"],
    "libcurl": ["#include <curl/curl.h>"],
    "libcrypto": ["#include <openssl/evp.h>", "#include <openssl/sha.h>"],
    "other programs": ["execve(path, argv, envp);", "::execv(path, argv);", "fexecve(fd, argv, envp);", "execlp(a, b);",
                       "syscall(SYS_execveat, fd);"],
}

FORBIDDEN = {
    "shell": ['system("ls");', "::system(text);", "std::system(text);", 'FILE *f = popen("ls", "r");'],
    "new headers": ["#include <format>", "#include <expected>", "#include <source_location>"],
    "silent skip": ['MESSAGE("skipped: no terminals");', "if (a) MESSAGE (text);"],
}

WORDS = {
    "unfinished": ["// TO" + "DO: later", "# FIX" + "ME"],
    "machine path": ["see /wo" + "rk/main", '"/wo' + 'rk/x"'],
    "registry host": ["https://regis" + "try.example.org/x", "from py" + "pi.org"],
}

REMEDIES = [
    'throw Failure(file + "; chmod 600 " + file);',
    'problems.add(where, "", "no", fmt::format("run: chown -h {} {}", user, path));',
    'say("the administrator runs: " "rm -r " + path);',
    'say("use /bin/mv {} away (sudo mv {} {}.old)");',
    'say("make it root\'s (chown root:root /etc/passwd)");',
    'say("sudo setfacl -b ~/.pi");',
    'say(R"(ln -sfn /etc/passwd x)");',
    'say(command_on("chmod 600", path, "or chmod 600 " + path));',
    'say(command_on("chmod 600 /etc/passwd", path, "no"));',
    'say("take it out: gpasswd -d {} {}"); say("crontab -r -u " + account);',
    'say("install -d /x");',
]
NO_REMEDIES = [
    'say(command_on("chmod 600", path, "let root alone read it"));',
    'say(command_on(std::string("chmod ") + rights, path, "no") + command_about(account, {"gpasswd", "-d", account, group}, "no"));',
    'run({"chmod", "600", path}); const char *names[] = {"chmod", "rm", "mount"};',
    '// chmod 600 /etc/passwd\nsay("a farm of links, from here to form");',
    'say("install the agent again"); say("kill the session"); say("mount what is needed");',
    'unit << "ExecStart=/usr/bin/mount --bind a b\\nExecStop=/usr/bin/umount b\\n";',
]

HARMLESS = [
    "// mount(2), setuid, fork() and #include <yaml-cpp/yaml.h> in a comment",
    "/* system(\n fork() */",
    'const char *text = "mount(a) \\" setresuid fork()";',
    'const char *raw = R"x(setuid " system( )x";',
    "session.fork(); tree->mount(path); roots::mount(path);",
    "const int mount = 1'000; const char quote = '\"'; const int fork_limit = 0;",
    "rule(SCMP_SYS(open_tree)); rule(SCMP_SYS(setuid));",
    "#include <sys/mount.h>\n#include <sys/syscall.h>",
    "void remount(); struct mount_attr attributes{}; bool is_setuid(); void prefork();",
    'CHECK_MESSAGE(a, "b"); REQUIRE_MESSAGE(a, b); CHECK_FALSE_MESSAGE(a, b);',
    "#include <fmt/format.h>\n#include \"common/expected_format.hpp\"",
]


def cpp(code, path="wrapper/sample.cpp"):
    return SourceFile(path, PURPOSE + code + "\n")


def names_of(findings):
    return {finding.rule for finding in findings}


def misplaced(files):
    """What is in a room that is not for it, or in its room outside of its file."""
    return [finding for finding in (*room_rules.check_powers(files), *lint.check_homes(files)) if finding.rule in ("room", "one-home")]


def each_file(file):
    return [finding for check in lint.EACH_FILE for finding in check(file)]


def clean_project():
    """{path: text} of a project that has all that the rules ask for, and nothing that they forbid."""
    files = {"meson.build": "", rooms.PAGE: "\n".join([rooms.HEADING, *rooms.table()])}
    files.update({f"{room.path}/clean.hpp": PURPOSE for room in rooms.ROOMS})
    files.update({path: PURPOSE + "\n".join(f"{call}();" for call in calls) + "\n" for path, (calls, _) in rules.SILENT_BUT.items()})
    for name, _, homes, _ in rules.HOMES:
        for home in homes:
            files[home] = files.get(home, PURPOSE) + DANGEROUS[name][0] + "\n"
    return files


class Homes(unittest.TestCase):
    def test_every_dangerous_thing_is_found_outside_its_home(self):
        self.assertEqual(set(DANGEROUS), {home[0] for home in rules.HOMES}, "each row of rules.HOMES needs samples here")
        for name, snippets in DANGEROUS.items():
            for snippet in snippets:
                with self.subTest(name=name, snippet=snippet):
                    found = misplaced([cpp(snippet)])
                    self.assertTrue(any(f" {name} belongs to" in finding.text for finding in found), found)
                    self.assertEqual(found[0].path, "wrapper/sample.cpp")
                    self.assertEqual(found[0].line, 2)

    def test_every_dangerous_thing_is_allowed_in_its_home_and_in_tests(self):
        for name, pattern, homes, _ in rules.HOMES:
            for path in (*homes, "tests/attack/sample.cpp"):
                with self.subTest(name=name, path=path):
                    found = [finding for finding in misplaced([cpp(DANGEROUS[name][0], path)]) if f" {name} belongs to" in finding.text]
                    self.assertEqual(found, [])

    def test_a_header_beside_the_home_is_not_the_home(self):
        self.assertTrue(misplaced([cpp("#include <yaml-cpp/yaml.h>", "common/policy/yaml/yaml_tree.hpp")]))

    def test_a_home_that_does_not_use_its_permission_is_found(self):
        everything = [cpp(DANGEROUS[name][0], home) for name, _, homes, _ in rules.HOMES for home in homes]
        merged = {}
        for file in everything:
            merged[file.path] = merged.get(file.path, PURPOSE) + file.text
        files = [SourceFile(path, text) for path, text in merged.items()]
        self.assertNotIn("stale-home", names_of(lint.check_homes(files)))
        self.assertIn("stale-home", names_of(lint.check_homes(files[1:])))

    def test_comments_strings_and_names_that_only_look_alike_are_left_alone(self):
        for snippet in HARMLESS:
            with self.subTest(snippet=snippet):
                self.assertEqual(misplaced([cpp(snippet)]), [])
                self.assertEqual(each_file(cpp(snippet)), [])


class NamedTests(unittest.TestCase):
    TESTS = (
        SourceFile("tests/attack/test_door.py", "def test_knocks(product):\n    pass\n\n@mark\ndef test_shared():\n    pass\n"),
        SourceFile("tests/system/test_door.py", "class Door:\n    def test_opens(self):\n        def helper(): pass\n"),
        SourceFile("tests/unit/runner/door_test.cpp", 'TEST_CASE("refuses \\"root\\" and all" * doctest::skip(true))\n'),
        SourceFile("tests/lint/test_door.py", "def test_elsewhere():\n    pass\n"),
    )

    def found(self, text, path="docs/page.md"):
        return list(lint.check_named_tests([*self.TESTS, SourceFile(path, text)]))

    def test_a_test_that_is_there_is_accepted(self):
        for text in ("`test_door::test_knocks`", "`test_door::test_opens`", "`attack/test_door::test_shared`", "`system/test_door::test_opens`",
                     "`test_door::test_knocks[twice or more]`", '`door_test::refuses \\"root\\" and all`',
                     '| a | `unit/door_test::refuses \\"root\\" and all`, `test_door::test_knocks` |'):
            self.assertEqual(self.found(text), [], text)

    def test_one_that_is_not_there_is_found_with_its_line(self):
        for text in ("`test_door::test_kno`", "`test_door::test_knocks_twice`", "`test_window::test_knocks`", "`system/test_door::test_knocks`",
                     "`attack/test_door::test_opens`", "`test_door::helper`", "`test_door::test_elsewhere`", "`door_test::refuses`",
                     "`unit/test_door::test_knocks`", "`test_gone::test_knocks[twice]`"):
            findings = self.found("one\n" + text)
            self.assertEqual([(finding.path, finding.line, finding.rule) for finding in findings], [("docs/page.md", 2, "named-test")], text)

    def test_each_of_several_on_a_line_is_looked_for(self):
        self.assertEqual(len(self.found("`test_door::test_a`, `test_door::test_knocks`, `test_door::test_b`")), 2)

    def test_what_names_no_test_and_what_is_no_page_is_left_alone(self):
        for text in ("127.0.0.0/8 and ::1", "`std::optional`", "`ext::x`", "`tests/attack/test_gone.py`"):
            self.assertEqual(self.found(text), [], text)
        self.assertEqual(self.found("`test_gone::test_gone`", "tests/attack/notes.md"), [])


class NamedSources(unittest.TestCase):
    def found(self, comment):
        files = [cpp("int door;", "runner/door.hpp"), cpp(f"int a; // {comment}", "runner/a.cpp")]
        return [(finding.path, finding.line, finding.rule) for finding in lint.check_named_sources(files)]

    def test_a_source_that_is_there_is_accepted(self):
        for comment in ("see runner/door.hpp", "see door.hpp", "made: test_seams.hpp", "libseccomp's <seccomp.hpp>", "no file"):
            self.assertEqual(self.found(comment), [], comment)

    def test_one_that_is_gone_is_found_and_the_file_itself(self):
        for comment in ("see runner/window.hpp", "see window.cpp", "wrapper/door.hpp", "runner/a.cpp says it"):
            self.assertEqual(self.found(comment), [("runner/a.cpp", 2, "named-source")], comment)


class Children(unittest.TestCase):
    CHILD = 'Child child(root, "a", user, {}, [&](const AsUser & /*self*/, FdRef channel) {\n    if (a) { b(); }\n%s\n});'
    OTHER = cpp('void serve(int a,\n           int b) noexcept\n{\n    if (a) { b(); }\n    fault_point("here");\n}\nvoid Other::look()\n{\n    fault_point("here");\n}', "runner/b.cpp")

    def found(self, code, path="runner/a.cpp"):
        return [(finding.path, finding.line, finding.rule) for finding in lint.check_children([self.OTHER, cpp("int a;\n" + self.CHILD % code, path)])]

    def test_a_child_with_a_point_is_accepted(self):
        for code in ('fault_point("here");', "serve(1, 2);"):
            self.assertEqual(self.found(code), [], code)

    def test_a_child_without_one_is_found(self):
        for code in ("work();", '// fault_point("here");', "other.serve(1, 2);", "look();", '}); fault_point("here"); call([&] {'):
            self.assertEqual(self.found(code), [("runner/a.cpp", 3, "fault-point")], code)
        self.assertEqual(self.found("work();", "admin/a.cpp"), [])
        self.assertEqual(self.found("work();", rules.HANDS_TASKS_ON), [])

    def test_a_task_with_one_answer_needs_one_too(self):
        task = 'const auto answer = ask<Done>(root, {"a", user}, [&](const AsUser & /*user*/) {\n    %s\n});'
        for code, finds in (('fault_point("here");', 0), ("serve(1, 2);", 0), ("work();", 1)):
            self.assertEqual(len(list(lint.check_children([self.OTHER, cpp(task % code, "runner/a.cpp")]))), finds, code)


class Links(unittest.TestCase):
    OTHERS = [SourceFile("docs/other.md", "# The other\n\n## What it `can`, and how\n"), SourceFile("docs/picture.svg", "<svg/>")]

    def found(self, text, path="docs/page.md"):
        return [finding.rule for finding in lint.check_links([*self.OTHERS, SourceFile(path, text)])]

    def test_links_that_lead_somewhere_are_accepted(self):
        for text in ("[a](other.md)", "![a](picture.svg)", "[a](../docs/other.md#the-other)", "[a](other.md#what-it-can-and-how)", "[a](../docs)",
                     "# Here\n[a](#here)", "[a](https://example.org/gone)", "f[a](b, c)"):
            self.assertEqual(self.found(text), [], text)
        self.assertEqual(self.found("[a](docs/other.md)", "README.md"), [])

    def test_dead_links_are_found(self):
        for text in ("[a](gone.md)", "[a](docs/other.md)", "[a](other.md#gone)", "[a](#gone)", "![a](gone.svg)", "[a](../../docs/other.md)"):
            self.assertEqual(self.found(text), ["dead-link"], text)


class PackagedLinks(unittest.TestCase):
    OTHERS = [
        SourceFile("debian/docs", "README.md\ndocs\n"),
        SourceFile("debian/examples", "policy-examples/*\n"),
        SourceFile("debian/rules", "override_dh_installdocs:\n\tdh_installdocs -Xdocs/decisions -Xdocs/bench\n\noverride_dh_compress:\n\tdh_compress -X.md\n"),
    ]

    def found(self, text, path="docs/page.md"):
        return [(finding.line, finding.rule) for finding in lint.check_packaged_links([*self.OTHERS, SourceFile(path, text)])]

    def test_links_within_the_package_are_accepted(self):
        for text in ("[a](other.md)", "[a](concepts/other.md#what)", "[a](../README.md)", "[a](../docs)", "[a](#here)", "[a](../policy-examples/x.yaml)",
                     "[a](../policy-examples)", "[a](https://example.org/docs/decisions)"):
            self.assertEqual(self.found(text), [], text)

    def test_links_to_what_the_package_lacks_are_found(self):
        for text in ("[a](decisions/0001-rooms.md)", "[a](decisions)", "[a](benchmarks.md#what)", "[a](../CONTRIBUTING.md)", "[a](../tests/lint/lint.py)"):
            self.assertEqual(self.found(f"first\n{text}"), [(2, "unpackaged-link")], text)
        self.assertEqual(self.found("[a](docs/decisions/)", "README.md"), [(1, "unpackaged-link")])

    def test_what_is_not_in_the_package_links_as_it_likes(self):
        for path in ("docs/decisions/0001-rooms.md", "docs/benchmarks.md", "CONTRIBUTING.md"):
            self.assertEqual(self.found("[a](../tests/lint/lint.py) [b](benchmarks.md)", path), [], path)


class EachFile(unittest.TestCase):
    def test_forbidden_code_is_found_in_product_and_tests(self):
        self.assertEqual(set(FORBIDDEN), {row[0] for row in rules.FORBIDDEN_IN_CPP})
        for name, snippets in FORBIDDEN.items():
            for snippet in snippets:
                for path in ("runner/sample.cpp", "tests/unit/sample.cpp"):
                    with self.subTest(snippet=snippet, path=path):
                        self.assertEqual(names_of(each_file(cpp(snippet, path))), {name.replace(" ", "-")})

    def test_a_command_in_a_message_is_found_unless_the_one_place_decides_on_it(self):
        for snippet in REMEDIES:
            with self.subTest(snippet=snippet):
                self.assertEqual(names_of(each_file(cpp(snippet))), {"remedy"})
                self.assertEqual(each_file(cpp(snippet, "tests/unit/sample.cpp")), [])
        for snippet in NO_REMEDIES:
            with self.subTest(snippet=snippet):
                self.assertEqual(each_file(cpp(snippet)), [])

    def test_forbidden_words_are_found_in_code_and_documents(self):
        self.assertEqual(set(WORDS), {row[0] for row in rules.FORBIDDEN_WORDS})
        for name, snippets in WORDS.items():
            for snippet in snippets:
                for file in (SourceFile("docs/page.md", snippet), SourceFile("meson.build", snippet)):
                    with self.subTest(snippet=snippet, path=file.path):
                        self.assertEqual(names_of(each_file(file)), {name.replace(" ", "-")})

    def test_words_that_only_look_alike_are_left_alone(self):
        for text in ("home/wo" + "rk/x", "~/.cargo/registry", "todo list", "the registry. Then", "registry.find(x)"):
            self.assertEqual(each_file(SourceFile("docs/page.md", text)), [], text)

    def test_a_source_without_a_purpose_is_found(self):
        for path, text in (("common/a.cpp", "#pragma once\n"), ("common/a.hpp", "// utils\n"), ("common/a.cpp", "\n" + PURPOSE), ("common/a.cpp", ""),
                           ("tests/a.py", "import os\n"), ("tests/a.py", "#!/usr/bin/env python3\nimport os\n"),
                           ("tests/a.sh", "#!/bin/sh\nset -e\n"), ("try", "#!/bin/bash\nset -e\n"), ("nix/a.nix", "{ }\n")):
            with self.subTest(path=path, text=text):
                self.assertEqual(names_of(each_file(SourceFile(path, text))), {"purpose"})

    def test_a_source_with_a_purpose_is_accepted(self):
        for path, text in (("common/a.hpp", PURPOSE), ("tests/a.py", '"""Says what this file is for."""\n'),
                           ("tests/a.py", '#!/usr/bin/env python3\n"""\nSays what this file is for.\n"""\n'),
                           ("try", "#!/bin/sh\n# Says what this file is for.\n"), ("nix/a-b.nix", "# Says what this file is for.\n{ }\n"), ("docs/a.md", "x"), ("a.txt", "#!/usr/bin/awk\n")):
            with self.subTest(path=path, text=text):
                self.assertEqual(each_file(SourceFile(path, text)), [])

    def test_a_file_may_have_its_limit_of_lines_and_not_one_more(self):
        for directory, limit in (("common", rules.MAX_LINES), ("tests/unit", rules.MAX_LINES_TESTS)):
            fits = SourceFile(f"{directory}/a.cpp", PURPOSE + "int a;\n" * (limit - 1))
            too_long = SourceFile(f"{directory}/a.cpp", fits.text + "int b;\n")
            self.assertEqual(each_file(fits), [])
            self.assertEqual(names_of(each_file(too_long)), {"length"})

    def test_a_name_that_is_not_snake_case_is_found(self):
        for name in ("RootPath.cpp", "root-path.hpp", "rootPath.py", "root path.sh"):
            text = PURPOSE if name.endswith("pp") else "# Says what this file is for.\n"
            self.assertEqual(names_of(each_file(SourceFile(f"common/{name}", text))), {"file-name"}, name)
        self.assertEqual(each_file(SourceFile("tests/machine/start-it", "#!/bin/sh\n# Says what this file is for.\n")), [])

    def test_bytes_that_are_not_utf_8_are_found(self):
        self.assertEqual(names_of(each_file(cpp("// \ufffd"))), {"encoding"})


class Sources(unittest.TestCase):
    def test_blanking_keeps_every_line_where_it_was(self):
        text = 'int a; /* x\n y */ int b; // z\nauto s = "q";\nauto r = R"(\n)";\n'
        self.assertEqual([len(line) for line in code_of(text).split("\n")], [len(line) for line in text.split("\n")])
        self.assertIn("int b;", code_of(text))
        self.assertNotIn("q", code_of(text))

    def test_build_directories_hidden_directories_and_binary_files_are_not_read(self):
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            for path in ("common/a.cpp", "build/meson-private/x", "build/b.cpp", ".git/c.cpp", ".ci/run", "tests/__pycache__/d.py"):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text("x")
            (root / "image").write_bytes(b"\0\1")
            self.assertEqual([file.path for file in read_sources(root)], [".ci/run", "common/a.cpp"])


class Program(unittest.TestCase):
    def run_lint(self, files):
        with tempfile.TemporaryDirectory() as name:
            for path, text in files.items():
                (Path(name) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(name) / path).write_text(text)
            script = Path(__file__).with_name("lint.py")
            return subprocess.run([sys.executable, "-B", script, name], capture_output=True, text=True, check=False)

    def test_a_finding_is_named_with_file_and_line_and_fails(self):
        outcome = self.run_lint({"meson.build": "", "wrapper/a.cpp": PURPOSE + 'int x = system("ls");\n'})
        self.assertEqual(outcome.returncode, 1)
        self.assertIn("wrapper/a.cpp:2: [shell]", outcome.stdout)

    def test_a_page_that_names_a_test_that_is_gone_fails(self):
        files = {"meson.build": "", "docs/page.md": "`test_door::test_knocks`\n", "tests/attack/test_door.py": '"""Tries the door, in every way."""\n'}
        files["tests/unit/a_test.cpp"] = PURPOSE
        outcome = self.run_lint(files)
        self.assertEqual(outcome.returncode, 1)
        self.assertIn("docs/page.md:1: [named-test]", outcome.stdout)

    def test_a_clean_project_passes(self):
        outcome = self.run_lint(clean_project())
        self.assertEqual((outcome.returncode, outcome.stderr), (0, ""), outcome.stdout)

    def test_an_empty_project_does_not_pass(self):
        self.assertEqual(self.run_lint({"meson.build": ""}).returncode, 1)
        self.assertEqual(self.run_lint({"other": ""}).returncode, 64)


class Shell(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as name:
            for path, text in {"meson.build": "", **files}.items():
                (Path(name) / path).write_text(text)
            script = Path(__file__).with_name("shell_check.py")
            return subprocess.run([sys.executable, "-B", script, name], capture_output=True, text=True, check=False)

    @unittest.skipUnless(shutil.which("shellcheck"), "shellcheck is not installed")
    def test_each_kind_of_shell_file_is_checked(self):
        for name, first in (("a.sh", "# shellcheck shell=bash"), ("command", "#!/bin/sh"), (".profile", "# shellcheck shell=sh")):
            self.assertEqual(self.check({name: f'{first}\necho "$1"\n'}).returncode, 0, name)
            outcome = self.check({name: f"{first}\necho $1\n"})
            self.assertEqual(outcome.returncode, 1, name)
            self.assertIn(f"In {name} line 2:", outcome.stdout)

    @unittest.skipUnless(shutil.which("shellcheck"), "shellcheck is not installed")
    def test_no_shell_file_is_no_pass(self):
        self.assertEqual(self.check({}).returncode, 1)


if __name__ == "__main__":
    unittest.main()
