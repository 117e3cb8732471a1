"""Makes a test machine look like NixOS where it matters: everything in a store, behind links, and put there as the NixOS module says."""

import os
import shutil
from pathlib import Path

from cache import NIXOS, NIXOS_PREFIX, NIXOS_PROGRAMS, STORE, Build
from evaluating import STAND_IN, nix
from recipes import DEFAULT_AGENT

AGENT = f"{STORE}/pi-coding-agent"  # where the stand-in for nixpkgs has it
SYSTEM = f"{STORE}/nixos-system"
PROGRAMS = f"{STORE}/system-path/bin"
PATH = "/run/wrappers/bin:/run/current-system/sw/bin"
POLICY = "/etc/pi-agent/policy.yaml"


def evaluate(module):
    """What the module makes of m3ta.pi-agent = `module`, a text of Nix."""
    modules = f"{{ layout.m3ta.pi-agent = {module}; }}"
    arguments = ["--arg", "library", STAND_IN, "--arg", "modules", modules, "--argstr", "ours", NIXOS_PREFIX]
    seen = nix("evaluate.nix", "-A", "configurations.layout", *arguments)
    assert seen["failed"] == [], seen["failed"]
    return seen


def sudoers_of(sudo):
    """The file as NixOS renders it from its options: root and wheel, extraRules, extraConfig."""
    lines = ["root ALL=(ALL:ALL) SETENV: ALL", "%wheel ALL=(ALL:ALL) SETENV: ALL"]
    for rule in sudo["extraRules"]:
        commands = ", ".join(f"{':'.join(command['options'])}: {command['command']}" for command in rule["commands"])
        for who in [*rule["users"], *(f"%{group}" for group in rule["groups"])]:
            lines.append(f"{who} {rule['host']}=({rule['runAs']}) {commands}")
    return "\n".join([*lines, "", "# extraConfig", sudo["extraConfig"]])


