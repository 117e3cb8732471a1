"""Debian 12 with its own kernel, in qemu: what this host's kernel cannot show. Control groups have all controllers there, tmpfs no id maps."""

from pathlib import Path

import emulated
import pytest

AGENT = "/usr/local/lib/agent/bin/pi"
POLICY = f"""version: 1
agent: {{binary: {AGENT}, accounts: per-user}}
users:
  alice: {{roots: [~/projects]}}
  bob: {{roots: [~/work]}}
"""
UNAVAILABLE = 69
KILLED = -9


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What inside.py told, by case: one boot for all tests."""
    program = Path(__file__).with_name("inside.py").read_text()
    files = {AGENT: '#!/bin/sh\nexec "$@"\n', "/etc/pi-agent/policy.yaml": POLICY}
    found = {case.pop("case"): case for case in emulated.run(tmp_path_factory.mktemp("emulated"), program, files)}
    print(found)
    broken = {name: case["exception"] for name, case in found.items() if "exception" in case}
    assert not broken, broken
    assert found["apply"]["status"] == 0, found["apply"]
    return found


@pytest.fixture(params=["", "_bwrap"], ids=["systemd", "bwrap"])
def method(request):
    return request.param


def test_it_is_the_distributions_kernel_with_all_controllers(said):
    machine = said["the_machine"]
    assert machine["kernel"].startswith("6.1."), machine
    assert {"memory", "pids", "cpu"} <= set(machine["controllers"]), machine
    assert machine["failed"] == "", machine


def test_a_launch_works_and_its_status_comes_back(said):
    launch = said["a_launch"]
    assert (launch["status"], launch["err"]) == (42, ""), launch
    assert launch["out"].splitlines()[:2] == ["pi-agent-alice", "/home/alice/projects/demo"]
    assert "NoNewPrivs:\t1" in launch["out"] and "CapBnd:\t0000000000000000" in launch["out"]


def test_what_the_agent_makes_belongs_to_its_user(said):
    files = said["id_mapped_files"]
    assert (files["status"], files["err"]) == (0, ""), files
    assert files["outside"][:2] == ["alice:alice 644", "alice:alice 755"]
    assert files["readme"] == "# demo\nmore\n"


def test_a_cache_is_changed_in_a_session_alone_and_a_toolchain_is_read(said):
    case = said["a_cache_and_a_toolchain"]
    assert case["out"] == "of .npm\nchanged\nof .nvm\nof .nvm\n", case
    assert "Read-only file system" in case["err"] and case["outside"] == "of .npm\n", case


def test_the_kernel_has_the_limits_of_the_session_and_of_its_users_slice(said):
    limits, memory = said["what_systemd_set"], said["the_machine"]["memory"]
    assert limits["pids.max"] == "4096"
    assert 0.75 * memory < int(limits["memory.max"]) < 0.85 * memory, (limits, memory)
    assert 0.75 * memory < int(limits["slice"]["memory.max"]) < 0.85 * memory, (limits, memory)
    assert 0 < int(limits["slice"]["pids.max"]) < 4096, limits


def test_an_agent_that_takes_too_much_memory_is_killed_and_nothing_else_is(said):
    memory = said["too_much_memory"]
    assert memory["status"] == KILLED and memory["oom"], memory
    assert memory["after"] == "still here\n", memory


def test_an_agent_cannot_start_more_tasks_than_its_user_may_have(said):
    tasks = said["too_many_tasks"]
    assert tasks["status"] == 0 and 100 < tasks["count"] < int(said["what_systemd_set"]["slice"]["pids.max"]), tasks
    assert set(tasks["outside"]) == {0}, tasks


def test_the_kernel_has_the_limits_that_the_policy_says(said, method):
    limits = {name: value for name, value in said["what_the_policy_set" + method].items() if name != "seconds"}
    assert limits == {"memory.max": str(192 << 20), "memory.swap.max": "0", "pids.max": "64", "cpu.max": "50000 100000"}, limits


def test_a_memory_that_the_policy_says_is_held_and_told(said, method):
    child, agent = said["said_memory" + method]["child"], said["said_memory" + method]["agent"]
    assert child["status"] == 0 and child["out"].startswith("status 137\n"), child
    assert "pi: out of memory: the session reached its limit of 192M (limits.memory, /etc/pi-agent/policy.yaml:6:18)" in child["err"], child
    assert "and the agent went on" in child["err"] and "192M of memory" in child["out"], child
    assert agent["status"] == KILLED and "killed the agent, or what it ran" in agent["err"], agent


def test_tasks_that_the_policy_says_are_held_and_told(said, method):
    tasks = said["said_tasks" + method]
    assert tasks["status"] == 0 and 20 < int(tasks["out"]) < 64, tasks
    assert "pi: out of processes: the session reached its limit of 64 (limits.tasks, " in tasks["err"], tasks


def test_a_processor_that_the_policy_says_is_held(said, method):
    assert 0.3 < float(said["said_processor" + method]["out"]) < 2.6, said["said_processor" + method]  # of four seconds, the half


def test_a_time_that_the_policy_says_ends_the_session_in_words(said, method):
    runtime = said["said_runtime" + method]
    assert (runtime["status"], runtime["out"]) == (KILLED, "begun\n") and runtime["lasted"] < 60, runtime
    assert "pi: out of time: a session may last 15s (limits.runtime, " in runtime["err"], runtime


def test_a_home_on_a_file_system_without_id_maps_is_refused_with_the_mount_and_the_remedy(said):
    home = said["a_home_on_tmpfs"]
    assert (home["status"], home["out"]) == (UNAVAILABLE, ""), home
    assert "the file system of /home/bob/work (tmpfs mounted at /home/bob) does not support id-mapped mounts on this kernel" in home["err"]
    assert "move the project to ext4, xfs or btrfs, or use a newer kernel" in home["err"]


PROJECT = 1000 ^ 0x50000000
MEBIBYTE = 1 << 20


def test_a_quota_holds_home_and_temporary_files_together(said):
    quota = said["disk_quota"]
    assert (quota["checked"], "limits.disk" in quota["warned"]) == (0, False), quota
    filled, full = quota["filled"], quota["full"]
    # The attribute filter refuses both, then the disk is full at the limit, for temporary files as well.
    assert filled["out"].splitlines()[:2] == ["Operation not supported"] * 2, filled
    assert "Disk quota exceeded" in filled["err"] or "No space left on device" in filled["err"], filled
    assert 32 * MEBIBYTE < int(filled["out"].split()[-1]) <= 64 * MEBIBYTE, filled
    assert 32 * MEBIBYTE < int(full["out"].split()[-1]) <= 64 * MEBIBYTE, full


def test_a_full_home_still_starts_so_that_its_user_can_remove_something(said):
    full, after = said["disk_quota"]["full"], said["disk_quota"]["after"]
    assert "pi: nearly full: your agent has " in full["err"] and "limits.disk: 64M (/etc/pi-agent/policy.yaml:" in full["err"], full
    assert (after["status"], after["out"]) == (0, "written\n"), after


def test_what_was_in_the_home_before_joins_the_quota_with_its_modes(said):
    quota = said["disk_quota"]
    assert quota["projects"] == [PROJECT] * 6, quota
    assert quota["modes"] == ["0o100", "0o0"], quota


def test_what_a_session_from_before_the_limit_takes_out_joins_again(said):
    case = said["disk_quota"]["from_before"]
    assert (case["ready"], case["left"]) == ("ready\n", ["done\n", "done\n"]), case
    assert case["projects"] == [PROJECT, 0, PROJECT], case


def test_without_the_key_the_quota_is_lifted(said):
    assert said["disk_quota"]["lifted"]["out"] == "fits\n", said["disk_quota"]


def test_a_walk_that_fails_takes_the_limit_off_nobody(said):
    case = said["disk_quota"]["failing_walk"]
    assert case["ready"] == "ready\n" and case["refused"]["status"] != 0 and "directories deep" in case["refused"]["err"], case
    assert 32 * MEBIBYTE < case["size"] <= 64 * MEBIBYTE, case


def test_a_home_whose_content_is_gone_has_no_quota_left_without_the_key(said):
    case = said["disk_quota"]["reset_home"]
    assert int(case["held"]["out"]) <= 64 * MEBIBYTE and case["reset"] == 0, case
    assert case["after"]["out"] == "fits\n", case


def test_a_project_of_others_keeps_its_limit(said):
    case = said["disk_quota"]["of_others"]
    assert 32 * MEBIBYTE < int(case["held"]["out"]) <= 64 * MEBIBYTE, case
    assert (case["project"], case["left"]) == (0xF0000064, 5000), case
    # No quota can hold this agent: limits.disk_without_quota decides, and the administrator's own limit stays.
    theirs = f"the project {PROJECT}, which its agent has, is another's in /etc/projid"
    named, refused = case["named"], case["refused"]
    assert (named["status"], named["out"]) == (0, "ran\n") and theirs in named["err"], case
    assert (refused["status"], refused["out"]) == (UNAVAILABLE, "") and theirs in refused["err"], case
    assert (case["named_left"], case["refused_left"]) == (6000, 6000), case


def test_a_clock_that_is_stepped_ends_no_start_and_no_session(said):
    case = said["a_stepped_clock"]
    assert (case["ready"], case["status"], case["out"], case["err"]) == ("ready\n", 7, "bye\n", ""), case
    assert case["starts"] == [[0, "ran\n", ""]] * 3, case
    # Recorded by a clock that nobody steps.
    lasted = [duration for duration in case["durations"] if duration is not None]
    assert lasted and all(0 <= duration < 3600 * 1000000 for duration in lasted), case
    assert case["left"] == [], case
