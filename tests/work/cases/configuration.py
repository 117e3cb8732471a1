"""What the user's pi had before: packages, skills with their modules, prompts and sessions, below ~/.pi/agent."""

from case import Case
from reasons import OLD_SESSIONS

SKILL = "d=~/.pi/agent/skills/s; mkdir -p $d; printf -- '---\\nname: s\\ndescription: s\\n---\\n' >$d/SKILL.md\n"
# A package that needs another, as pnpm lays it out: the second is found through the first one's real place alone.
PACKED = r"""
mkdir -p leaf branch
printf '{"name": "leaf", "version": "1.0.0", "main": "i.js", "bin": {"leaf": "b.js"}}' >leaf/package.json; echo 'module.exports = "leaf";' >leaf/i.js; printf '#!/usr/bin/env node\nconsole.log(require("./i.js"));\n' >leaf/b.js
printf '{"name": "branch", "version": "1.0.0", "main": "i.js", "dependencies": {"leaf": "file:/home/alice/leaf-1.0.0.tgz"}, "bin": {"branch": "b.js"}}' >branch/package.json; echo 'module.exports = require("leaf");' >branch/i.js; printf '#!/usr/bin/env node\nconsole.log(require("./i.js"));\n' >branch/b.js
npm pack --silent ./leaf ./branch >/dev/null; mv ./*.tgz ~/; rm -r leaf branch; cd $d
echo '{"dependencies": {"branch": "file:/home/alice/branch-1.0.0.tgz"}}' >package.json; echo 'console.log(require("branch"));' >run.js
"""

CASES = [
    Case("a skill's files are there", "cat ~/.pi/agent/skills/s/SKILL.md", SKILL),
    Case("a skill whose modules npm installed runs", "cd ~/.pi/agent/skills/s; node run.js; node_modules/.bin/branch", SKILL + PACKED +
         "npm install --offline --no-audit --no-fund --silent", "npm"),
    Case("a skill whose modules pnpm installed runs", "cd ~/.pi/agent/skills/s; node run.js; node_modules/.bin/branch", SKILL + PACKED +
         "pnpm install --offline --reporter=silent", "pnpm"),
    Case("a link from one file of the configuration to another is one inside", "cd ~/.pi/agent/skills/s; readlink there; cat there", SKILL +
         "echo x >$d/here; ln -s here $d/there"),
    Case("a link to a directory of the configuration is one inside", "cd ~/.pi/agent/skills/s; readlink there; cat there/x", SKILL +
         "mkdir $d/here; echo x >$d/here/x; ln -s here $d/there"),
    Case("an absolute link from one file of the configuration to another leads there", "cd ~/.pi/agent/skills/s; test -L there; cat there", SKILL +
         "echo x >$d/here; ln -s $d/here $d/there"),
    Case("a chain of links of the configuration is one inside", "cd ~/.pi/agent/skills/s; readlink a b; cat a/x", SKILL +
         "mkdir $d/here; echo x >$d/here/x; ln -s b $d/a; ln -s ../s/here $d/b"),
    Case("in a skill of the user's dotfiles that pnpm installed for, a module finds another", "cd ~/.pi/agent/skills/s; node run.js; node_modules/.bin/branch",
         "d=~/dotfiles/s; mkdir -p $d ~/.pi/agent/skills; ln -s $d ~/.pi/agent/skills/s\n" + PACKED + "pnpm install --offline --reporter=silent", "pnpm"),
    Case("a program of a package that the user's pi installed runs", "~/.pi/agent/npm/node_modules/.bin/branch", "d=~/.pi/agent/npm; mkdir -p $d\n" + PACKED +
         "npm install --offline --no-audit --no-fund --silent", "npm"),
    Case("a program that the user's pi fetched runs", "~/.pi/agent/bin/fetched", "mkdir -p ~/.pi/agent/bin; printf '#!/bin/sh\\necho fetched\\n' >~/.pi/agent/bin/fetched; chmod 755 ~/.pi/agent/bin/fetched"),
    Case("a link of the configuration to the user's dotfiles is followed", "cat ~/.pi/agent/AGENTS.md",
         "mkdir ~/dotfiles; echo rules >~/dotfiles/AGENTS.md; ln -s ~/dotfiles/AGENTS.md ~/.pi/agent/AGENTS.md"),
    Case("a prompt and an extension are there", "cat ~/.pi/agent/prompts/p.md ~/.pi/agent/extensions/e.ts",
         "mkdir -p ~/.pi/agent/prompts ~/.pi/agent/extensions; echo p >~/.pi/agent/prompts/p.md; echo e >~/.pi/agent/extensions/e.ts"),
    Case("packages that the user's pi installed from npm are there", "cat ~/.pi/agent/npm/node_modules/p/package.json",
         "d=~/.pi/agent/npm/node_modules/p; mkdir -p $d; echo '{\"name\": \"p\"}' >$d/package.json"),
    Case("packages that the user's pi installed from git are there", "cat ~/.pi/agent/git/example.org/p/package.json",
         "d=~/.pi/agent/git/example.org/p; mkdir -p $d; echo '{\"name\": \"p\"}' >$d/package.json"),
    Case("sessions that the user's pi had are there", "ls ~/.pi/agent/sessions/*/",
         "d=~/.pi/agent/sessions/--home-alice-projects-work--; mkdir -p $d; echo '{}' >$d/2026-01-01_a.jsonl", differs=OLD_SESSIONS),
    Case("what the user trusts is there", "cat ~/.pi/agent/trust.json", "echo '{}' >~/.pi/agent/trust.json"),
    Case("settings, models and key bindings are there", "ls ~/.pi/agent/models.json ~/.pi/agent/keybindings.json ~/.pi/agent/settings.json",
         "echo '{}' >~/.pi/agent/keybindings.json"),
]
