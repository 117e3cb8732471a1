"""Plants in each room what must not be there, beside a clean variant: a rule of the rooms that cannot fire fails here."""

import contextlib
import io
import posixpath
import tempfile
import unittest
from pathlib import Path

import floors
import lint
import room_rules
import rooms
import rules
from lint_test import DANGEROUS, PURPOSE, clean_project, cpp
from sources import SourceFile


def said_by(check, *files):
    return [(finding.path, finding.line, finding.rule) for finding in check(list(files))]


def page(rows=None, heading=rooms.HEADING):
    table = rows if rows is not None else rooms.table()
    return SourceFile(rooms.PAGE, "\n".join(["# Architecture", "", heading, "", *table, "", "| other | table |", "| --- | --- |", ""]))


def header(path):
    return cpp("int a;", path)


class Data(unittest.TestCase):
    def test_the_rooms_that_may_are_those_that_have_a_file_for_it(self):
        for name, _, homes, _ in rules.HOMES:
            self.assertEqual({room.path for room in rooms.ROOMS if name in room.powers}, {home.rpartition("/")[0] for home in homes}, name)
        known = {row[0] for row in rules.HOMES}
        self.assertEqual([room.path for room in rooms.ROOMS if set(room.powers) - known], [])

    def test_each_folder_is_one_room_and_fits_a_cell_of_the_table(self):
        self.assertEqual(len(rooms.rooms_by_path()), len(rooms.ROOMS))
        for room in rooms.ROOMS:
            self.assertTrue(room.whom and room.may and room.why and room.included_by)
            self.assertNotIn("|", "".join(rooms.row_of(room)))

    def test_what_makes_no_system_call_is_what_decides_speaks_and_filters(self):
        self.assertEqual({room.path for room in rooms.ROOMS if room.silent}, {"runner/plan", "runner/wire", "runner/filter"})

    def test_who_is_root(self):
        for path in ("runner/pi_agent_runner.cpp", "runner/root/view/a.cpp", "admin/main.cpp", "admin/state/a.hpp"):
            self.assertTrue(rooms.is_root(path), path)
        for path in ("runner/pi_agent_exec.cpp", "runner/as_user/a.cpp", "runner/as_agent/a.cpp", "runner/inside/a.cpp", "runner/plan/a.cpp",
                     "wrapper/a.cpp", "common/host/a.cpp", "runner/rooted/a.cpp", "other/a.cpp"):
            self.assertFalse(rooms.is_root(path), path)
        self.assertFalse(rooms.Room("runner/rooted", "a", "b", "c", rooms.ALL).is_root)


class Places(unittest.TestCase):
    FILES = tuple(cpp("int a;", f"{room.path}/a.cpp") for room in rooms.ROOMS)

    def test_a_source_in_each_room_is_accepted(self):
        self.assertEqual(said_by(room_rules.check_rooms, *self.FILES, cpp("int a;", "tests/unit/other/a.cpp")), [])

    def test_a_source_in_a_folder_that_is_no_room_is_found(self):
        for path in ("runner/root/a.cpp", "runner/attic/a.cpp", "common/a.hpp", "runner/root/view/deep/a.cpp"):
            self.assertEqual(said_by(room_rules.check_rooms, *self.FILES, cpp("int a;", path)), [(path, 1, "room")])

    def test_a_room_without_a_source_is_found(self):
        self.assertEqual(said_by(room_rules.check_rooms, *self.FILES[1:]), [("tests/lint/rooms.py", 1, "stale-room")])


