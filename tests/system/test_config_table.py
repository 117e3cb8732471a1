"""The outcome table of the config sync, every cell: class × what the host did × what the agent did since the last start, and classes that change."""

import json

import pytest
from launching import PLAYING_POLICY, STATE, agent_says

pytestmark = pytest.mark.usefixtures("playing")

CONFIG = "/home/alice/.pi/agent"
CLASSES = ("mirror", "seed", "agent", "never")

# What each side does after both have had the file from the host, as far as its class copies it; then, by class, what is inside
# after the next start. "host": the host's of before, "host's new", "agent's", None: nothing.
SCENARIOS = {
    "nobody does anything": ("keep", "keep", {"mirror": "host", "seed": "host", "agent": None, "never": None}),
    "host edits": ("edit", "keep", {"mirror": "host's new", "seed": "host's new", "agent": None, "never": None}),
    "host deletes": ("delete", "keep", {"mirror": None, "seed": None, "agent": None, "never": None}),
    "agent edits": ("keep", "edit", {"mirror": "host", "seed": "agent's", "agent": "agent's", "never": "agent's"}),
    "agent deletes": ("keep", "delete", {"mirror": "host", "seed": "host", "agent": None, "never": None}),
    "both edit": ("edit", "edit", {"mirror": "host's new", "seed": "host's new", "agent": "agent's", "never": "agent's"}),
    "host edits, agent deletes": ("edit", "delete", {"mirror": "host's new", "seed": "host's new", "agent": None, "never": None}),
    "host deletes, agent edits": ("delete", "edit", {"mirror": None, "seed": "agent's", "agent": "agent's", "never": "agent's"}),
    "both delete": ("delete", "delete", {"mirror": None, "seed": None, "agent": None, "never": None}),
    # Here there is no file at first.
    "agent creates": ("absent", "edit", {name: "agent's" for name in CLASSES}),
    "host creates": ("create", "keep", {"mirror": "host's new", "seed": "host's new", "agent": None, "never": None}),
    "host creates where the agent has one": ("create", "edit", {"mirror": "host's new", "seed": "agent's", "agent": "agent's", "never": "agent's"}),
}
CELLS = [(file_class, scenario) for scenario in SCENARIOS for file_class in CLASSES]

# A class that changes after the first start, and the outcome where the agent did nothing, edited and deleted.
CHANGES = {
    ("mirror", "seed"): ("host", "agent's", "host"),
    ("mirror", "agent"): ("host", "agent's", None),
    ("mirror", "never"): (None, None, None),
    ("seed", "mirror"): ("host", "host", "host"),
    ("seed", "agent"): ("host", "agent's", None),
    ("seed", "never"): (None, None, None),
    ("agent", "mirror"): ("host", "host", "host"),
    ("agent", "seed"): ("host", "agent's", "host"),
    ("agent", "never"): (None, "agent's", None),
    ("never", "mirror"): ("host", "host", "host"),
    ("never", "seed"): ("host", "agent's", "host"),
    ("never", "agent"): (None, "agent's", None),
}
ACTS = ("keep", "edit", "delete")
CONTENTS = {"host": "host 1\n", "host's new": "host 2\n", "agent's": "agent3\n"}  # of one length


def name_of(*words):
    return "-".join(words).replace(" ", "_").replace(",", "")


def policy_with(classes):
    return PLAYING_POLICY + f"config: {{classes: {json.dumps(classes)}}}\n"


def script_of(acts, text):
    """What one side does: {path: keep, edit, delete, create or absent} as a script."""
    lines = []
    for path, act in acts.items():
        if act in ("edit", "create"):
            lines.append(f"mkdir -p {path.rpartition('/')[0]}; rm -f {path}; printf %s '{text}' >{path}")
        elif act == "delete":
            lines.append(f"rm -f {path}")
    return "\n".join(lines)


LOOK = 'cd "$PI_CODING_AGENT_DIR" && find . -type f -size -2 -print0 | while IFS= read -r -d "" f; do printf "%s\\0%s\\0" "${f#./}" "$(cat "$f")"; done'


def look(machine):
    """{path: content} of all that is inside, after a start."""
    parts = agent_says(machine, "sh", LOOK).decode().split("\0")
    return dict(zip(parts[::2], parts[1::2]))


@pytest.fixture(scope="module")
def empty_config(playing):
    """An empty config directory of alice and no state of her agent; her own config comes back afterwards."""
    playing.run("mv .pi .pi-kept && mkdir -p .pi/agent", check=True)
    playing.root(["rm", "-rf", f"{STATE}/alice"], check=True)
    yield playing
    playing.root(f"cd /home/alice && rm -rf .pi && mv .pi-kept .pi && rm -rf {STATE}/alice", check=True)


