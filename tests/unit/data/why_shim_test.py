"""What a session says of its hosts and paths, as a plain program, in dash and in bash: data/shims/pi-agent-why."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[3]
SHIM = SOURCES / "data/shims/pi-agent-why"
SHELLS = ("/bin/dash", "/bin/bash --posix")
RULES = """github.com:443 p.yaml:3:10
*.example.org:22 p.yaml:4:10
10.20.0.0/16:443 p.yaml:5:10
169.254.0.0/16:443 p.yaml:6:10
169.254.42.42:443 p.yaml:7:10
[fd00::/8]:443 p.yaml:8:10
provider:openai api.openai.com p.yaml:9:3
"""


class Why(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)
        self.shim = self.place / "why"
        self.shim.write_text(SHIM.read_text().replace("=/run/pi-agent/", f"={self.place}/"))
        (self.place / "network").write_text(RULES)
        (self.place / "README.md").write_text("")

    def why(self, asked):
        """Status and output, which each shell must have alike."""
        seen = []
        for shell in SHELLS:
            done = subprocess.run([*shell.split(), self.shim, asked], cwd=self.place, input=b"", capture_output=True)
            self.assertEqual(done.stderr, b"", asked)
            seen.append((done.returncode, done.stdout.decode()))
        self.assertEqual(seen[0], seen[1], asked)
        return seen[0]

    def says(self, asked, status, text):
        seen = self.why(asked)
        self.assertEqual(seen[0], status, seen)
        self.assertIn(text, seen[1])

    def test_a_rule_decides_about_a_host(self):
        self.says("github.com", 0, "allowed by the rule github.com:443 (p.yaml:3:10)")
        self.says("https://GitHub.COM./x", 0, "github.com port 443: allowed by the rule github.com:443 (p.yaml:3:10)")
        self.says("a.example.org:22", 0, "allowed by the rule *.example.org:22")
        self.says("10.20.3.4", 0, "allowed by the rule 10.20.0.0/16:443")
        self.says("other.example", 1, "no rule of the policy names it")
        self.says("[fd00::5]:443", 0, "allowed if it is in the range of the rule [fd00::/8]:443")

    def test_a_range_does_not_mean_the_metadata_of_clouds(self):
        listed = re.search(r"metadata_addresses\[\] = {(.*?)};", (SOURCES / "common/policy/host_rule.hpp").read_text(), re.DOTALL)
        addresses = re.findall(r'"([^"]+)"', listed[1])
        self.assertGreater(len(addresses), 10)
        (self.place / "network").write_text("128.0.0.0/1:443 p:1\n64.0.0.0/2:443 p:2\n[fd00::/8]:443 p:3\n")
        for address in addresses:
            self.says(address, 1, "no rule of the policy names it")
        self.says("169.254.1.1", 0, "allowed by the rule 128.0.0.0/1:443")

    def test_a_rule_of_its_own_means_it(self):
        self.says("169.254.42.42", 0, "allowed by the rule 169.254.42.42:443")
        self.says("169.254.169.254", 1, "no rule of the policy names it")

    def test_a_providers_host_is_reached_with_its_key_alone(self):
        self.says("api.openai.com", 0, "by requests of the agent to the provider openai (p.yaml:9:3), with a key that the session does not have")
        self.says("https://api.openai.com/v1", 0, "provider openai")
        self.says("api.openai.com:80", 1, "no rule of the policy names it")
        self.says("openai", 1, "no rule of the policy names it")

    def test_a_rule_comes_before_a_providers_route(self):
        (self.place / "network").write_text(RULES + "api.openai.com:443 p.yaml:11:3\n")
        self.says("api.openai.com", 0, "allowed by the rule api.openai.com:443")

    def test_who_knows_the_rule_about_a_path_is_said(self):
        self.says("/nowhere/file", 1, "the user sees outside with: pi-agentctl why /nowhere/file\n")
        self.says("./a file; rm", 1, "the user sees outside with: pi-agentctl why PATH\n")
        self.assertNotIn("pi-agentctl", self.why("README.md")[1])

    def test_what_is_no_file_may_be_a_host_or_become_a_file(self):
        self.says("README.md", 0, "can be read and changed")
        self.says("OTHER.md", 1, "other.md port 443: denied")
        self.says("OTHER.md", 1, "for one, ask with ./OTHER.md")
        for asked in ("10.21.0.1", "other.example:443", "https://other.example/x"):
            self.assertNotIn("a file:", self.why(asked)[1])

    def test_without_hosts_it_says_so(self):
        (self.place / "network").unlink()
        self.says("github.com", 0, "has no list of hosts")


if __name__ == "__main__":
    unittest.main()