class Powers(unittest.TestCase):
    def test_a_mount_in_plan_is_found_and_told_by_the_room(self):
        for code in ("::mount(a, b, c, 0, nullptr);", "umount2(path, 0);", "syscall(SYS_move_mount, a);"):
            found = [finding for finding in room_rules.check_powers([cpp(code, "runner/plan/a.cpp")])]
            self.assertEqual([(finding.path, finding.line, finding.rule) for finding in found], [("runner/plan/a.cpp", 2, "room")], code)
            self.assertIn("runner/plan/ runs as nobody and makes no system call: ", found[0].text)
            self.assertIn("belongs to runner/root/mount/ (", found[0].text)
            self.assertEqual(said_by(room_rules.check_powers, cpp(code, "runner/root/mount/mounts.cpp")), [])
        self.assertEqual(said_by(room_rules.check_powers, cpp("// mount(a)\nint mount = 0;", "runner/plan/a.cpp")), [])

    def test_a_fork_in_wire_is_found(self):
        self.assertEqual(said_by(room_rules.check_powers, cpp("if (fork() == 0) {}", "runner/wire/a.cpp")), [("runner/wire/a.cpp", 2, "room")])
        self.assertEqual(said_by(room_rules.check_powers, cpp("if (fork() == 0) {}", "runner/root/errand/child.cpp")), [])
        self.assertEqual(said_by(room_rules.check_powers, cpp("bool forked(); // fork()", "runner/wire/a.cpp")), [])

    def test_each_dangerous_thing_is_found_in_each_room_that_is_not_for_it(self):
        for name, snippets in DANGEROUS.items():
            for room in rooms.ROOMS:
                for snippet in snippets:
                    file = cpp(snippet, f"{room.path}/other.cpp")
                    by_room = [finding for finding in room_rules.check_powers([file]) if f"; {name} belongs to" in finding.text]
                    by_file = [finding for finding in lint.check_homes([file]) if f": {name} belongs to" in finding.text]
                    self.assertEqual((len(by_room), len(by_file)), (0, 1) if name in room.powers else (1, 0), (name, room.path, snippet))

    def test_tests_may_do_what_an_attacker_does(self):
        self.assertEqual(said_by(room_rules.check_powers, cpp("fork();", "tests/unit/runner/plan/a.cpp")), [])


class Silence(unittest.TestCase):
    CALLS = ("x = ::open(path, flags);", "openat(fd, path, 0);", "if (stat(path, &facts) != 0) {}", "read (fd, a, 1);", "auto f = &::unlinkat;", "std::getenv(name);",
             "syscall(number);", "x = SYS_openat2;", "getuid();", "getpwnam_r(a);", "std::ifstream file(path);", "std::filesystem::exists(path);", "::send(fd, a, 1, 0);",
             "kill(pid, 0);", "epoll_wait(a);", "prctl(A);", "std::chrono::steady_clock::now();", "std::cout << a;", "fmt::print(a);", "ioctl(fd, A);", "mkdirat(fd, a, 0);")
    HARMLESS = ("file.read(a);", "this->open(a);", "other::open(a);", "// open(a)", 'say("open(a)");', "int stat = 0;", "bool is_open(); void reopen(int a);",
                "std::remove(a.begin(), a.end(), b);", "std::getline(text, line);", "std::snprintf(a, 1, b);", "fmt::format(a);", "rule(SCMP_SYS(openat));",
                "#include <sys/stat.h>\n#include <unistd.h>", "std::chrono::seconds patience(1);", "uid_t uid = 0; S_ISREG(mode);")

    def found(self, code, path):
        exceptions = [cpp(" ".join(f"{call}();" for call in calls), name) for name, (calls, _) in rules.SILENT_BUT.items() if name != path]
        return said_by(room_rules.check_silence, *exceptions, cpp(code, path))

    def test_a_system_call_is_found_where_none_is_made(self):
        for path in ("runner/plan/a.cpp", "runner/wire/a.hpp", "runner/filter/a.cpp"):
            for code in self.CALLS:
                self.assertEqual(set(self.found(code, path)), {(path, 2, "system-call")}, code)
            for code in self.HARMLESS:
                self.assertEqual(self.found(code, path), [], code)

    def test_elsewhere_it_is_accepted(self):
        for path in ("runner/root/session/a.cpp", "runner/as_user/a.cpp", "common/host/a.cpp", "tests/unit/runner/plan/a.cpp"):
            for code in self.CALLS:
                self.assertEqual(self.found(code, path), [], code)

    def test_what_makes_them_for_others_is_found_as_an_include(self):
        for target in ("common/host/beneath.hpp", "common/as_user/user_paths.hpp", "common/record/record_event.hpp", "common/base/files.hpp", "common/policy/policy_load.hpp"):
            for path, rule in (("runner/plan/a.cpp", "system-call"), ("runner/wire/a.hpp", "system-call"), ("runner/as_user/a.cpp", None)):
                found = said_by(floors.check_calls_behind, cpp(f'#include "{target}"', path))
                self.assertEqual(found, [(path, 2, rule)] if rule else [], (target, path))
        for target in ("common/host/account.hpp", "common/base/text.hpp", "common/base/channel.hpp", "common/policy/policy.hpp", "runner/wire/answer.hpp"):
            self.assertEqual(said_by(floors.check_calls_behind, cpp(f'#include "{target}"', "runner/plan/a.cpp")), [], target)

    def test_an_exception_is_for_its_calls_alone_and_is_needed(self):
        stale = ("tests/lint/rules.py", 1, "stale-exception")
        for path, (calls, _) in rules.SILENT_BUT.items():
            code = " ".join(f"{call}(a);" for call in calls)
            self.assertEqual(self.found(code, path), [])
            self.assertEqual(self.found(code + " openat(fd, a, 0);", path), [(path, 2, "system-call")])
            self.assertEqual(self.found(code.split(" ", 1)[1], path), [stale])
        self.assertEqual(said_by(room_rules.check_silence), [stale] * len(rules.SILENT_BUT))


