"""A home or a project with two names: what programs have written down leads to the same place inside."""

import pytest
from launching import DEMO, agent_says, pi

pytestmark = pytest.mark.usefixtures("playing")


@pytest.fixture
def by_root(machine):
    """alice's home is /people/alice in the user database, by a link of root's, as where /home is a link to /data/home."""
    machine.root("ln -s /home /people; sed -i 's,:/home/alice:,:/people/alice:,' /etc/passwd; install -d -o alice -g alice /home/alice/.nvm/own", check=True)
    yield machine
    machine.root("sed -i 's,:/people/alice:,:/home/alice:,' /etc/passwd; rm -rf /people /home/alice/.nvm /home/alice/projects/demo/by-name", check=True)


def test_both_names_of_a_home_lead_to_what_is_shown_and_to_nothing_else(by_root):
    script = "cd /people/alice/projects/demo; pwd -P; touch by-name; cd /people/alice/.nvm/own; pwd -P; ls -A /people /people/alice; touch /people/alice/x 2>/dev/null || echo kept"
    lines = agent_says(by_root, "sh", script).decode().splitlines()
    assert lines[:2] == [DEMO, "/home/alice/.nvm/own"] and lines[-1] == "kept", lines
    shown = set(lines[2:-1])
    assert {"alice", "projects", ".nvm"} <= shown and ".ssh" not in shown and "bob" not in shown, shown
    assert by_root.run(["stat", "-c", "%U", f"{DEMO}/by-name"], check=True).stdout == b"alice\n"


def test_a_place_of_PATH_by_the_other_name_is_passed_on(by_root):
    path = agent_says(by_root, "sh", "echo $PATH", env={"PATH": "/people/alice/.nvm/own:/usr/local/bin:/usr/bin:/bin"}).decode()
    assert "/home/alice/.nvm/own" in path, path


@pytest.fixture
def by_user(machine):
    machine.run("ln -s /srv/shared/app ~/work; ln -s /srv ~/wide; ln -s /etc ~/etc; ln -s ~/projects/demo ~/demo", cwd="/", check=True)
    yield machine
    machine.run("rm -f ~/work ~/wide ~/etc ~/demo /srv/shared/app/by-name", cwd="/", check=True)


def test_a_link_of_the_users_home_into_what_is_shown_is_there_and_no_other(by_user):
    done = pi(by_user, "sh", "cd /home/alice/work; pwd -P; touch by-name; cd /; ls -A /home/alice", cwd="/srv/shared/app")
    assert done.stdout.decode().split()[0] == "/srv/shared/app", done
    assert "work" in done.stdout.decode().split() and not {"wide", "etc", "demo"} & set(done.stdout.decode().split()), done
    assert agent_says(by_user, "sh", "cd /home/alice/demo; pwd -P").decode() == f"{DEMO}\n"
