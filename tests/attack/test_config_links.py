"""Links of the user's config that stay links in the agent's home: none gives the agent a say in what its user mirrors."""

import pytest
from target import Outcome

pytestmark = pytest.mark.position("agent")

USERS = "/var/lib/pi-agent/users"
HOME = "/home/alice"
CONFIG = f"{HOME}/.pi/agent"
# A trap in the home of bob's agent: the same account, so that nothing but the sync's own care keeps alice's writer out of it.
TRAP = f"{USERS}/bob/home/trap"


@pytest.fixture(scope="module", autouse=True)
def config_comes_back(product, weak):
    made = (f"{HOME}/.dots", f"{USERS}/alice", TRAP)
    with product.config_set_aside(*made), weak.config_set_aside(*made):
        yield


def clear(target):
    target.machine.root(f"rm -rf {USERS}/alice {HOME}/.pi {HOME}/.dots; rm -rf {TRAP}; install -d -m 700 -o pi-agent -g pi-agent {TRAP}", check=True)
    target.machine.run(f"mkdir -p {CONFIG}/prompts {CONFIG}/npm/p {HOME}/.dots", check=True)


def in_agents_home(target, script):
    return target.pi("sh", "-ec", f"cd $HOME/.pi/agent; {script}")


# What the user has, where the words are read inside, and where the agent puts its own.
WAYS = {
    "a link to what the agent may change": ("echo good >npm/p/words; ln -s ../npm/p/words prompts/words", "prompts/words", "npm/p/words"),
    "a link to a directory that the agent may change": ("echo good >npm/p/words; ln -s ../npm/p prompts/p", "prompts/p/words", "npm/p/words"),
    "a chain of links to it": ("echo good >npm/p/words; ln -s c prompts/b; ln -s ../npm/p prompts/c; ln -s b/words prompts/words", "prompts/words", "npm/p/words"),
    "a link out of a directory that is followed": ("mkdir ~/.dots/s; echo good >~/.dots/words; ln -s ../words ~/.dots/s/words; mkdir skills; ln -s ~/.dots/s skills/s", "skills/s/words", "skills/words"),
    "a link by way of that": ("mkdir -p ~/.dots/s/in; echo good >~/.dots/words; mkdir skills; ln -s ~/.dots/s/in skills/in; ln -s in/../../words skills/words", "skills/words", "words"),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_link_leads_to_is_the_users_and_not_the_agents(way, prove):
    arrange, read, own = WAYS[way]

    def attack(target):
        clear(target)
        target.machine.run(["sh", "-ec", arrange], cwd=CONFIG, check=True)
        in_agents_home(target, f"rm -f {own}; echo evil >{own}")
        done = in_agents_home(target, f"cat {read}")
        return Outcome(done.stdout != b"good\n", done)

    on, _ = prove(attack, "links-in-tree")
    assert on.seen.returncode == 0, on


# Links stay, the agent leads what they lead to elsewhere, and the user's next change would be written there.
TRAPS = {
    "into what a link leads to": ("ln -s prompts shortcut", "rm -rf prompts; ln -s {trap} prompts", "echo x >prompts/new"),
    "a link itself": ("true", "rm -rf prompts; ln -s {trap} prompts", "ln -s ../npm prompts/new"),
}


@pytest.mark.parametrize("what", TRAPS)
def test_the_writer_goes_through_no_link_that_it_made_or_found(what, prove):
    arrange, plant, change = TRAPS[what]

    def attack(target):
        clear(target)
        target.machine.run(["sh", "-ec", f"echo x >prompts/words; {arrange}"], cwd=CONFIG, check=True)
        in_agents_home(target, plant.format(trap=TRAP))
        target.machine.run(["sh", "-ec", change], cwd=CONFIG, check=True)
        done = target.pi("true")
        return Outcome(target.machine.root(f"test -e {TRAP}/new || test -L {TRAP}/new").returncode == 0, done)

    on, _ = prove(attack, "beneath")
    assert on.seen.returncode == 0, on


def test_a_link_that_stays_is_led_nowhere_else_for_the_next_start(product, control_seen):
    """The agent leads the user's links to a trap; directories and files come in their places: none is made there."""
    clear(product)
    product.machine.run(["sh", "-ec", "echo x >prompts/words; ln -s prompts d; ln -s prompts/words f; ln -s d/words c"], cwd=CONFIG, check=True)
    lead_away = f"for l in d f c; do ln -sfn {TRAP} $l; done; readlink d f c"
    assert in_agents_home(product, lead_away).stdout.decode().split() == [TRAP] * 3
    assert in_agents_home(product, "readlink d f c").stdout == b"prompts\nprompts/words\nd/words\n"
    in_agents_home(product, lead_away)
    product.machine.run(["sh", "-ec", "rm d f c; mkdir d; echo x >d/new; echo x >f; mkdir c; ln -s ../d/new c/new"], cwd=CONFIG, check=True)
    assert in_agents_home(product, "cat d/new f c/new; test ! -L d").stdout == b"x\nx\nx\n"
    assert product.machine.root(["ls", TRAP]).stdout == b""
    control_seen("the links led to the trap as the session ended")


def test_a_link_in_a_root_that_stays_in_it_reveals_nothing_and_is_no_way_out(product, control_seen):
    """Links that a session plants: they stay when they stay, and the rest is left out, whatever the text."""
    clear(product)
    root = f"{HOME}/projects/skills-linked"
    product.machine.run(["sh", "-ec", f"mkdir -p {root}/s; echo secret >{HOME}/.dots/key; ln -s {root} {CONFIG}/skills; echo x >{root}/s/x"], check=True)
    plants = {"a": "s/x", "b": "a", "c": "../../.dots/key", "d": f"{HOME}/.dots/key", "e": "s/../../../.dots/key", "f": "f", "g": f"{root}/s/x", "h": "../skills-linked/s/x"}
    script = "; ".join(f"ln -s {text} {root}/{name}" for name, text in plants.items())
    assert product.pi("sh", "-ec", script).returncode == 0
    done = in_agents_home(product, "cd skills; for l in a b c d e f g h; do echo $l $(readlink $l) $(cat $l 2>/dev/null); done")
    assert done.stdout.decode().splitlines() == ["a s/x x", "b a x", "c", "d", "e", "f", "g s/x x", "h x"], done
    assert done.stderr.count(b"where an agent can have made it") >= 3, done
    assert product.machine.root(["grep", "-rlF", "secret", f"{USERS}/alice"]).returncode != 0
    product.machine.root(["rm", "-rf", root], check=True)
    control_seen("the links that stay are there")
