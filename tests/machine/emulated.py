"""A machine in qemu, without hardware support: another kernel than this host's, and control groups that nothing else uses.

It boots a machine root with the product, runs one program as root, and ends. The program's lines are what is learned of it.
"""

import json
import shutil
import subprocess
import time

from cache import CACHE, LEAN, Build, bootstrap, copy_tree, digest, machine_root, made_once, remove_tree
from progress import quietly, say
from recipes import EMULATED

MEMORY_MIB = 1024
DISK = "1536M"
SECONDS = 540
QUOTA_DISK = "256M"  # a second disk, /dev/vdb, with project quotas
PROGRAM = "/usr/local/lib/emulated.py"
# ttyS0 is the console, ttyS1 takes what the program says. A shell on the console would wait for its login.
UNIT = f"""[Unit]
Description=The program that the tests run here
After=multi-user.target

[Service]
Type=oneshot
ExecStart=/usr/bin/python3 -B {PROGRAM}
ExecStopPost=/usr/bin/systemctl --no-block poweroff
StandardOutput=file:/dev/ttyS1
StandardError=inherit

[Install]
WantedBy=multi-user.target
"""
KERNEL_LINE = "console=ttyS0 root=/dev/vda rootfstype=ext4 rw quiet panic=-1 systemd.mask=serial-getty@ttyS0.service"
# What the root file system needs before it can be read, what sessions use, and the way to commands; all else is in the kernel, or not needed.
EARLY_MODULES = "virtio_pci virtio_blk virtio_console ext4 crc32c_generic overlay quota_tree quota_v2"
# Before the kernel is installed, so that the small image is the only one that is made.
LEAN_IMAGE = (
    'mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/usr/share/initramfs-tools/modules.d"'
    ' && echo MODULES=list >"$1/etc/initramfs-tools/conf.d/lean"'
    f' && printf "%s\\n" {EARLY_MODULES} >"$1/usr/share/initramfs-tools/modules.d/lean"'
)


class EmulationFailed(Exception):
    pass


def kernel(release=EMULATED.release):
    """A directory with `vmlinuz` and `initrd` of the distribution's own kernel."""

    def make(directory):
        say(f"fetching the kernel of {release}")
        root = directory / "root"
        directory.mkdir(parents=True)
        bootstrap(release, EMULATED.packages, root, f"--essential-hook={LEAN_IMAGE}")
        for name, pattern in (("vmlinuz", "vmlinuz-*"), ("initrd", "initrd.img-*")):
            (found,) = (root / "boot").glob(pattern)
            shutil.copy(found, directory / name)
        remove_tree(root)

    return made_once(CACHE / "emulated" / f"kernel-{digest(LEAN, EMULATED, release, LEAN_IMAGE)}", make)


def make_disk(work, files):
    """A root file system with the product and `files` ({path in the machine: contents}) in it."""
    root = work / "root"
    copy_tree(machine_root(EMULATED.machine), root)
    Build(EMULATED.machine).install(root)
    units = root / "etc/systemd/system"
    (units / "emulated.service").write_text(UNIT)
    (units / "multi-user.target.wants/emulated.service").symlink_to("/etc/systemd/system/emulated.service")
    for path, contents in files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(contents)
        target.chmod(0o755)
    return file_system(root, work, DISK)


def file_system(root, work, size):
    """A disk image with what is below `root`, which goes away."""
    quietly(["mke2fs", "-q", "-F", "-t", "ext4", "-d", root, work / "disk", size], work / "mke2fs.log")
    remove_tree(root)
    return work / "disk"


def quota_disk(work):
    """An empty file system that can count by project."""
    options = ["-I", "256", "-b", "4096", "-O", "quota,project", "-E", "quotatype=usrquota:prjquota"]
    quietly(["mke2fs", "-q", "-F", "-t", "ext4", *options, work / "quota-disk", QUOTA_DISK], work / "mke2fs.log")
    return work / "quota-disk"


QEMU = ["qemu-system-x86_64", "-machine", "pc", "-cpu", "max", "-smp", "2", "-nodefaults", "-display", "none"]
TCG = "tcg,thread=multi"  # without any help of the processor


def drive(disk):
    return ["-drive", f"file={disk},if=virtio,format=raw,cache=unsafe"]


def qemu(work, disk, release=EMULATED.release, memory=MEMORY_MIB, accelerator=TCG, ports=()):
    """The command line; `ports`: of qemu for what else leads into the machine."""
    files = kernel(release)
    command = [*QEMU, "-accel", accelerator, "-m", f"{memory}M", "-no-reboot", "-kernel", files / "vmlinuz", "-initrd", files / "initrd"]
    command += ["-append", KERNEL_LINE, *drive(disk)]
    return [*command, "-serial", f"file:{work / 'console'}", *ports]


def run(work, program, files):
    """Boots, runs `program` (Python) to its end, and returns the JSON objects that it printed, one a line."""
    disk = make_disk(work, {PROGRAM: program, **files})
    say(f"booting {EMULATED.release} with its own kernel in qemu")
    started = time.monotonic()
    try:
        ended = subprocess.run(qemu(work, disk, ports=["-serial", f"file:{work / 'said'}", *drive(quota_disk(work))]), stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
        problem = f"status {ended.returncode}: {ended.stderr.decode(errors='replace')}" if ended.returncode else ""
    except subprocess.TimeoutExpired:
        problem = f"not done after {SECONDS} s"
    console = (work / "console").read_text(errors="replace")[-3000:]
    said = (work / "said").read_text(errors="replace").splitlines()
    say(f"it ended after {time.monotonic() - started:.0f} s")
    if problem or not said or said[-1].strip() != '"done"':
        raise EmulationFailed(f"{problem}\nthe program said: {said[-20:]}\nthe console: {console}")
    return [json.loads(line) for line in said[:-1]]
