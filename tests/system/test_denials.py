"""Starts that are denied (test_gate.py has denied connections): each refusal has status 77, its own words, and says what would help."""

import pytest
from launching import DEMO, DENIED, PLAYING_POLICY, POLICY_FILE, agent_says, assert_refused, pi, place_of

PROJECTS = "/home/alice/projects"


pytestmark = pytest.mark.usefixtures("playing")


def assert_outside(done, directory, user="alice", roots=(PROJECTS, "/srv/shared/app")):
    entry = place_of(PLAYING_POLICY, f"{user}:")
    assert_refused(done, DENIED, f"denied: {directory} is outside the project roots of {user}", entry, f"users.{user}.roots", *roots)


@pytest.mark.parametrize(
    "directory", ["/home/alice", "/home", "/", "/tmp", "/srv/shared", "/srv/devs", "/var/lib/pi-agent", "/proc", "/usr"]
)
def test_a_directory_outside_the_roots_is_refused_with_its_name_the_roots_and_the_policy_line(machine, directory):
    assert_outside(pi(machine, "sh", "echo ran", cwd=directory), directory)


@pytest.mark.parametrize("directory", [f"{PROJECTS}-evil", "/home/alice/project", "/srv/shared/application", f"{PROJECTS.upper()}"])
def test_a_directory_whose_name_only_resembles_a_root_is_refused(machine, directory):
    machine.run(["sh", "-c", 'mkdir -p "$1" && chown alice "$1"', "sh", directory], user="root", check=True)
    done = pi(machine, "sh", "echo ran", cwd=directory)
    machine.root(["rmdir", directory], check=True)
    assert_outside(done, directory)


def test_an_account_that_the_policy_does_not_name_gets_another_message(machine):
    for directory in ("/srv/shared/app", "/home/eve"):
        done = pi(machine, "sh", "echo ran", user="eve", cwd=directory)
        assert_refused(done, DENIED, f"the policy {POLICY_FILE} does not authorise eve", "users.eve", "ask the administrator")
        assert b"outside" not in done.stderr


def test_the_roots_of_one_user_are_not_those_of_another(machine):
    done = pi(machine, "sh", "echo ran", user="bob", cwd="/srv/shared/app")
    assert_outside(done, "/srv/shared/app", "bob", ["/home/bob/work"])
    assert b"/home/alice" not in done.stderr


def test_an_own_entry_beats_the_entry_of_a_group(machine):
    assert agent_says(machine, "sh", "pwd", user="carol", cwd="/srv/devs") == b"/srv/devs\n"
    done = pi(machine, "sh", "echo ran", user="bob", cwd="/srv/devs")
    assert_outside(done, "/srv/devs", "bob", ["/home/bob/work"])


def test_a_member_by_group_is_refused_elsewhere_with_the_line_of_the_group(machine):
    done = pi(machine, "sh", "echo ran", user="carol", cwd="/home/carol")
    entry = place_of(PLAYING_POLICY, '"%devs":')
    assert_refused(done, DENIED, "/home/carol is outside", "of carol", entry, "users.%devs.roots", "/srv/devs")


def test_root_and_the_agents_own_account_do_not_start_the_agent(machine):
    assert_refused(pi(machine, "sh", "echo ran", user="root", cwd=DEMO), DENIED, "root cannot run the agent", "ordinary user")
    done = pi(machine, "sh", "echo ran", user="pi-agent-alice", cwd="/srv/shared/app")
    assert_refused(done, DENIED, "pi-agent-alice", "agent's own", "cannot start inside a session")


def test_pi_inside_a_session_says_why_it_cannot_work(machine):
    done = pi(machine, "sh", "pi sh 'echo ran'")
    assert done.returncode == 69, done
    assert b"inside an agent's session" in done.stderr and done.stdout == b""


def test_a_link_into_a_root_leads_to_the_physical_directory(machine):
    machine.run(f"ln -sfn {DEMO} ~/shortcut", check=True)
    said = agent_says(machine, "sh", 'echo "$PWD"; /bin/pwd', cwd="/home/alice/shortcut")
    machine.run("rm ~/shortcut", check=True)
    assert said == f"{DEMO}\n{DEMO}\n".encode()