def into_store(root, name, text, mode=0o444):
    path = Path(f"{root}{STORE}/{name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return f"{STORE}/{name}"


def link(root, path, target):
    at = Path(f"{root}{path}")
    at.parent.mkdir(parents=True, exist_ok=True)
    at.unlink(missing_ok=True)
    at.symlink_to(target)


def furnish(machine):
    """Before the boot: the store with product, agent and programs; none of the product is anywhere else."""
    root = machine.filesystem
    machine.add_agent(DEFAULT_AGENT, AGENT)
    Build(machine.recipe, **NIXOS).install(root)
    for program, name in (("bash", "bash"), ("bubblewrap", "bwrap"), ("util-linux", "setpriv")):
        directory = Path(f"{root}{NIXOS_PROGRAMS[program]}/bin")
        directory.mkdir(parents=True)
        shutil.copy2(root / "usr/bin" / name, directory / name)
    for name in sorted({*os.listdir(root / "usr/bin"), *os.listdir(root / "usr/sbin")} - {"sudo", "sudoedit"}):
        link(root, f"{PROGRAMS}/{name}", f"/usr/{'bin' if os.path.lexists(root / 'usr/bin' / name) else 'sbin'}/{name}")
    for name in ("pi", "pi-agentctl"):
        link(root, f"{PROGRAMS}/{name}", f"{NIXOS_PREFIX}/bin/{name}")
    link(root, f"{SYSTEM}/sw", f"{STORE}/system-path")
    with open(root / "etc/group", "a") as groups:
        groups.write("nixbld:x:30000:\n")
    os.chown(f"{root}{STORE}", 0, 30000)
    os.chmod(f"{root}{STORE}", 0o1775)
    Path(f"{root}{STORE}/sudo/bin").mkdir(parents=True)
    (root / "usr/bin/sudo").rename(f"{root}{STORE}/sudo/bin/sudo")
    os.chmod(f"{root}{STORE}/sudo/bin/sudo", 0o555)
    shutil.rmtree(root / "etc/sudoers.d")
    (root / "etc/profile.d/nixos.sh").write_text(f"export PATH={PATH}:$PATH\n")


def start_system(machine):
    """After the boot: what is below /run, where alone something is setuid."""
    machine.root(f"""
        ln -s {SYSTEM} /run/current-system && mkdir -p /run/wrappers && mount -t tmpfs -o mode=755 tmpfs /run/wrappers
        mkdir /run/wrappers/wrappers.one && ln -s wrappers.one /run/wrappers/bin
        install -m 4755 {STORE}/sudo/bin/sudo /run/wrappers/bin/sudo
    """, check=True)  # fmt: skip


def build_policy(machine, seen):
    """Runs in the machine what builds the policy: /root/policy-build/out is that then."""
    machine.write("/root/policy-build/draft.yaml", seen["draft"])
    script = f"cd /root/policy-build && export draft=$PWD/draft.yaml out=$PWD/out && {{ {seen['build']} }}"
    return machine.root(["bash", "-e", "-c", script])


def switch(machine, seen):
    """As switch-to-configuration: accounts, files and directories, then the service."""
    root = machine.filesystem
    built = build_policy(machine, seen)
    assert built.returncode == 0, built
    policy = machine.read("/root/policy-build/out").decode()
    link(root, "/etc/static", into_store(root, "etc/etc/keep", "").rsplit("/", 1)[0])
    link(root, f"{STORE}/etc/etc/pi-agent/policy.yaml", into_store(root, "pi-agent-policy.yaml", policy))
    link(root, POLICY, "/etc/static/pi-agent/policy.yaml")
    machine.write("/etc/sudoers", sudoers_of(seen["sudo"]), mode=0o440)
    for name in seen["groups"]:
        machine.root(f"getent group {name} || groupadd --system {name}", check=True)
    for name, user in seen["users"].items():
        if user["isSystemUser"]:
            groups = f"--gid {user['group']}" + (f" --groups {','.join(user['extraGroups'])}" if user["extraGroups"] else "")
            options = f"--system --no-create-home --home-dir {user['home']} --shell /usr/sbin/nologin --comment '{user['description']}'"
            machine.root(f"getent passwd {name} || useradd {options} {groups} {name}", check=True)
    machine.write("/etc/tmpfiles.d/pi-agent.conf", "".join(f"{rule}\n" for rule in seen["tmpfiles"]))
    machine.root(["systemd-tmpfiles", "--create", "/etc/tmpfiles.d/pi-agent.conf"], check=True)
    for package in seen["unitsOf"]:
        for directory in os.listdir(f"{root}{package}/lib/systemd/system"):
            machine.root(["ln", "-sfn", f"{package}/lib/systemd/system/{directory}", f"/etc/systemd/system/{directory}"], check=True)
    service = seen["services"]["pi-agent-apply"]
    settings = "".join(f"{key}={'yes' if value is True else value}\n" for key, value in service["serviceConfig"].items())
    machine.write("/etc/systemd/system/pi-agent-apply.service", f"[Unit]\nDescription={service['description']}\n[Service]\n{settings}")
    return machine.root("systemctl daemon-reload && systemctl restart pi-agent-apply.service")


def home_manager(machine, generation, files):
    """Alice's config directory as a generation of home-manager leaves it: each file a link to a link into the store, one for each generation."""
    root, names = machine.filesystem, []
    for name, content in files.items():
        kept = into_store(root, f"{generation}-files/{name.replace('/', '-')}", content)
        link(root, f"{STORE}/{generation}-home-manager-files/.pi/agent/{name}", kept)
        names.append(name)
    script = "find .pi/agent -type l -delete; " + "; ".join(
        f"mkdir -p $(dirname .pi/agent/{name}) && ln -sfn {STORE}/{generation}-home-manager-files/.pi/agent/{name} .pi/agent/{name}" for name in names)
    machine.run(script, cwd="/home/alice", check=True)

