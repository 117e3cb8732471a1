"""The clipboard of the user's terminal: the agent reaches it, unless the policy says otherwise."""

from launching import PLAYING_POLICY
from shells import Shell


def shown(machine, text):
    with Shell(machine) as shell:
        return shell.run(f"pi sh 'printf \"begin{text}\\033[1mend\\n\"'")[0]


def test_the_agent_reaches_the_clipboard_as_alone(machine, playing):
    said = shown(machine, r"\033]52;c;c2VjcmV0\007")
    assert b"begin\x1b]52;c;c2VjcmV0\x07\x1b[1mend\r\n" in said


def test_a_policy_keeps_it_from_the_clipboard_and_from_nothing_else(machine, playing_policy):
    playing_policy(PLAYING_POLICY + "wrapper: {clipboard: false}\n")
    for text in (r"\033]52;c;c2VjcmV0\007", r"\033]52;c;?\033\\\\", r"\033]052;c;x\007"):
        said = shown(machine, text)
        assert b"begin\x18\x1b[1mend\r\n" in said, said
    assert b"begin\x1b]0;title\x07\x1b[1mend\r\n" in shown(machine, r"\033]0;title\007")
    with Shell(machine) as shell:  # in pieces, as a slow agent writes
        said = shell.run(r"""pi sh 'for piece in "begin\033" "]5" "2;c;eA" "==\007" "end\n"; do printf "$piece"; sleep 0.1; done'""")[0]
    assert b"begin\x18end\r\n" in said, said