class RootsType(unittest.TestCase):
    CODE = "void mend(const AsRoot &root);"

    def test_it_is_found_where_code_is_not_root(self):
        for path in ("runner/as_user/a.hpp", "runner/as_agent/a.cpp", "runner/inside/a.cpp", "runner/plan/a.cpp", "runner/wire/a.cpp", "wrapper/a.cpp",
                     "common/decide/a.cpp", "runner/pi_agent_exec.cpp"):
            self.assertEqual(said_by(room_rules.check_as_root, cpp(self.CODE, path)), [(path, 2, "as-root")])
            self.assertEqual(said_by(room_rules.check_as_root, cpp("// AsRoot\nAsUser user; AsRootless other;", path)), [])

    def test_it_is_accepted_where_code_is_root_or_makes_it(self):
        for path in ("runner/root/session/a.hpp", "runner/pi_agent_runner.cpp", "admin/apply/a.cpp", "common/host/identity.hpp", "tests/unit/a.cpp"):
            self.assertEqual(said_by(room_rules.check_as_root, cpp(self.CODE, path)), [])


class Arrows(unittest.TestCase):
    HEADERS = tuple(header(f"{room.path}/{room.path.rpartition('/')[2]}.hpp") for room in rooms.ROOMS)

    def found(self, path, *targets):
        code = "\n".join(target if "#" in target else f'#include "{target}"' for target in targets)
        return [(finding.line, finding.text) for finding in floors.check_arrows([*self.HEADERS, cpp(code, path)])]

    def test_an_include_of_roots_where_code_is_not_root_is_found(self):
        for path in ("runner/as_user/a.cpp", "runner/as_agent/a.hpp", "runner/inside/a.cpp", "runner/plan/a.cpp", "wrapper/a.cpp", "common/host/a.cpp",
                     "runner/pi_agent_canary.cpp"):
            beside = posixpath.relpath("runner/root/view/view.hpp", posixpath.dirname(path))
            for target in ("runner/root/view/view.hpp", "runner/root/session/session.hpp", "runner/plan/../root/view/view.hpp", beside,
                           "#include <runner/root/view/view.hpp>", '  #  include "runner/root/view/gone.hpp"'):
                found = self.found(path, target)
                self.assertEqual([line for line, _ in found], [2], (path, target))
                self.assertIn("includes nothing of root's", found[0][1])
        self.assertEqual(self.found("runner/as_user/a.cpp", "runner/wire/wire.hpp", "runner/as_user/as_user.hpp", '// #include "runner/root/view/view.hpp"'), [])
        self.assertEqual(self.found("runner/root/launch/a.cpp", "runner/root/view/view.hpp"), [])
        self.assertEqual(self.found("tests/unit/runner/as_user/a.cpp", "runner/root/view/view.hpp"), [])

    def test_an_include_that_runs_up_is_found(self):
        for path, target in (("runner/root/session/a.cpp", "runner/root/view/view.hpp"), ("runner/plan/a.cpp", "runner/as_user/as_user.hpp"),
                             ("common/base/a.cpp", "common/policy/policy.hpp"), ("admin/text/a.cpp", "admin/apply/apply.hpp"), ("runner/as_agent/a.cpp", "runner/as_user/as_user.hpp")):
            found = self.found(path, "common/seams/seams.hpp", target)
            self.assertEqual([line for line, _ in found], [3], (path, target))
            self.assertIn("includes run down only", found[0][1])
        self.assertEqual(self.found("runner/root/view/a.cpp", "runner/root/session/session.hpp", "runner/plan/plan.hpp"), [])

    def test_a_room_lets_in_whom_the_table_names(self):
        for path, target in (("wrapper/a.cpp", "runner/plan/plan.hpp"), ("wrapper/a.cpp", "admin/text/text.hpp"), ("runner/pi_agent_runner.cpp", "admin/state/state.hpp"),
                             ("admin/main.cpp", "wrapper/wrapper.hpp"), ("admin/apply/a.cpp", "admin/admin.hpp")):
            self.assertEqual([line for line, _ in self.found(path, target)], [2], (path, target))
        self.assertEqual(self.found("admin/main.cpp", "admin/text/text.hpp", "runner/root/view/view.hpp", "runner/plan/plan.hpp"), [])
        self.assertEqual(self.found("wrapper/a.cpp", "common/policy/yaml/yaml.hpp"), [])

    def test_a_circle_on_one_floor_is_found_and_an_arrow_is_none(self):
        there = cpp('#include "admin/programs/programs.hpp"', "admin/text/b.cpp")
        back = cpp('#include "admin/text/text.hpp"', "admin/programs/b.cpp")
        self.assertEqual(said_by(floors.check_arrows, *self.HEADERS, there), [])
        self.assertEqual(said_by(floors.check_arrows, *self.HEADERS, back), [])
        self.assertEqual(sorted(said_by(floors.check_arrows, *self.HEADERS, there, back)),
                         [("admin/programs/b.cpp", 2, "arrow"), ("admin/text/b.cpp", 2, "arrow")])

    def test_an_include_that_another_one_brings_is_found(self):
        low, high = header("common/base/low.hpp"), cpp('#include "common/base/low.hpp"\n#include <string>', "common/host/high.hpp")
        for code, lines in (('#include "common/host/high.hpp"\n#include "common/base/low.hpp"', [3]), ('#include <string>\n#include "common/host/high.hpp"', [2]),
                            ('#include "common/host/high.hpp"\n#include <vector>', []), ('#include "common/base/low.hpp"\n#include <string>', [])):
            found = said_by(floors.check_heads, low, high, cpp(code, "runner/plan/a.cpp"))
            self.assertEqual(found, [("runner/plan/a.cpp", line, "head") for line in lines], code)
        self.assertEqual(said_by(floors.check_heads, low, high, cpp('#include "common/base/low.hpp"\n#include "common/host/high.hpp"', "common/base/low.cpp")), [])

    def test_what_the_build_makes_and_what_is_not_ours_is_no_arrow(self):
        self.assertEqual(self.found("runner/filter/a.cpp", "runner/call_filters.inc", "runner/filter/filter.hpp", "#include <sys/stat.h>", "nlohmann/json.hpp"), [])


    def test_what_the_build_does_not_make_is_an_arrow_whatever_its_name(self):
        listed = SourceFile("runner/root/view/list.inc", "1, 2")
        self.assertEqual(said_by(floors.check_arrows, listed, cpp('#include "runner/root/view/list.inc"', "runner/plan/a.cpp")), [("runner/plan/a.cpp", 2, "arrow")])


