"""sandbox.image under podman: a session takes the image's top alone, and everything else from the host; the image is found by name, digest and id."""

import json

import pytest
from engine import engine_of
from launching import PLAYING_POLICY, pi

IMAGE = "localhost/debian:of-the-tests"
TAKES_ANY = '{"default": [{"type": "insecureAcceptAnything"}]}'
# podman may leave its storage mounted on itself.
FORGET = "umount -l /var/lib/containers/storage/overlay; rm -rf /etc/containers/policy.json /var/lib/containers; rmdir --ignore-fail-on-non-empty /etc/containers"
# The links and directories of a Debian root, with files that differ from the host's, and a program that must not run.
MAKE = f"""
set -eu
tree=$(mktemp -d /var/tmp/image.XXXXXX)
cd $tree
mkdir -p usr/bin etc var/lib home root tmp run proc sys dev opt mnt of-the-image
cp -a /bin /sbin /lib /lib64 .
echo the image >usr/of-the-image; echo the image >etc/of-the-image; echo the image >of-the-image/file; chmod 0666 of-the-image/file; chmod 0777 of-the-image
printf '#!/bin/sh\\necho the image\\n' >usr/bin/id; chmod 0755 usr/bin/id
tar -c . | podman import --change 'ENV OF_THE_IMAGE=1' --change 'ENTRYPOINT ["/bin/sh", "-c", "echo the image"]' - {IMAGE}
rm -r $tree
"""


def named(image):
    return PLAYING_POLICY + f'sandbox: {{method: podman, image: "{image}"}}\n'


@pytest.fixture(scope="module")
def image(playing):
    with engine_of(playing, "podman"):
        playing.root(["mkdir", "-p", "/etc/containers"], check=True)
        playing.write("/etc/containers/policy.json", TAKES_ANY)
        playing.root(MAKE, check=True, timeout=600)
        playing.install_policy(named(IMAGE))
        yield playing
        playing.install_policy(PLAYING_POLICY)
        playing.root(FORGET, check=True)


def shell(machine, script):
    return pi(machine, "sh", script)


def test_programs_and_files_are_the_hosts(image):
    done = shell(image, "id -un; echo $(cat /etc/hostname); ls /usr/of-the-image /etc/of-the-image 2>&1 | grep -c 'No such file'; echo $OF_THE_IMAGE")
    assert (done.returncode, done.stderr) == (0, b""), done
    assert done.stdout.decode().splitlines() == ["pi-agent-alice", image.root(["hostname"]).stdout.decode().strip(), "2", ""], done


def test_what_else_is_at_the_top_is_seen_and_cannot_be_changed(image):
    done = shell(image, "cat /of-the-image/file; echo x >/of-the-image/file; echo x >/of-the-image/new; rm /of-the-image/file")
    assert done.stdout == b"the image\n" and done.returncode != 0, done
    assert done.stderr.count(b"Read-only file system") == 3, done


def test_the_project_is_written_as_ever(image):
    done = shell(image, "echo text >made && cat made && rm made")
    assert (done.returncode, done.stdout) == (0, b"text\n"), done


def test_the_canary_finds_no_fault(image):
    done = pi(image, "--pi-agent-canary")
    assert done.returncode == 0, done


def test_an_image_is_found_by_its_id_and_its_digest_too(image):
    known = json.loads(image.root(["podman", "image", "inspect", IMAGE], check=True).stdout)[0]
    for name in (known["Id"], f"{IMAGE.partition(':')[0]}@{known['Digest']}", IMAGE.removeprefix("localhost/")):
        image.install_policy(named(name))
        done = shell(image, "cat /of-the-image/file")
        assert (done.returncode, done.stdout) == (0, b"the image\n"), (name, done)
    image.install_policy(named(IMAGE))


def test_an_image_that_is_not_there_ends_the_start_with_the_remedy(image):
    image.write("/etc/pi-agent/policy.yaml", named("localhost/nowhere:1"))
    done = shell(image, "true")
    image.write("/etc/pi-agent/policy.yaml", named(IMAGE))
    assert done.returncode == 69 and b"is not among root's images" in done.stderr and b"podman pull localhost/nowhere:1" in done.stderr, done


def test_an_image_with_a_link_in_the_way_of_the_view_is_refused(image):
    """podman mounts in any order, so a part of the view could be covered at some starts."""
    image.root("set -e; mkdir -p /var/tmp/odd/usr/bin; ln -s usr/bin /var/tmp/odd/sbin; tar -C /var/tmp/odd -c . | podman import - localhost/odd:1; rm -r /var/tmp/odd", check=True)
    image.install_policy(named("localhost/odd:1"))
    done = shell(image, "true")
    image.install_policy(named(IMAGE))
    assert done.returncode == 69 and b"has a link at /sbin, to usr/bin" in done.stderr, done
