"""Feeds records to the check of the record: a wrong one must never pass."""

import unittest

from record_check import IDS, findings_in_form, findings_in_refusals, findings_in_sessions, refusal_in, without_waits

BOOT = "b" * 32
NAME = "0123456789abcdef0123456789abcdef"
OTHER = "f" * 32


def entry(event, session=NAME, **changes):
    """A right one; a change to None takes the field away."""
    made = {
        "MESSAGE": "words", "MESSAGE_ID": IDS[event], "PRIORITY": "6", "SYSLOG_IDENTIFIER": "pi-agent-runner", "PI_AGENT_EVENT": event,
        "PI_AGENT_VERSION": "0.1.0", "PI_AGENT_SESSION": session, "_UID": "0", "_PID": "7", "_BOOT_ID": BOOT,
    }  # fmt: skip
    if event == "preflight":
        whose = {"PI_AGENT_USER": "alice", "PI_AGENT_UID": "1000", "PI_AGENT_DIRECTORY": "/srv/a", "PI_AGENT_DURATION_USEC": "5"}
        made.update({"PI_AGENT_RESULT": "passed", "SANDBOX_SELECT": "systemd", "PI_AGENT_SESSION": None, **whose})
    elif event != "problem":
        made.update({
            "PI_AGENT_USER": "alice", "PI_AGENT_UID": "1000", "PI_AGENT_ACCOUNT": "pi-agent-alice", "PI_AGENT_PROJECT": "/srv/a", "PI_AGENT_DIRECTORY": "/srv/a/b",
            "SANDBOX_SELECT": "systemd", "PI_AGENT_UNIT": f"pi-agent-{session}.service", "PI_AGENT_PROGRAM": "agent",
        })  # fmt: skip
    if event == "ended":
        made.update({"PI_AGENT_EXIT_CODE": "0", "PI_AGENT_DURATION_USEC": "12"})
    if event == "denied":
        made.update({"PI_AGENT_STATUS": "77", "PI_AGENT_CODE": "E77", "PI_AGENT_REASON": "denied: no"})
    if event == "connection-denied":
        made.update({"PI_AGENT_CODE": "no-rule", "PI_AGENT_REASON": "no rule names it", "PI_AGENT_COUNT": "2", "PI_AGENT_HOST": "a.example", "PI_AGENT_PORT": "443"})
    if event == "problem":
        made.update({"PI_AGENT_REASON": "bad"})
    made.update(changes)
    return {name: value for name, value in made.items() if value is not None}


class Form(unittest.TestCase):
    def test_right_entries_pass(self):
        for event in IDS:
            self.assertEqual(findings_in_form(entry(event)), [])
        self.assertEqual(findings_in_form(entry("ended", PI_AGENT_EXIT_CODE=None, PI_AGENT_REASON="killed")), [])
        self.assertEqual(findings_in_form(entry("denied", session=None, PI_AGENT_UNIT=None)), [])
        own = {"SYSLOG_IDENTIFIER": "pi", "_UID": "1000"}
        self.assertEqual(findings_in_form(entry("denied", session=None, PI_AGENT_UNIT=None, **own)), [])

    def test_wrong_ones_do_not(self):
        wrong = [
            entry("started", PI_AGENT_USER=None),
            entry("started", PI_AGENT_SESSION="x"),
            entry("started", PI_AGENT_PROJECT="/srv/a\nb"),
            entry("started", PI_AGENT_PROJECT=[47, 255]),  # bytes that are no text
            entry("started", PI_AGENT_USER=["alice", "root"]),  # the field twice
            entry("started", PI_AGENT_PROMPT="secret"),
            entry("started", PI_AGENT_EXIT_CODE="0"),
            entry("started", MESSAGE_ID=IDS["ended"]),
            entry("started", PI_AGENT_EVENT="begun"),
            entry("started", SANDBOX_SELECT="runc"),
            entry("started", SYSLOG_IDENTIFIER="pi", _UID="1000"),
            entry("ended", PI_AGENT_EXIT_CODE=None),
            entry("ended", PI_AGENT_EXIT_SIGNAL="9"),
            entry("ended", PI_AGENT_DURATION_USEC="-1"),
            entry("preflight", PI_AGENT_USER=None),
            entry("denied", PI_AGENT_REASON=None),
            entry("denied", PI_AGENT_STATUS="0"),
            entry("denied", PI_AGENT_CODE="77"),
            entry("denied", SYSLOG_IDENTIFIER="pi", _UID="1001"),
            entry("connection-denied", PI_AGENT_CODE=None),
            entry("connection-denied", PI_AGENT_COUNT="0"),
        ]
        for one in wrong:
            self.assertNotEqual(findings_in_form(one), [], one)