class Table(unittest.TestCase):
    ROWS = rooms.table()

    def found(self, rows, **options):
        return [finding.text for finding in room_rules.check_room_table([page(rows, **options)])]

    def test_the_table_of_the_data_is_accepted(self):
        self.assertEqual(self.found(self.ROWS), [])

    def test_a_row_that_is_missing_extra_or_twice_there_is_found(self):
        self.assertEqual(len(self.found(self.ROWS[:-1])), 1)
        self.assertIn("`common/seams/` has no row", self.found(self.ROWS[:-1])[0])
        self.assertIn("`runner/attic/` is no room", self.found([*self.ROWS, "| `runner/attic/` | a | b | c |"])[0])
        self.assertIn("has a row already", self.found([*self.ROWS, self.ROWS[2]])[0])

    def test_a_cell_that_says_something_else_is_found_with_its_line(self):
        for column, cell in enumerate(rooms.row_of(rooms.ROOMS[0])[1:], 1):
            rows = [*self.ROWS[:2], self.ROWS[2].replace(f" {cell} ", f" {cell}, too "), *self.ROWS[3:]]
            findings = list(room_rules.check_room_table([page(rows)]))
            self.assertEqual([(finding.path, finding.line, finding.rule) for finding in findings], [(rooms.PAGE, 7, "room-table")])
            self.assertIn(rooms.COLUMNS[column], findings[0].text)
        self.assertTrue(self.found([*self.ROWS[:2], self.ROWS[2] + " more |", *self.ROWS[3:]]))
        self.assertTrue(self.found([*self.ROWS[:2], self.ROWS[2].rpartition(" | ")[0] + " |", *self.ROWS[3:]]))

    def test_rows_in_another_order_are_found(self):
        found = self.found([*self.ROWS[:2], self.ROWS[3], self.ROWS[2], *self.ROWS[4:]])
        self.assertEqual(len(found), 1)
        self.assertIn("from top to bottom", found[0])

    def test_a_page_without_the_table_is_found(self):
        for rows in ([], ["| a | b | c | d |", *self.ROWS[1:]], self.ROWS[:1], [self.ROWS[0], *self.ROWS[2:]]):
            self.assertIn("there is no table with the head", " ".join(self.found(rows)), rows[:2])
        self.assertIn("there is no table with the head", " ".join(self.found(self.ROWS, heading="## Other")))
        self.assertEqual(len(list(room_rules.check_room_table([]))), 1)