def test_a_link_inside_a_root_does_not_lead_out_of_it(machine):
    machine.run(f"mkdir -p ~/elsewhere && ln -sfn ~/elsewhere {DEMO}/inside", check=True)
    done = pi(machine, "sh", "echo ran", cwd=f"{DEMO}/inside")
    machine.run(f"rm {DEMO}/inside; rmdir ~/elsewhere", check=True)
    assert_outside(done, "/home/alice/elsewhere")


def test_dots_and_slashes_change_nothing(machine):
    done = machine.run("cd ~/projects/demo/../.. && pi sh 'echo ran'", cwd=DEMO)
    assert_outside(done, "/home/alice")
    assert machine.run(f"cd -P {PROJECTS}/../projects//./demo/ && pi sh pwd").stdout == f"{DEMO}\n".encode()


def test_a_deleted_directory_is_refused(machine):
    done = machine.run("mkdir gone && cd gone && rmdir ../gone && pi sh 'echo ran'", cwd=DEMO)
    assert_refused(done, DENIED, "the working directory was deleted", "cd to one that exists")


def test_a_directory_that_was_deleted_and_made_again_is_refused(machine):
    done = machine.run("mkdir again && cd again && rmdir ../again && mkdir ../again && pi sh 'echo ran'", cwd=DEMO)
    machine.run("rmdir again", cwd=DEMO, check=True)
    assert_refused(done, DENIED, "the working directory was deleted")


def test_a_directory_that_its_user_may_not_enter_is_refused(machine):
    done = machine.run("mkdir shut && cd shut && chmod 0 . && pi sh 'echo ran'", cwd=DEMO)
    machine.run("chmod 700 shut && rmdir shut", cwd=DEMO, check=True)
    assert_refused(done, DENIED, f"you may not enter {DEMO}/shut")


def test_a_renamed_directory_is_where_it_is_now(machine):
    done = machine.run("mkdir old && cd old && mv ../old ../new && pi sh '/bin/pwd; touch made' && ls ../new && rm -r ../new", cwd=DEMO)
    assert done.stdout == f"{DEMO}/new\nmade\n".encode(), done


def test_a_directory_that_was_moved_out_of_the_roots_is_refused(machine):
    done = machine.run("mkdir moving && cd moving && mv ../moving ~/moved && pi sh 'echo ran'", cwd=DEMO)
    machine.run("rmdir ~/moved", check=True)
    assert_outside(done, "/home/alice/moved")


def test_another_file_system_inside_a_root_is_refused_and_named(machine):
    machine.run("mkdir mounted", cwd=DEMO, check=True)
    machine.root(["mount", "-t", "tmpfs", "-o", "uid=1000,gid=1000", "inner", f"{DEMO}/mounted"], check=True)
    try:
        machine.run(f"echo hidden >{DEMO}/mounted/file", check=True)
        done = pi(machine, "sh", "echo ran", cwd=f"{DEMO}/mounted")
        above = pi(machine, "sh", "ls -A mounted; touch mounted/new || true")
    finally:
        machine.root(f"umount {DEMO}/mounted; rmdir {DEMO}/mounted", check=True)
    assert_refused(done, DENIED, f"{DEMO}/mounted lies on another file system", PROJECTS, "a root of its own")
    assert above.returncode == 0 and above.stdout == b"", above
    assert f"pi: not shown to the agent: {DEMO}/mounted".encode() in above.stderr
    assert b"Read-only file system" in above.stderr


def test_no_byte_of_a_refused_name_reaches_the_terminal_as_it_is(machine):
    name = b"/home/alice/\x1b]0;title\x07\n\xffpi: forged \xe2\x80\xae"
    machine.run([b"mkdir", name], check=True)
    done = pi(machine, "sh", "echo ran", cwd=name)
    machine.run([b"rmdir", name], check=True)
    assert_outside(done, r"/home/alice/\x1b]0;title\x07\x0a\xffpi: forged \u{202e}")
    assert done.stderr.count(b"\n") == 2 and done.stderr.splitlines()[1] == b"pi: see: pi-agentctl explain E77-root", done
