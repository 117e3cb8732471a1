"""Of mise, an agent's home begins with packages of npm and releases on GitHub alone: data/defaults/.config/mise/config.toml."""

import tomllib
import unittest
from pathlib import Path

CONFIG = Path(__file__).resolve().parents[3] / "data/defaults/.config/mise/config.toml"
# Those of mise 2026.9 (its src/backend). mise has no list of those that are on, so each of these has to be off, or to be meant.
BACKENDS = {
    "aqua", "asdf", "cargo", "conda", "core", "dotnet", "forgejo", "gem", "github", "gitlab", "go", "http", "npm", "packslip", "pipx", "s3", "spm",
    "ubi", "vfox",
}  # fmt: skip


class Config(unittest.TestCase):
    def test_every_backend_but_npm_and_github_is_off(self):
        settings = tomllib.loads(CONFIG.read_text())
        self.assertEqual(list(settings), ["settings"])
        self.assertEqual(settings["settings"], {"disable_backends": sorted(BACKENDS - {"npm", "github"})})


if __name__ == "__main__":
    unittest.main()
