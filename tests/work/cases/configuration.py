"""What the user's pi had before: packages, skills with their modules, prompts and sessions, below ~/.pi/agent."""

from case import Case, saying
from reasons import NO_OTHER_HOMES, OLD_SESSIONS, SESSION_FILES, VARIABLES

SKILL = "d=~/.pi/agent/skills/s; mkdir -p $d; printf -- '---\\nname: s\\ndescription: s\\n---\\n' >$d/SKILL.md\n"
# A package that needs another, as pnpm lays it out: the second is found through the first one's real place alone.
PACKED = r"""
mkdir -p leaf branch
printf '{"name": "leaf", "version": "1.0.0", "main": "i.js", "bin": {"leaf": "b.js"}}' >leaf/package.json; echo 'module.exports = "leaf";' >leaf/i.js; printf '#!/usr/bin/env node\nconsole.log(require("./i.js"));\n' >leaf/b.js
printf '{"name": "branch", "version": "1.0.0", "main": "i.js", "dependencies": {"leaf": "file:/home/alice/leaf-1.0.0.tgz"}, "bin": {"branch": "b.js"}}' >branch/package.json; echo 'module.exports = require("leaf");' >branch/i.js; printf '#!/usr/bin/env node\nconsole.log(require("./i.js"));\n' >branch/b.js
npm pack --silent ./leaf ./branch >/dev/null; mv ./*.tgz ~/; rm -r leaf branch; cd $d
echo '{"dependencies": {"branch": "file:/home/alice/branch-1.0.0.tgz"}}' >package.json; echo 'console.log(require("branch"));' >run.js
"""

