"""Node: npm, pnpm and yarn without a network, workspaces, servers, hooks, version managers, and what programs ask of the system."""

from case import Case, saying
from reasons import GIT_CONFIG

# Packages of the test's own, as npm packs them.
PACKED = r"""
mkdir -p store/leaf store/branch
printf '{"name": "leaf", "version": "1.0.0", "main": "i.js", "bin": {"leaf": "b.js"}}' >store/leaf/package.json
printf 'module.exports = () => "leaf";\n' >store/leaf/i.js; printf '#!/usr/bin/env node\nconsole.log(require("./i.js")());\n' >store/leaf/b.js; chmod +x store/leaf/b.js
printf '{"name": "branch", "version": "1.0.0", "main": "i.js"}' >store/branch/package.json; printf 'module.exports = () => "branch";\n' >store/branch/i.js
for p in leaf branch; do (cd store && npm pack --silent --offline ./$p >/dev/null); done
printf '{"name": "app", "version": "1.0.0", "scripts": {"start": "node app.js", "test": "leaf", "prepare": "echo prepared >prepared"}, "dependencies": {"leaf": "file:store/leaf-1.0.0.tgz", "branch": "file:store/branch-1.0.0.tgz"}}' >package.json
printf 'console.log(require("leaf")(), require("branch")());\n' >app.js
"""
QUIET = "--offline --no-audit --no-fund --silent"
LOCKED = PACKED + f"npm install {QUIET} --package-lock-only\n"
SPACES = r"""
mkdir -p packages/a packages/b
printf '{"name": "top", "private": true, "workspaces": ["packages/*"]}' >package.json
printf '{"name": "a", "version": "1.0.0", "main": "i.js", "scripts": {"say": "node i.js"}}' >packages/a/package.json; printf 'module.exports = "a"; console.log("a");\n' >packages/a/i.js
printf '{"name": "b", "version": "1.0.0", "dependencies": {"a": "1.0.0"}, "scripts": {"say": "node i.js"}}' >packages/b/package.json; printf 'require("a"); console.log("b");\n' >packages/b/i.js
"""
BERRY = SPACES.replace('"a": "1.0.0"', '"a": "workspace:*"') + "printf 'enableTelemetry: false\\nenableNetwork: false\\nnodeLinker: %s\\n' >.yarnrc.yml\n"
OURS = "mkdir -p node_modules; ln -s /usr/local/lib/work/node_modules/* /usr/local/lib/work/node_modules/.bin node_modules/\n"
# nvm's own way of doing it, as far as the rows of a version manager go: directories of versions, a function, and what it refuses.
NVM = r"""
mkdir -p ~/.nvm/versions/node/v24.1.0/bin ~/.nvm/alias; ln -s "$(readlink -f "$(type -P node)")" ~/.nvm/versions/node/v24.1.0/bin/node; echo v24.1.0 >~/.nvm/alias/default
printf '#!/bin/sh\necho nvm-tool\n' >~/.nvm/versions/node/v24.1.0/bin/tool; chmod +x ~/.nvm/versions/node/v24.1.0/bin/tool
cat >~/.nvm/nvm.sh <<'EOP'
export NVM_DIR="${NVM_DIR:-$HOME/.nvm}"
nvm() {
  local version="v24.1.0" prefix="${NPM_CONFIG_PREFIX:-${PREFIX:-}}"
  case "$prefix" in
  "" | "$NVM_DIR"/versions/node/$version) ;;
  *) echo "nvm is not compatible with the \"NPM_CONFIG_PREFIX\" environment variable: currently set to \"$prefix\"" >&2; return 11 ;;
  esac
  export NVM_BIN="$NVM_DIR/versions/node/$version/bin" PATH="$NVM_DIR/versions/node/$version/bin:$PATH"
  echo "Now using node $version"
}
EOP
"""
ASK = (
    "until curl -sf http://127.0.0.1:{0}/{1} >got; do kill -0 $server; sleep 0.2; done; head -c 60 got; kill $server; "
    "wait $server 2>/dev/null || true; rm got"
)
NODE = "node npm"
MODULES = ("node_modules/*", "node_modules", ".vite*")

