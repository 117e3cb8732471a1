"""A power cut: what takes the place of a document in the agent's home is on the disk before, and an error there leaves the old one."""

import json
import re

import pytest
from points import TRACE, Before, require_in_words, traced, waiting_at

pytestmark = pytest.mark.position("host")

HOST = "/home/alice/.pi/agent/settings.json"
INSIDE = "/var/lib/pi-agent/users/alice/home/.pi/agent/settings.json"
SYNCED = re.compile(rb'^fdatasync\(\d+<[^>]*/([^/>]+)>\) += 0$')
REPLACED = re.compile(rb'^renameat\(\d+<[^>]*>, "([^"]+)", \d+<[^>]*>, "settings\.json"\) += 0$')


@pytest.fixture(autouse=True)
def settings(weak):
    before = weak.machine.read(HOST)
    yield
    weak.machine.write(HOST, before, owner="alice")


def changed_start(target, number, *injection):
    """How a start ended before which alice changed her settings, and what its writer called."""
    target.machine.write(HOST, json.dumps({"durable": number}), owner="alice")
    with waiting_at(target, "writing") as reached, traced(reached, "--trace=fdatasync,renameat", *injection):
        reached.release()
        end = reached.end()
    return end, target.machine.read(TRACE).splitlines()


def inside(target):
    return json.loads(target.machine.read(INSIDE))


def test_a_document_is_on_the_disk_before_it_takes_the_place_of_the_old_one(weak):
    for number in (1, 2):  # as a new one, perhaps, and as another
        end, calls = changed_start(weak, number)
        assert end[0] == 0 and inside(weak)["durable"] == number, (end, inside(weak))
        replaced = [(turn, found.group(1)) for turn, line in enumerate(calls) if (found := REPLACED.match(line))]
        assert len(replaced) == 1, calls
        turn, name = replaced[0]
        assert name in [found.group(1) for line in calls[:turn] if (found := SYNCED.match(line))], calls


def test_an_error_of_the_disk_leaves_the_old_document_and_is_told(weak, control_seen):
    changed_start(weak, 3)
    before = Before(weak, "writing")
    end, calls = changed_start(weak, 4, "--inject=fdatasync:error=EIO")
    require_in_words(end)
    assert any(b"(INJECTED)" in line for line in calls), calls
    assert end[0] > 0 and b"to disk" in end[2] and b"Input/output error" in end[2], end
    assert inside(weak)["durable"] == 3 and not any(map(REPLACED.match, calls)), (inside(weak), calls)
    before.require_sound()
    assert inside(weak)["durable"] == 4
    control_seen("the next start, without the error, has the new document")
