"""./try --emulate with the capabilities that docker gives root, and no more: it builds, boots and shows what ./try shows."""

import os
import subprocess

from cache import SOURCE

# Docker's default: no mounting, no control groups, no tracing.
CAPABILITIES = "chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw sys_chroot mknod audit_write setfcap".split()
SECONDS = 1800


def as_in_a_container(*command):
    kept = ",".join(f"+{name}" for name in CAPABILITIES)
    line = ["setpriv", f"--bounding-set=-all,{kept}", "--inh-caps=-all", *command]
    return subprocess.run(line, cwd=SOURCE, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, env={**os.environ, "LC_ALL": "C.UTF-8"})


def test_without_it_nothing_is_begun():
    refused = as_in_a_container("./try")
    assert refused.returncode == 69 and b"CAP_SYS_ADMIN" in refused.stderr and b"./try --emulate" in refused.stderr, refused


def test_the_demonstration_is_the_same():
    done = as_in_a_container("./try", "--emulate")
    assert done.returncode == 0, done.stderr.decode()[-5000:]
    said = done.stdout.decode()
    for words in ("probes passed", "its owner:  alice:alice\n", "the agent:  ran as pi-agent-alice", "  ./try --emulate --shell"):
        assert words in said, said