CASES = [
    Case("npm ci from a lock file", f"npm ci {QUIET}; node app.js; npm test --silent", LOCKED, NODE),
    Case("npm install writes the lock file", f"npm install {QUIET}; npm start --silent; npm ls", PACKED, NODE),
    Case("npm install below a workspace", f"npm install {QUIET}; npm run say --workspaces --silent", SPACES, NODE),
    Case("npm installs for all projects (--global) and the program runs by its name",
         f"npm install --global {QUIET} ./store/leaf-1.0.0.tgz >/dev/null; export PATH=$(npm prefix --global)/bin:$PATH; leaf",
         PACKED + "npm config set prefix ~/.npm-global --location=user", NODE),
    Case("npm exec and npx run a project's program", "npm exec --offline leaf; npx --offline leaf", LOCKED + f"npm ci {QUIET}", NODE),
    Case("npm installs a directory of the project as a link", f"npm install {QUIET} ./store/branch; node app.js; readlink node_modules/branch", LOCKED +
         f"npm ci {QUIET}", NODE),
    Case("npm pack makes the same archive", "npm pack --silent; tar -tf app-1.0.0.tgz", PACKED, NODE, ignored=("*.tgz",)),
    Case("pnpm install from packed files", "pnpm install --offline --reporter=silent; node app.js; ls node_modules/.bin", PACKED, "node pnpm", ignored=(
         "node_modules/.modules.yaml", "node_modules/.pnpm-workspace-state*")),
    Case("pnpm runs a workspace", "pnpm install --offline --reporter=silent; pnpm -r run say 2>&1 | grep -E '(a|b)$' | tail -2", SPACES.replace(
         '"a": "1.0.0"', '"a": "workspace:*"') + "printf 'packages: [\"packages/*\"]\\n' >pnpm-workspace.yaml", "node pnpm", ignored=(
         "node_modules/.modules.yaml", "node_modules/.pnpm-workspace-state*")),
    Case("yarn install from packed files", "yarn install --offline --silent --no-progress; node app.js", PACKED, "node yarn", ignored=("node_modules/.yarn-integrity",)),
    Case("yarn installs for all projects (global) and the program runs", "yarn global add --offline --silent --no-progress file:$PWD/store/leaf-1.0.0.tgz; $(yarn global bin)/leaf", PACKED, "node yarn"),
    Case("yarn 4 installs and runs a workspace", "yarn-berry install >/dev/null; yarn-berry workspaces foreach -A run say | grep -E '^(a|b)$'; yarn-berry config get nodeLinker", BERRY % "node-modules", "node yarn-berry",
         ignored=("node_modules/.yarn-state.yml", ".yarn/*")),
    Case("yarn 4 runs a workspace without node_modules", "yarn-berry install >/dev/null; yarn-berry node packages/b/i.js; ls -A", BERRY % "pnp", "node yarn-berry", ignored=(".yarn/*", ".pnp.*")),
    Case("node covers as much of a project at each run", "for run in 1 2 3; do node --test --experimental-test-coverage | grep 'all files' | tr -d ' '; done",
         "printf 'exports.f = (x) => {\\n  if (x > 1) {\\n    return 2;\\n  }\\n  return 1;\\n};\\n' >f.js; "
         "printf 'const test = require(\"node:test\");\\ntest(\"f\", () => require(\"./f.js\").f(0));\\n' >f.test.js", "node"),
    Case("yarn runs a workspace", "yarn install --offline --silent; yarn workspaces --silent run say | grep -E '^(a|b)$'", SPACES, "node yarn", ignored=(
         "node_modules/.yarn-integrity",)),
    Case("pnpm adds to what the user's pnpm installed",
         "pnpm add --offline --reporter=silent ./store/more-1.0.0.tgz; node -p 'require(\"more\")()'; node app.js", PACKED +
         "cp -r store/leaf store/more; sed -i 's/\"leaf\"/\"more\"/' store/more/package.json; (cd store && npm pack --silent --offline ./more >/dev/null)\n"
         "pnpm install --offline --reporter=silent", "node pnpm", ignored=("node_modules/.modules.yaml", "node_modules/.pnpm-workspace-state*")),
    Case("what pnpm installs names the user's store, for the next pnpm outside",
         "pnpm install --offline --reporter=silent; pnpm store path | sha256sum; grep -o '[^\" ]*/pnpm/store[^\" ]*' node_modules/.modules.yaml | sha256sum",
         PACKED + "mkdir -p ~/.local/share/pnpm", "node pnpm", ignored=("node_modules/.modules.yaml", "node_modules/.pnpm-workspace-state*")),
    Case("a project's own store of pnpm stays its own", "pnpm store path", "echo '{}' >package.json; echo store-dir=$PWD/kept >.npmrc; mkdir -p ~/.local/share/pnpm", "node pnpm"),
    Case("npm complains of no variable of a session", "npm config get fund", "mkdir -p ~/.local/share/pnpm", "npm"),
    Case("a node of fnm that PATH reaches by a link runs", "fnm-node", saying("~/.local/share/fnm/node-versions/v24.1.0/installation/bin/fnm-node", "of fnm") +
         "mkdir -p ~/.local/state/fnm_multishells; ln -s ~/.local/share/fnm/node-versions/v24.1.0/installation ~/.local/state/fnm_multishells/1_2",
         variables=(("PATH", "/home/alice/.local/state/fnm_multishells/1_2/bin:/usr/local/bin:/usr/bin:/bin"),)),
    Case("a tree that pnpm made outside works", "node app.js; node_modules/.bin/leaf", PACKED + "pnpm install --offline --reporter=silent",
         "node pnpm", ignored=("node_modules/.modules.yaml", "node_modules/.pnpm-workspace-state*")),
    Case("vite serves a project", "vite --host 127.0.0.1 --port 5188 >log 2>&1 & server=$!; " + ASK.format(5188, "main.js") + "; rm -f log",
         "echo 'console.log(1)' >main.js; echo '<script type=module src=/main.js></script>' >index.html", "node vite", ignored=MODULES),
    Case("vite --host serves on all addresses", "vite --host --port 5189 >log 2>&1 & server=$!; " + ASK.format(5189, "main.js") +
         "; grep -c Local log; rm -f log", "echo 'console.log(1)' >main.js; echo '<script type=module src=/main.js></script>' >index.html",
         "node vite", ignored=MODULES),
    Case("vite build makes the same files", "vite build --logLevel warn; ls dist/assets",
         "echo 'console.log(1)' >main.js; echo '<script type=module src=/main.js></script>' >index.html", "node vite", ignored=MODULES),
    Case("http-server serves a directory", "http-server -s -p 8098 . >log 2>&1 & server=$!; " + ASK.format(8098, "f") + "; cat log; rm -f log",
         "echo served >f", "node http-server"),
    Case("husky is set up and its hook runs at a commit",
         "node_modules/.bin/husky; echo 'echo husky ran' >.husky/pre-commit; git add .husky/pre-commit; git commit -qm x; git config core.hooksPath",
         "git init -q; echo '{}' >package.json; echo node_modules >.gitignore; git add .; git commit -qm start;" + OURS, "node", ignored=MODULES, differs=GIT_CONFIG,
         seen=("status: outside 0, inside 1", "output: -.husky/_", "output: +error: could not write config file */.git/config: Device or resource busy",
               "errors: -husky ran", "errors: +bash: line 3: .husky/pre-commit: No such file or directory", "tree: .git/config: outside *, inside *",
               "tree: .husky*: outside *, inside none", "git: .: *")),
    Case("husky's hook that the user set up runs at a commit", "echo x >x; git add x; git commit -qm x",
         "git init -q; echo '{}' >package.json; echo node_modules >.gitignore;" + OURS +
         "node_modules/.bin/husky; echo 'echo husky ran' >.husky/pre-commit; git add .; git commit -qm start 2>/dev/null", "node", ignored=MODULES),
    Case("nvm use takes the user's node",
         "[ -z \"${NVM_DIR-}\" ] || unset NVM_DIR; export NVM_DIR=/home/alice/.nvm; . /home/alice/.nvm/nvm.sh; nvm use default; tool; node -p 1+1", NVM,
         "node"),
    Case("nvm from the session's home takes the user's node", ". ~/.nvm/nvm.sh; nvm use default; tool", NVM, "node"),
    Case("a node of nvm is in the PATH that the user starts with", "tool", NVM +
         "ln -s ~/.nvm/versions/node/v24.1.0/bin/tool ~/.local/bin/ 2>/dev/null || { mkdir -p ~/.local/bin; "
         "ln -s ~/.nvm/versions/node/v24.1.0/bin/tool ~/.local/bin/; }", "node"),
    Case("a node of fnm runs", "~/.local/share/fnm/node-versions/v24.1.0/installation/bin/tool",
         saying("~/.local/share/fnm/node-versions/v24.1.0/installation/bin/tool", "fnm-tool")),
    Case("a node of volta runs", "~/.volta/tools/image/node/24.1.0/bin/tool",
         saying("~/.volta/tools/image/node/24.1.0/bin/tool", "volta-tool") + "mkdir ~/.volta/bin"),
    Case("a node of n (N_PREFIX) runs", "~/n/bin/tool", saying("~/n/bin/tool", "n-tool")),
    Case("a program of bun's and deno's homes runs", "~/.bun/bin/bun; ~/.deno/bin/deno",
         saying("~/.bun/bin/bun", "bun") + saying("~/.deno/bin/deno", "deno")),
    Case("node lists the network interfaces", "node -p 'Object.keys(os.networkInterfaces()).join()'", "", "node"),
    Case("node counts processors and memory", "node -p '[os.availableParallelism() > 0, os.totalmem() > 1e8, os.hostname().length > 0].join()'", "", "node"),
    Case("node's worker threads share memory", "node -e 'const {Worker} = require(\"worker_threads\"); const b = new SharedArrayBuffer(8); "
         "const w = new Worker(\"const a = new Int32Array(require(\\\"worker_threads\\\").workerData); "
         "Atomics.add(a, 0, 5)\", {eval: true, workerData: b}); w.on(\"exit\", () => console.log(new Int32Array(b)[0]))'", "", "node"),
    Case("node starts child processes and a cluster", "node c.js",
         "printf 'const c = require(\"cluster\"), {execSync, fork} = require(\"child_process\");\\nif (c.isPrimary) { console.log(execSync(\"echo "
         "child\").toString().trim()); c.fork(); c.on(\"exit\", (w, code) => console.log(\"worker\", code)); "
         "} else { require(\"net\").createServer().listen(0, () => process.exit(3)); }\\n' >c.js", "node"),
    Case("node watches a directory", "node w.js",
         "printf 'const fs = require(\"fs\");\\nfs.watch(\".\", (e, f) => { if (f === \"new\") { console.log(e, f); process.exit(); "
         "} });\\nsetTimeout(() => fs.writeFileSync(\"new\", \"\"), 300);\\n' >w.js", "node"),
    Case("nodemon starts a program again when its file changes",
         "touch log; nodemon -q --delay 0.1 a.js >log & p=$!; until grep -q 1 log; do sleep 0.1; done; "
         "until grep -q 2 log; do echo 'console.log(2)' >a.js; sleep 0.5; done; kill $p; wait $p 2>/dev/null || true; sort -u log; rm log", "echo 'console.log(1)' >a.js",
         "node nodemon"),
    Case("mocha runs a project's tests", "mocha --reporter dot t.js", "printf 'it(\"adds\", () => { if (1 + 1 !== 2) throw 1; });\\n' >t.js", "node mocha"),
    Case("tsc compiles a project", "tsc -p .; node out/a.js",
         "printf '{\"compilerOptions\": {\"outDir\": \"out\", \"strict\": true, \"target\": \"es2022\", \"module\": \"commonjs\"}, \"files\": "
         "[\"a.ts\"]}' >tsconfig.json; echo 'const x: number = 2; console.log(x);' >a.ts", "node tsc"),
    Case("node's own test runner finds tests", "node --test --test-reporter=tap t.test.js | grep -E '^# (pass|fail)'",
         "printf 'const t = require(\"node:test\"); t(\"x\", () => {});\\n' >t.test.js", "node"),
    Case("node writes a CPU profile and a heap snapshot",
         "node --cpu-prof --cpu-prof-name=p.cpuprofile -e 1; node -e 'require(\"v8\").writeHeapSnapshot(\"h.heapsnapshot\")'; ls", "", "node", ignored=(
         "*.cpuprofile", "*.heapsnapshot")),
]