class Sessions(unittest.TestCase):
    def found(self, *entries, living=(), killed=False):
        return findings_in_sessions(entries, BOOT, living, killed)

    def test_one_started_and_one_ended_is_right_and_a_refusal_is_neither(self):
        pair = entry("started"), entry("ended")
        self.assertEqual(self.found(*pair, entry("denied", OTHER)), [])
        self.assertEqual(self.found(entry("started"), living=[NAME]), [])
        self.assertEqual(self.found(entry("started", _BOOT_ID="a" * 32)), [])

    def test_too_few_and_too_many_are_not(self):
        self.assertIn("never ended", self.found(entry("started"))[0])
        self.assertIn("never started", self.found(entry("ended"))[0])
        self.assertIn("has 2 started", self.found(entry("started"), entry("started"), entry("ended"))[0])
        self.assertIn("has 2 ended", self.found(entry("started"), entry("ended"), entry("ended"))[0])
        self.assertIn("has 2 denied", self.found(entry("denied"), entry("denied", _PID="8"))[0])
        self.assertIn("process 7 has 2 denied", self.found(entry("denied"), entry("denied", OTHER))[0])
        self.assertIn("was refused, and started", self.found(entry("started"), entry("ended"), entry("denied"))[0])

    def test_a_second_end_is_right_only_of_another_process_that_does_not_know_how_and_where_the_first_was_killed(self):
        first, other = entry("ended"), {"_PID": "8", "PI_AGENT_EXIT_CODE": None}
        second = entry("ended", PI_AGENT_REASON="its runner did not record how: it was killed", **other)
        self.assertEqual(self.found(entry("started"), first, second, killed=True), [])
        self.assertIn("has 2 ended", self.found(entry("started"), first, second)[0])
        self.assertIn("has 2 ended", self.found(entry("started"), second, second, killed=True)[0])
        self.assertIn("has 2 ended", self.found(entry("started"), first, entry("ended", PI_AGENT_REASON="so", **other), killed=True)[0])
        self.assertIn("has 3 ended", self.found(entry("started"), first, second, second, killed=True)[0])

    def test_the_end_is_of_the_same_session(self):
        self.assertIn("another PI_AGENT_USER", self.found(entry("started"), entry("ended", PI_AGENT_USER="bob"))[0])


class Waits(unittest.TestCase):
    def test_only_the_line_of_a_wait_is_left_out(self):
        wait = b"pi: waiting for systemd, which gives the runner a scope: two seconds without progress; Ctrl-C or kill 7 ends pi\n"
        self.assertEqual(without_waits(wait), b"")
        self.assertEqual(without_waits(b"pi: one\n" + wait + b"two seconds without progress; \nlast"), b"pi: one\ntwo seconds without progress; \nlast")


class Refusals(unittest.TestCase):
    def test_what_a_user_was_told_must_be_there_as_often(self):
        told = ("alice", "denied: no")
        self.assertEqual(findings_in_refusals([entry("denied")], [told]), [])
        self.assertEqual(len(findings_in_refusals([entry("denied")], [told, told])), 1)
        self.assertEqual(len(findings_in_refusals([], [told])), 1)
        self.assertEqual(len(findings_in_refusals([entry("denied", PI_AGENT_USER="bob")], [told])), 1)

    def test_only_a_refusal_of_pi_itself_counts(self):
        self.assertEqual(refusal_in(77, b"pi: denied: a\\x0ab\n"), "denied: a\\x5cx0ab")
        self.assertEqual(refusal_in(78, b"pi: /etc/pi-agent/policy.yaml: one\npi: two\n"), "/etc/pi-agent/policy.yaml: one\\x0atwo")
        for status, said in ((0, b"pi: denied: a\n"), (77, b"denied: a\n"), (77, b"pi: denied: a\nmore\n"), (77, b"")):
            self.assertIsNone(refusal_in(status, said))


if __name__ == "__main__":
    unittest.main()
