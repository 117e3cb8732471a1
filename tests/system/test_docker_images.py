"""An image that is a Debian of its own, as people have them: a session takes its top alone, and everything else from the host."""

import pytest
from engine import engine_of
from launching import PLAYING_POLICY, pi

IMAGE = "debian:of-the-tests"
# The links and directories of a Debian root, with files that differ from the host's, and a program that must not run.
MAKE = f"""
set -eu
tree=$(mktemp -d /var/tmp/image.XXXXXX)
cd $tree
mkdir -p usr etc var/lib home root tmp run proc sys dev opt mnt of-the-image
cp -a /bin /sbin /lib /lib64 .
tar -C / -c usr/bin usr/lib/x86_64-linux-gnu | tar -x
cp -a /etc/debian_version /etc/passwd /etc/group etc/
echo the image >usr/of-the-image; echo the image >etc/of-the-image; echo the image >of-the-image/file; chmod 0666 of-the-image/file; chmod 0777 of-the-image
printf '#!/bin/sh\\necho the image\\n' >usr/bin/id; chmod 0755 usr/bin/id
tar -c . | docker import --change 'ENTRYPOINT ["/bin/sh", "-c", "echo the image"]' --change 'CMD ["of-the-image"]' - {IMAGE}
rm -r $tree
"""


@pytest.fixture(scope="module")
def image(playing):
    with engine_of(playing, "docker"):
        playing.root(MAKE, check=True, timeout=600)
        playing.install_policy(PLAYING_POLICY + f'sandbox: {{method: docker, image: "{IMAGE}"}}\n')
        yield playing
        playing.install_policy(PLAYING_POLICY)


def shell(machine, script):
    return pi(machine, "sh", script)


def test_programs_and_files_are_the_hosts(image):
    done = shell(image, "id -un; cat /etc/debian_version; ls /usr/of-the-image /etc/of-the-image 2>&1 | grep -c 'No such file'")
    assert (done.returncode, done.stderr) == (0, b""), done
    assert done.stdout.decode().splitlines() == ["pi-agent-alice", image.root(["cat", "/etc/debian_version"]).stdout.decode().strip(), "2"], done


def test_links_at_the_top_stay_links(image):
    done = shell(image, "readlink /bin /lib64; /bin/sh -c 'echo well'")
    assert done.stdout.decode().splitlines() == ["usr/bin", "usr/lib64", "well"], done


def test_what_else_is_at_the_top_is_seen_and_cannot_be_changed(image):
    done = shell(image, "cat /of-the-image/file; echo x >/of-the-image/file; echo x >/of-the-image/new; rm /of-the-image/file")
    assert done.stdout == b"the image\n" and done.returncode != 0, done
    assert done.stderr.count(b"Read-only file system") == 3, done


def test_the_project_is_written_as_ever(image):
    done = shell(image, "echo text >made && cat made && rm made")
    assert (done.returncode, done.stdout) == (0, b"text\n"), done