HERE = "/home/alice"

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
    Case("a program that the user's pi fetched runs", "~/.pi/agent/bin/fetched", saying("~/.pi/agent/bin/fetched", "fetched")),
    Case("a link of the configuration to the user's dotfiles is followed", "cat ~/.pi/agent/AGENTS.md",
         "mkdir ~/dotfiles; echo rules >~/dotfiles/AGENTS.md; ln -s ~/dotfiles/AGENTS.md ~/.pi/agent/AGENTS.md"),
    Case("a prompt and an extension are there", "cat ~/.pi/agent/prompts/p.md ~/.pi/agent/extensions/e.ts",
         "mkdir -p ~/.pi/agent/prompts ~/.pi/agent/extensions; echo p >~/.pi/agent/prompts/p.md; echo e >~/.pi/agent/extensions/e.ts"),
    Case("packages that the user's pi installed from npm are there", "cat ~/.pi/agent/npm/node_modules/p/package.json",
         "d=~/.pi/agent/npm/node_modules/p; mkdir -p $d; echo '{\"name\": \"p\"}' >$d/package.json"),
    Case("packages that the user's pi installed from git are there", "cat ~/.pi/agent/git/example.org/p/package.json",
         "d=~/.pi/agent/git/example.org/p; mkdir -p $d; echo '{\"name\": \"p\"}' >$d/package.json"),
    Case("sessions that the user's pi had are there", "ls ~/.pi/agent/sessions/*/",
         "d=~/.pi/agent/sessions/--home-alice-projects-work--; mkdir -p $d; echo '{}' >$d/2026-01-01_a.jsonl", differs=OLD_SESSIONS,
         seen=("status: outside 0, inside 2", "output: -2026-01-01_a.jsonl",
               "errors: +ls: cannot access '~/.pi/agent/sessions/*/': No such file or directory")),
    Case("what the user trusts is there", "cat ~/.pi/agent/trust.json", "echo '{}' >~/.pi/agent/trust.json"),
    Case("settings, models and key bindings are there", "ls ~/.pi/agent/models.json ~/.pi/agent/keybindings.json ~/.pi/agent/settings.json",
         "echo '{}' >~/.pi/agent/keybindings.json"),
    Case("a file that the user names is read", 'cat "${1#@}"', "echo notes >~/notes.txt", arguments=(f"@{HERE}/notes.txt",)),
    Case("a file is named from the user's home", 'f=${1#@}; cat "${f/#~/$HOME}"', "echo notes >~/notes.txt", arguments=("@~/notes.txt",)),
    Case("a file is named from above the project", 'cat "${1#@}"', "echo notes >~/notes.txt", arguments=("@../../notes.txt",)),
    Case("a file of the project is named, and written", 'cat "${1#@}"; echo more >>"${1#@}"; cat "${2#@}"', "echo notes >notes.txt",
         arguments=("@notes.txt", f"@{HERE}/projects/work/notes.txt")),
    Case("a file of the project is named from the user's home", 'f=${1#@}; cat "${f/#~/$HOME}"', "echo notes >notes.txt",
         arguments=("@~/projects/work/notes.txt",)),
    Case("a file of /tmp is named", 'cat "${1#@}"', "echo notes >/tmp/notes.txt", arguments=("@/tmp/notes.txt",)),
    Case("a file of the system is named", 'head -c 4 "${1#@}"', arguments=("@/usr/bin/env",)),
    Case("a file with an odd name is named", 'cat "${1#@}"; basename "$1" | od -c', "echo notes >~/$'a b\\n\\e[1m*.txt'", arguments=(f"@{HERE}/a b\n\x1b[1m*.txt",)),
    Case("a picture that is named is the same picture", 'sha256sum <"${1#@}"; stat -Lc %s "${1#@}"', "head -c 3000000 /dev/zero | tr '\\0' x >~/p.png",
         arguments=(f"@{HERE}/p.png",)),
    Case("a file that the user links to from the home is named", 'cat "${1#@}"', "mkdir ~/else; echo notes >~/else/n; ln -s else/n ~/notes.txt",
         arguments=(f"@{HERE}/notes.txt",)),
    Case("a file that is not there is named", 'cat "${1#@}" 2>&1 || echo none', arguments=(f"@{HERE}/none.txt",)),
    Case("files are named beside a prompt, after --", 'shift 2; cat "${1#@}" "${2#@}"; echo "$3"', "echo a >~/a; echo b >~/b",
         arguments=("-p", "--", f"@{HERE}/a", f"@{HERE}/b", "@ two")),
    Case("an extension is named", 'cat "$2"', "echo 'export default () => {}' >~/e.ts", arguments=("-e", f"{HERE}/e.ts")),
    Case("an extension of several files, linked to each other, is named by its directory", 'cd "$2"; node main.js; ls -l | grep -o "[a-z.]* -> .*"',
         "mkdir -p ~/ext/lib; echo 'console.log(require(\"./lib/part.js\"))' >~/ext/main.js; echo 'module.exports = 7' >~/ext/lib/real.js; "
         "ln -s real.js ~/ext/lib/part.js; ln -s lib/part.js ~/ext/also.js", arguments=("--extension", f"{HERE}/ext")),
    Case("a skill with a program is named by its directory", 'head -2 "$2/SKILL.md"; "$2/bin/run"',
         "mkdir -p ~/sk/bin; printf -- '---\\nname: sk\\n---\\n' >~/sk/SKILL.md; printf '#!/bin/sh\\necho ran\\n' >~/sk/bin/run; chmod +x ~/sk/bin/run",
         arguments=("--skill", f"{HERE}/sk")),
    Case("a prompt is appended from a file", 'cat "$2"', "echo rules >~/rules.md", arguments=("--append-system-prompt", f"{HERE}/rules.md")),
    Case("a prompt that is no file stays as it is", 'echo "$2"; echo "$4"', "echo rules >~/rules.md",
         arguments=("--append-system-prompt", "Be brief.\n/usr//bin is /there/../ ~/rules.md", "--system-prompt", "~/rules.md")),
    Case("what looks like a file but is another option's stays as it is", 'echo "$2"', "echo x >~/x", arguments=("-n", f"@{HERE}/x")),
    Case("a session's file outside of the project is named", 'cat "$2"', "echo '{}' >~/s.jsonl", arguments=("--session", f"{HERE}/s.jsonl"), differs=SESSION_FILES,
         seen=("status: outside 0, inside 64", "output: -{}")),
    Case("a picture is named when the session runs already", f"cat {HERE}/p.png", "echo picture >~/p.png", differs=NO_OTHER_HOMES,
         seen=("status: outside 0, inside 1", "output: -picture", "errors: +cat: ~/p.png: No such file or directory")),
    Case("settings that other agents and editors run code by are written and committed",
         "mkdir -p .claude .vscode; echo '{}' >.claude/settings.json; echo '{}' >.vscode/tasks.json; git add .; git commit -qm settings; git show --stat --format=%s",
         "git init -q"),
    Case("a file is written in a Mercurial repository", "echo two >>file; echo x >.hg/store/data; cat file .hg/requires .hg/store/data",
         "mkdir -p .hg/store; printf 'share-safe\\nstore\\n' >.hg/requires; echo one >file"),
    Case("a provider's key is in the shell", "echo ${ANTHROPIC_API_KEY:-none}", variables=(("ANTHROPIC_API_KEY", "k"),), differs=VARIABLES,
         seen=("output: -k", "output: +none")),
]