@pytest.fixture(scope="module")
def table(empty_config):
    """Plays all cells at once: {"once": {path: content}, "thrice": ...} is what was inside after one and after three more starts."""
    machine = empty_config
    # Each cell also for files deep in a directory, which is made and goes with them.
    cells = [(f"{c}/{name_of(s)}{deep}", SCENARIOS[s]) for c, s in CELLS for deep in ("", ".d/er/file")]
    machine.install_policy(policy_with({name: name for name in CLASSES}))
    first = {path: "edit" for path, (host, _, _) in cells if host in ("keep", "edit", "delete")}
    machine.run(script_of(first, CONTENTS["host"]), cwd=CONFIG, check=True)
    agent_says(machine, "sh", 'cd "$PI_CODING_AGENT_DIR"\n' + script_of({path: agent for path, (_, agent, _) in cells}, CONTENTS["agent's"]))
    machine.run(script_of({path: host for path, (host, _, _) in cells}, CONTENTS["host's new"]), cwd=CONFIG, check=True)
    once = look(machine)
    look(machine)
    yield {"once": once, "thrice": look(machine)}
    machine.install_policy(PLAYING_POLICY)


@pytest.fixture(scope="module")
def changed_classes(empty_config, table):
    """The same for classes that change: after one and after three more starts."""
    machine = empty_config
    cells = [(f"from-{old}-to-{new}/{act}", act) for old, new in CHANGES for act in ACTS]
    machine.run("rm -r *", cwd=CONFIG, check=True)
    machine.run(script_of({path: "create" for path, _ in cells}, CONTENTS["host"]), cwd=CONFIG, check=True)
    machine.install_policy(policy_with({f"from-{old}-to-{new}": old for old, new in CHANGES}))
    agent_says(machine, "sh", 'cd "$PI_CODING_AGENT_DIR"\n' + script_of(dict(cells), CONTENTS["agent's"]))
    machine.install_policy(policy_with({f"from-{old}-to-{new}": new for old, new in CHANGES}))
    once = look(machine)
    look(machine)
    yield {"once": once, "thrice": look(machine)}
    machine.install_policy(PLAYING_POLICY)


def assert_outcome(seen, path, expected):
    wanted = CONTENTS[expected].rstrip("\n") if expected else None
    assert (seen["once"].get(path), seen["thrice"].get(path)) == (wanted, wanted)


@pytest.mark.parametrize(("file_class", "scenario"), CELLS)
def test_what_becomes_of_a_file(file_class, scenario, table):
    expected = SCENARIOS[scenario][2][file_class]
    for deep in ("", ".d/er/file"):
        assert_outcome(table, f"{file_class}/{name_of(scenario)}{deep}", expected)


@pytest.mark.parametrize(("change", "act"), [(change, act) for change in CHANGES for act in ACTS], ids=str)
def test_what_becomes_of_a_file_whose_class_changes(change, act, changed_classes):
    assert_outcome(changed_classes, f"from-{change[0]}-to-{change[1]}/{act}", CHANGES[change][ACTS.index(act)])


def test_a_seed_that_the_agent_had_first_is_the_hosts_once_the_host_changes_it(empty_config):
    machine = empty_config
    machine.install_policy(policy_with({"seed": "seed"}))
    agent_says(machine, "sh", 'mkdir -p "$PI_CODING_AGENT_DIR/seed"; echo its >"$PI_CODING_AGENT_DIR/seed/late"')
    machine.run("mkdir -p seed; echo mine >seed/late", cwd=CONFIG, check=True)
    assert look(machine)["seed/late"] == "its"
    machine.run("echo new >seed/late", cwd=CONFIG, check=True)
    assert look(machine)["seed/late"] == "new"
    agent_says(machine, "sh", 'echo its >"$PI_CODING_AGENT_DIR/seed/late"')
    assert look(machine)["seed/late"] == "its"


def test_the_longest_rule_counts_and_a_directory_is_looked_into_whatever_its_own_class_is(empty_config):
    machine = empty_config
    machine.install_policy(policy_with({"d": "never", "d/copied": "mirror", "d/copied/not": "agent", "sessions/shared": "seed"}))
    files = "d/no d/copied/yes d/copied/not/this sessions/no sessions/shared/yes"
    machine.run(f"for f in {files}; do mkdir -p $(dirname $f); echo host >$f; done", cwd=CONFIG, check=True)
    seen = look(machine)
    machine.run("rm -r d sessions", cwd=CONFIG, check=True)
    machine.install_policy(PLAYING_POLICY)
    assert {path for path in seen if path.startswith(("d/", "sessions/"))} == {"d/copied/yes", "sessions/shared/yes"}
