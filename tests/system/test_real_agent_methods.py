"""The main job under every other sandbox.method: the real agent asks its model, runs commands and writes files that are its user's."""

import pytest
from engine import under_method
from launching import DEMO, STANDARD_POLICY, owner_and_mode, pi
from test_real_agent import prompt, tool_results


@pytest.fixture(params=["bwrap", "podman", "docker"])
def method(request, machine):
    with under_method(machine, request.param, STANDARD_POLICY):
        machine.forget_model_requests()
        yield request.param


def test_the_real_agent_works_as_its_user_sees_it(machine, method):
    steps = [{"bash": "id -un; pwd; touch /usr/made 2>&1 || echo closed"}, {"write": {"path": f"by-{method}.txt", "content": "by the agent\n"}}]
    done = pi(machine, "-p", prompt(*steps), cwd=DEMO, env={"LC_ALL": "C"})
    try:
        assert done.returncode == 0 and done.stdout.startswith(b"finished"), done
        answer = tool_results(machine)[0].splitlines()
        assert answer[:2] == ["pi-agent-alice", DEMO] and answer[-1] == "closed", answer
        assert machine.read(f"{DEMO}/by-{method}.txt") == b"by the agent\n"
        assert owner_and_mode(machine, f"{DEMO}/by-{method}.txt") == "alice:alice 644"
    finally:
        machine.root(["rm", "-f", f"{DEMO}/by-{method}.txt"], check=True)
