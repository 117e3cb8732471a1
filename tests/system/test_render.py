"""pi-agentctl render: what it says of this host, what it refuses, and that no value of a file of variables is in it."""

import json

import pytest
from launching import DEMO, DENIED, INVALID, PLAYING_POLICY, place_of
from machine import MachineError

USAGE = 64
SECRET = "s3cret-value"
REPOSITORY = "/home/alice/projects/rendered"


@pytest.fixture(scope="module")
def repository(playing):
    """A repository of alice's; no file of hers sets variables."""
    playing.run(f"git init -q {REPOSITORY}", cwd=DEMO, check=True)
    yield playing
    playing.run(f"rm -rf {REPOSITORY}", cwd=DEMO, check=True)


def render(machine, *arguments, user="alice", cwd=REPOSITORY):
    return machine.root(["pi-agentctl", "render", "--target", "kubernetes", "--user", user, "--cwd", cwd, "--image", "localhost/x:1", *arguments])


def text_of(done):
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout.decode()


def test_a_rendering_says_what_explain_and_a_session_say(repository):
    text = text_of(render(repository, "--", "-p", "it's me"))
    assert REPOSITORY in text and "-p" in text
    asked = repository.root(["pi-agentctl", "explain", "--user", "alice", "--cwd", REPOSITORY, "--json"], check=True)
    variables = json.loads(asked.stdout)["environment"]["variables"]
    assert variables["HOME"]["value"] in text
    assert variables["PATH"]["value"] in text and "PI_AGENT_SESSION" not in text
    assert f"{REPOSITORY}/.git/hooks" in text  # what is protected, with all above it
    assert text.index(f"{REPOSITORY}/.git") < text.index(f"{REPOSITORY}/.git/hooks")


def test_what_an_engine_cannot_honour_is_an_error_with_its_place(repository, playing_policy):
    text = PLAYING_POLICY + "network: [127.0.0.0/8]\nprojects: {mask: [.env]}\n"
    playing_policy(text)
    done = render(repository)
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (INVALID, b""), done
    assert place_of(text, "[127") + ": network: kubernetes cannot honour it" in said
    assert place_of(text, ".env") + ": projects.mask: kubernetes cannot honour it" in said


def test_no_value_of_a_file_of_variables_is_printed(repository, playing_policy):
    repository.write("/etc/pi-agent/rendered.env", f"TOKEN={SECRET}\n", mode=0o600)
    playing_policy(PLAYING_POLICY + "env_files: [/etc/pi-agent/rendered.env]\n")
    text = text_of(render(repository))
    assert SECRET not in text and "/etc/pi-agent/rendered.env" in text
    repository.write("/etc/pi-agent/rendered.env", f'TOKEN="{SECRET}"\n', mode=0o600)
    done = render(repository)
    assert done.returncode == INVALID and b"has quotes" in done.stderr and SECRET.encode() not in done.stderr
    repository.root(["rm", "/etc/pi-agent/rendered.env"], check=True)


def test_a_users_own_variables_are_no_secret_to_pass_on(repository):
    repository.write("/home/alice/.pi/agent/env", f"TOKEN={SECRET}\n", "alice")
    done = render(repository)
    repository.root(["rm", "/home/alice/.pi/agent/env"], check=True)
    assert done.returncode == INVALID and b"host_env_files: kubernetes cannot honour it" in done.stderr
    assert SECRET.encode() not in done.stdout + done.stderr


def test_where_pi_would_not_start_nothing_is_rendered(repository):
    assert render(repository, cwd="/etc").returncode == DENIED
    assert render(repository, user="eve").returncode == DENIED
    assert render(repository, cwd="/home/alice/projects/none").returncode != 0
    assert repository.run(["pi-agentctl", "render", "--target", "kubernetes", "--user", "alice", "--cwd", REPOSITORY]).returncode == DENIED
    assert repository.root(["pi-agentctl", "render", "--target", "kubernetes"]).returncode == USAGE
    assert repository.root(["pi-agentctl", "render", "--target", "podman"]).returncode == USAGE


def test_a_link_among_what_is_protected_is_not_for_roots_engine_to_follow(repository):
    hooks = f"{REPOSITORY}/.git/hooks"
    repository.run(f"mv {hooks} {hooks}.real && ln -s hooks.real {hooks}", check=True)
    done = render(repository)
    repository.run(f"rm {hooks} && mv {hooks}.real {hooks}", check=True)
    assert (done.returncode, done.stdout) == (INVALID, b"") and b"projects.protect: " in done.stderr and b"is a symlink" in done.stderr, done


def test_what_a_list_protects_must_be_there(repository, playing_policy):
    text = PLAYING_POLICY + "projects: {protect: [.git/hooks, docs/Makefile]}\n"
    playing_policy(text)
    said = render(repository).stderr.decode()
    assert place_of(text, "docs/Makefile") + ": projects.protect: kubernetes cannot honour it: 'rendered/docs' does not exist" in said


def test_what_a_start_would_tell_of_protected_files_is_told(repository):
    repository.run(f"ln {REPOSITORY}/.git/config {REPOSITORY}/second", check=True)
    text = text_of(render(repository))
    repository.run(["rm", f"{REPOSITORY}/second"], check=True)
    assert f"# Of the project: had several names (hard links) and was replaced by a copy, because it is protected: {REPOSITORY}/.git/config" in text


def test_a_grant_that_a_start_refuses_is_not_rendered(repository, playing_policy):
    repository.root(["gpasswd", "--add", "carol", "adm"], check=True)
    try:
        with pytest.raises(MachineError, match="is a group whose members control the host"):
            playing_policy(PLAYING_POLICY.replace('"%devs"', '"%adm"'))
        started = repository.run(["pi", "sh", "true"], "carol", cwd="/srv/devs")
        rendered = render(repository, user="carol", cwd="/srv/devs")
    finally:
        repository.root(["gpasswd", "--delete", "carol", "adm"], check=True)
    for done in (started, rendered):
        assert (done.returncode, done.stdout) == (INVALID, b"") and b"is granted by a group whose members control the host" in done.stderr, done


def test_everybody_can_have_the_profile_of_system_calls(repository):
    done = repository.run(["pi-agentctl", "render", "--target", "seccomp"])
    profile = json.loads(text_of(done))
    always = profile["syscalls"][0]["names"]
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO" and "read" in always
    assert not {"ptrace", "mount", "io_uring_setup", "keyctl", "clone3"} & set(always)