class Planted(unittest.TestCase):
    """The whole lint over a clean project, with one thing planted."""

    PLANTED = (
        ("a mount in plan/", "runner/plan/planted.cpp", "int x = ::mount(a, b, c, 0, nullptr);", "room"),
        ("an include of root/ in as_user/", "runner/as_user/planted.cpp", '#include "runner/root/view/clean.hpp"', "arrow"),
        ("a fork in wire/", "runner/wire/planted.cpp", "const auto child = fork();", "room"),
        ("a system call in plan/", "runner/plan/planted.cpp", "int x = ::open(path, 0);", "system-call"),
        ("what makes system calls for plan/", "runner/plan/planted.cpp", '#include "common/host/clean.hpp"', "system-call"),
        ("root's type in as_user/", "runner/as_user/planted.cpp", "void mend(const AsRoot &root);", "as-root"),
        ("an include that runs up", "runner/root/session/planted.cpp", '#include "runner/root/launch/clean.hpp"', "arrow"),
        ("a folder that is no room", "runner/attic/planted.cpp", "int x;", "room"),
    )

    def found(self, **changes):
        return [(finding.path, finding.line, finding.rule) for finding in lint.check_all([SourceFile(*each) for each in {**clean_project(), **changes}.items()])]

    def test_each_is_the_one_finding_and_the_clean_variant_is_none(self):
        for name, path, code, rule in self.PLANTED:
            self.assertEqual(self.found(**{path: PURPOSE + code + "\n"}), [(path, 1 if "folder" in name else 2, rule)], name)
            if "folder" not in name:
                self.assertEqual(self.found(**{path: PURPOSE + "// " + code + "\n"}), [], name)
        self.assertEqual(self.found(**{rooms.PAGE: "\n".join([rooms.HEADING, *rooms.table()[:-1]])}), [(rooms.PAGE, 2, "room-table")])


class Program(unittest.TestCase):
    def run_floors(self, files):
        with tempfile.TemporaryDirectory() as name:
            for path, text in files.items():
                (Path(name) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(name) / path).write_text(text)
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
                return floors.main([name]), out.getvalue()

    def test_floors_and_arrows_are_printed_and_decide(self):
        clean = {"meson.build": "", **{f"{room.path}/a.hpp": PURPOSE for room in rooms.ROOMS}}
        clean["runner/root/view/b.cpp"] = PURPOSE + '#include "runner/plan/a.hpp"\n'
        status, said = self.run_floors(clean)
        self.assertEqual(status, 0, said)
        self.assertIn("runner/root/view/ -> runner/plan/ 1", said)
        self.assertRegex(said, r"runner/root/view/ +2 +3 ")
        status, said = self.run_floors({**clean, "runner/plan/b.cpp": PURPOSE + '#include "runner/root/view/a.hpp"\n'})
        self.assertEqual(status, 1)
        self.assertIn("runner/plan/b.cpp:2: [arrow]", said)
        status, said = self.run_floors({**clean, "runner/attic/a.cpp": PURPOSE})
        self.assertEqual(status, 1)
        self.assertIn("runner/attic/a.cpp:1: [room]", said)

    def test_an_empty_project_does_not_pass(self):
        status, said = self.run_floors({"meson.build": ""})
        self.assertEqual(status, 1)
        self.assertIn("nothing was checked", said)
        self.assertEqual(self.run_floors({"other": ""})[0], 64)


if __name__ == "__main__":
    unittest.main()
