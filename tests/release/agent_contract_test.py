"""What agent_contract finds in packages, and what it then prints: tried with packages made here, so without a registry."""

import importlib.machinery
import importlib.util
import json
import tempfile
import unittest
from pathlib import Path

SCRIPT = str(Path(__file__).resolve().parent / "agent_contract")
loader = importlib.machinery.SourceFileLoader("agent_contract", SCRIPT)
contract = importlib.util.module_from_spec(importlib.util.spec_from_loader("agent_contract", loader))
loader.exec_module(contract)

HELP = """`Usage:
  ${APP} install <source> [-l]     Install extension source
  ${APP} mcp <command>             Manage MCP servers
Options:
  --print, -p                    Print
  --no-mcp                       Without servers
`"""


class Contract(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.place = Path(directory.name)
        self.write("package.json", json.dumps({"bin": {"pi": "dist/cli.js"}}))
        self.write("dist/cli/args.js", HELP)
        self.write("dist/x.js", 'join(getAgentDir(), "mcp.log"); process.env.PI_NEW; "https://pi.example/x"')
        self.write("dist/env-api-keys.js", 'const map = {\n    azure: "AZURE_OPENAI_API_KEY",\n    "a-b": ["A_API_KEY", "B_API_KEY"],\n};\n')
        self.write("dist/bundle/x.js", "PI_BUNDLED")
        self.write("node_modules/other/package.json", json.dumps({"bin": {"other": "x"}}))

    def write(self, name, text):
        path = self.place / "package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_it_finds_each_kind(self):
        self.assertEqual(
            contract.facts_of(self.place),
            {
                "options": {"--print", "-p", "--no-mcp"},
                "commands": {"install", "mcp"},
                "programs": {"pi = dist/cli.js"},
                "files of the agent's directory": {"mcp.log"},
                "variables": {"PI_NEW", "AZURE_OPENAI_API_KEY", "A_API_KEY", "B_API_KEY"},
                "provider names": {"azure", "a-b"},
                "hosts": {"pi.example"},
            },
        )

    def test_it_prints_what_is_new_gone_and_not_in_a_table(self):
        known = {"options": {"--a", "--b"}, "variables": {"PI_A"}}
        newest = {"options": {"--b", "--c"}, "variables": {"PI_A"}}
        said = [line.replace(contract.AGENT["version"], "IT") for line in contract.compare(known, newest, {"options": set()})]
        self.assertEqual(said, ["options: --c: new since IT", "options: --a: gone since IT", "options: --b: not in our tables"])
        self.assertEqual(contract.compare(known, known, {"options": {"--a", "--b"}}), [])

    def test_our_tables_have_what_the_known_release_needs(self):
        tables = contract.known_here()
        self.assertLessEqual({"--no-mcp", "--print", "-p"}, tables["options"])
        self.assertLessEqual({"mcp", "auth", "update"}, tables["commands"])
        self.assertLessEqual({"azure", "azure-openai-responses"}, tables["provider names"])


if __name__ == "__main__":
    unittest.main()
