"""Git: what a commit holds, and everyday work in repositories of every shape."""

from case import Case
from reasons import GIT_CONFIG, GIT_GARBAGE, GIT_PROGRAMS, UNSIGNED

START = """
git init -q
echo one >file; printf 'a\\n' >a; mkdir -p src; echo 'int main;' >src/main.c
git add .; git commit -qm start
"""
SEVERAL = START + "for i in 1 2 3 4 5 6 7 8; do echo $i >f$i; git add .; git commit -qm \"commit $i\"; done\n"
REMOTE = SEVERAL + "git clone -q --bare . up.git; echo up.git >>.git/info/exclude; git remote add origin ./up.git; git fetch -q; git branch -q -u origin/main\n"
LFS = "git lfs install --skip-repo >/dev/null; git init -q; git lfs track '*.bin' >/dev/null; git add .gitattributes; git commit -qm track\n"
BINARY = "head -c 300000 /dev/zero | tr '\\0' x >big.bin; "
MODULES = START + (
    "git init -q m; git -C m commit -q --allow-empty -m one; for i in $(seq 70); do cp -r m m$i; "
         "printf '[submodule \"m%s\"]\\n\\tpath = m%s\\n\\turl = ./m%s\\n' $i $i $i >>.gitmodules; git add -f m$i 2>/dev/null; done;"
    " rm -rf m; git add .gitmodules; git commit -qm modules; git submodule --quiet init; git submodule --quiet absorbgitdirs 2>/dev/null"
)
KEY = """
ssh-keygen -q -t ed25519 -N '' -C alice@localhost -f ~/.ssh/signing </dev/null
git config --global gpg.format ssh; git config --global user.signingkey ~/.ssh/signing.pub
echo "alice@localhost $(cat ~/.ssh/signing.pub)" >allowed
"""

CASES = [
    Case("git lfs stores the pointer and not the binary", BINARY + "git add big.bin; git commit -qm big; git show HEAD:big.bin; git lfs ls-files", LFS, "git-lfs"),
    Case("git lfs writes the binary at a checkout", "git checkout -q HEAD~1; git checkout -q main; wc -c <big.bin; git status --porcelain",
         LFS + BINARY + "git add big.bin; git commit -qm big", "git-lfs"),
    Case("git lfs set up in the repository alone works", BINARY + "git add big.bin; git commit -qm big; git show HEAD:big.bin | head -1",
         "git init -q; git lfs install --local >/dev/null; git lfs track '*.bin' >/dev/null; git add .gitattributes; git commit -qm track", "git-lfs", ignored=(
         ".git/config",)),
    Case("the user's ignore file keeps a file out of a commit", "echo secret >.env; echo new >new; git add --all; git commit -qm all; git show --stat --format= HEAD",
         START + "mkdir -p ~/.config/git; echo .env >~/.config/git/ignore"),
    Case("an ignore file that core.excludesFile names keeps a file out of a commit", "echo o >main.o; echo new >new; git add --all; git status --porcelain",
         START + "echo '*.o' >~/.gitignore_global; git config --global core.excludesFile '~/.gitignore_global'"),
    Case("the repository's exclude file keeps a file out of a commit", "echo o >main.o; git add --all; git status --porcelain --ignored",
         START + "echo '*.o' >>.git/info/exclude"),
    Case("core.autocrlf=input of the user turns line ends into LF", "printf 'x\\r\\ny\\r\\n' >crlf; git add crlf; git commit -qm crlf; git ls-files --eol crlf",
         START + "git config --global core.autocrlf input"),
    Case("core.autocrlf=true of the user keeps a checked-out file unchanged",
         "git status --porcelain; printf 'z\\r\\n' >>a; git diff --stat; git commit -qam more; git ls-files --eol a",
         "git config --global core.autocrlf true\ngit init -q; printf 'a\\r\\nb\\r\\n' >a; git add a; git commit -qm crlf"),
    Case("eol in .gitattributes decides line ends",
         "printf 'x\\r\\n' >t.txt; printf 'echo\\n' >t.bat; git add .; git commit -qm eol; rm t.bat; git checkout t.bat; git ls-files --eol",
         START + "printf '*.txt text eol=lf\\n*.bat text eol=crlf\\n' >.gitattributes; git add .; git commit -qm attributes"),
    Case("an attributes file of the user decides what a diff shows", "echo b >>data.dat; git diff --stat; git check-attr -a data.dat",
         START + "mkdir -p ~/.config/git; echo '*.dat binary' >~/.config/git/attributes; echo a >data.dat; git add .; git commit -qm data"),
    Case("a clean filter of the user strips what it strips outside", "printf 'secret=1\\nplain=2\\n' >x.cfg; git add x.cfg; git commit -qm x; git show HEAD:x.cfg",
         START +
         "git config --global filter.strip.clean \"sed /secret/d\"; echo '*.cfg filter=strip' >.gitattributes; git add .; git commit -qm attributes", differs=GIT_PROGRAMS,
         seen=("output: +secret=1", "git: .: branches: *", "git: .: index: *x.cfg", "git: .: status: +M x.cfg", "git: .: tree of HEAD: *")),
    Case("init.defaultBranch of the user names the first branch", "git init -q fresh; git -C fresh symbolic-ref HEAD", "git config --global init.defaultBranch trunk"),
    Case("aliases of the user work", "git st; git last", START + "git config --global alias.st 'status --short'; git config --global alias.last 'log -1 --format=%s'"),
    Case("an alias of the user that starts a program works", "git hello", START + "git config --global alias.hello '!echo hello'", differs=GIT_PROGRAMS,
         seen=("status: outside 0, inside 1", "output: -hello", "errors: +git: 'hello' is not a git command.*", "errors: +",
               "errors: +The most similar command is", "errors: +\tshell")),
    Case("a filter that the repository's own settings name works", "printf 'secret=1\\nplain=2\\n' >x.cfg; git add x.cfg; git commit -qm x; git show HEAD:x.cfg",
         START + "git config filter.strip.clean 'sed /secret/d'; echo '*.cfg filter=strip' >.gitattributes; git add .; git commit -qm attributes"),
    Case("an included settings file of the user counts", "git wip; git config user.email",
         START + "printf '[alias]\\n\\twip = log --oneline --format=%%s\\n[user]\\n\\temail = team@example.org\\n' >~/.gitconfig-team; "
         "git config --global include.path '~/.gitconfig-team'"),
    Case("an identity for a directory (includeIf) is the commits' one", "echo x >>file; git commit -qam x; git log -1 --format='%an %ae'",
         START + "printf '[user]\\n\\temail = alice@work.example\\n' >~/.gitconfig-work; git config --global includeIf.gitdir:~/projects/.path '~/.gitconfig-work'"),
    Case("pull.rebase of the user leaves a straight history", "git pull -q; git log --format='%s %p' | head -3 | cut -d' ' -f1; git rev-list --merges --count HEAD",
         REMOTE +
         "git config --global pull.rebase true; git clone -q up.git other; git -C other commit -q --allow-empty -m theirs; git -C other push -q; "
         "git commit -q --allow-empty -m mine"),
    Case("merge.conflictStyle of the user shapes a conflict", "git merge other || true; cat file; git merge --abort",
         START +
         "git config --global merge.conflictStyle diff3; git checkout -qb other; echo o >file; git commit -qam o; git checkout -q main; echo m >file; "
         "git commit -qam m"),
    Case("core.quotePath of the user decides how names are shown", "echo x >grün; git add .; git status --short", START + "git config --global core.quotePath false"),
    Case("a commit template and cleanup of the user are used", "echo x >>file; git commit -qa -F msg; git log -1 --format=%B",
         START + "git config --global commit.cleanup scissors; printf 'subject\\n\\n# kept\\n# ------------------------ >8 "
         "------------------------\\ngone\\n' >msg; echo msg >>.git/info/exclude"),
    Case("a pre-commit hook of the repository runs",
         "echo bad >bad; git add bad; ! git commit -qm bad 2>err; cat err; git reset -q; rm bad err; echo ok >ok; git add ok; git commit -qm ok",
         START + "printf '#!/bin/sh\\n! test -e bad || { echo refused >&2; exit 1; }\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"),
    Case("hooks in a directory of the project (core.hooksPath) run", "echo x >>file; git commit -qam x; cat ran",
         START +
         "mkdir hooks; printf '#!/bin/sh\\necho ran >ran\\n' >hooks/post-commit; chmod +x hooks/post-commit; echo ran >.gitignore; git add .; "
         "git commit -qm hooks; git config core.hooksPath hooks"),
    Case("a commit-msg hook adds its line", "echo x >>file; git commit -qam subject; git log -1 --format=%B",
         START + "printf '#!/bin/sh\\necho Reviewed: yes >>\"$1\"\\n' >.git/hooks/commit-msg; chmod +x .git/hooks/commit-msg"),
    Case("a worktree is added, used and removed",
         "git worktree add -q wt -b wt 2>&1; cd wt; echo w >w; git add w; git commit -qm w; cd ..; git worktree list --porcelain | grep -v HEAD; "
         "git worktree remove wt; git log -1 --format=%s wt", SEVERAL),
    Case("work in a worktree that the user made",
         "cd wt; echo w >w; git add w; git commit -qm w; git status --short --branch; git merge -q --no-edit main", SEVERAL +
         "git worktree add -q wt -b wt HEAD~2; echo wt >>.git/info/exclude"),
    Case("a submodule is added and committed",
         "git -c protocol.file.allow=always submodule --quiet add ./lib.git lib; git commit -qm lib; git submodule status; cat .gitmodules",
         START + "git init -q --bare lib.git; git init -q l; git -C l commit -q --allow-empty -m one; git -C l push -q ../lib.git main; rm -rf l; "
         "echo lib.git >>.git/info/exclude; git remote add origin .", differs=GIT_CONFIG,
         seen=("output: - * lib (heads/main)", "output: +-* lib", "errors: +error: could not write config file */.git/config: Device or resource busy",
               "tree: .git/config: outside *, inside *")),
    Case("work in a submodule that the user cloned", "cd lib; echo l >l; git add l; git commit -qm l; cd ..; git add lib; git commit -qm bump; git submodule status",
         START +
         "git init -q /tmp/l; git -C /tmp/l commit -q --allow-empty -m one; git -c protocol.file.allow=always submodule --quiet add /tmp/l lib; "
         "git commit -qm lib; rm -rf /tmp/l"),
    Case("a repository with 70 submodules is worked in",
         "for m in m1 m35 m70; do echo x >$m/x; git -C $m add x; git -C $m commit -qm x; git add $m; done; git commit -qm bump; "
         "git status --porcelain; git submodule status | wc -l",
         MODULES),
    Case("work begins within one of seventy submodules", "echo x >x; git add x; git commit -qm x; git status --short --branch", MODULES, start="m7"),
    Case("a repository with 130 worktrees is worked in", "echo x >>file; git commit -qam x; git worktree list | wc -l",
         START + "for i in $(seq 130); do git worktree add -q --no-checkout wt/$i -b w$i 2>/dev/null; done; echo wt >>.git/info/exclude"),
    Case("rebase onto another branch", "git checkout -q topic; git rebase -q main; git log --format=%s | head -3", SEVERAL +
         "git checkout -qb topic HEAD~3; echo t >t; git add t; git commit -qm topic; git checkout -q main"),
    Case("an interactive rebase by a sequence editor squashes",
         "GIT_SEQUENCE_EDITOR=\"sed -i '2s/^pick/fixup/'\" git rebase -q -i HEAD~3; git log --format=%s | head -3", SEVERAL),
    Case("bisect finds the commit",
         "git bisect start HEAD HEAD~7 2>&1 >/dev/null; git bisect run sh -c 'test ! -e f5' | grep 'first bad'; git bisect reset 2>/dev/null", SEVERAL),
    Case("stash keeps and gives back, untracked files too",
         "echo x >>file; echo u >u; git stash -q -u; git status --porcelain; git stash list; git stash pop -q; git status --porcelain", START),
    Case("part of a file is committed (add -p)", "printf 'y\\nn\\n' | git add -p >/dev/null; git commit -qm part; git diff --stat; git show --stat --format=%s",
         "git init -q; seq 40 >n; git add .; git commit -qm n; sed -i -e 1s/^/x/ -e 40s/^/x/ n"),
    Case("a file is restored from another commit",
         "git restore --source=HEAD~5 f3 2>err || cat err; git restore --source=HEAD~2 --staged --worktree .; git status --porcelain", SEVERAL),
    Case("a sparse checkout is set and lifted", "git sparse-checkout set src; ls; git sparse-checkout disable; ls", START, differs=GIT_CONFIG,
         seen=("status: outside 0, inside 1", "output: -a", "output: -file", "output: -src",
               "errors: +error: could not write config file */.git/config: Device or resource busy", "errors: +error: failed to *",
               "tree: .git/config: outside *, inside *")),
    Case("a shallow and a partial clone are made", "git clone -q --depth 2 \"file://$PWD/up.git\" shallow; git -C shallow log --format=%s; "
         "git clone -q --filter=blob:none --no-checkout \"file://$PWD/up.git\" partial; git -C partial log --format=%s | wc -l",
         REMOTE + "git -C up.git config uploadpack.allowFilter true"),
    Case("push with an upstream (-u) is remembered",
         "git checkout -q -b topic; git commit -q --allow-empty -m t; git push -q -u origin topic; git status --short --branch", REMOTE, differs=GIT_CONFIG,
         seen=("output: -## topic...origin/topic", "output: +## topic",
               "errors: +error: could not write config file */.git/config: Device or resource busy", "tree: .git/config: outside *, inside *")),
    Case("a remote is added and fetched", "git remote add second ./up.git; git fetch -q second; git branch -r", REMOTE, differs=GIT_CONFIG,
         seen=("status: outside 0, inside 128", "output: -  */main", "errors: +error: could not write config file */.git/config: Device or resource busy",
               "errors: +fatal: could not set 'remote.second.url' to './up.git'", "tree: .git/config: outside *, inside *",
               "git: .: branches: -refs/remotes/second/main:*")),
    Case("a branch is renamed with its settings", "git branch -m main trunk; git symbolic-ref HEAD; git config branch.trunk.merge", REMOTE, differs=GIT_CONFIG,
         seen=("status: outside 0, inside 128", "output: -refs/heads/trunk", "output: -refs/heads/main",
               "errors: +error: could not write config file */.git/config: Device or resource busy",
               "errors: +fatal: ?ranch is renamed, but update of config-file failed", "tree: .git/config: outside *, inside *")),
    Case("git config writes the repository's settings", "git config core.commentChar ';'; git config core.commentChar", START, differs=GIT_CONFIG,
         seen=("status: outside 0, inside 4", "output: -;", "errors: +error: could not write config file */.git/config: Device or resource busy",
               "tree: .git/config: outside *, inside *")),
    Case("notes, tags and describe", "git notes add -m note; git notes show; git tag -a v1 -m one; git commit -q --allow-empty -m next; git describe", START),
    Case("a patch series goes out and comes in",
         "git format-patch -q -2 -o out; git reset -q --hard HEAD~2; git am -q out/*; ls out; git log --format=%s | head -3", SEVERAL),
    Case("fsck, gc and repack find all in order", "git gc -q --prune=now; git fsck --no-progress; git count-objects; git count-objects -v 2>/dev/null | grep -v -e size -e garbage", SEVERAL),
    Case("count-objects finds no garbage", "git gc -q --prune=now; git count-objects -v | grep -v size", SEVERAL, differs=GIT_GARBAGE,
         seen=("output: -garbage: 0", "output: +garbage: 7", "errors: +warning: garbage found: .git/*")),
    Case("cherry-pick and revert",
         "git cherry-pick --allow-empty other >/dev/null; git revert --no-edit HEAD >/dev/null; git log --format=%s | head -3", SEVERAL +
         "git checkout -qb other HEAD~2; echo o >o; git add o; git commit -qm other; git checkout -q main"),
    Case("clean removes what is untracked and not ignored", "git clean -fdq; ls; git clean -fdxq; ls", START +
         "echo '*.log' >.gitignore; git add .; git commit -qm i; mkdir d; echo x >d/x; echo l >a.log"),
    Case("an archive and a bundle are made",
         "git archive --format=tar HEAD | tar -t; git bundle create -q all.bundle --all; git bundle verify -q all.bundle", START, ignored=(
         "all.bundle",)),
    Case("blame, grep and log say the same", "git blame -s f3; git grep -n 4; git log --stat --oneline --no-decorate -3; git shortlog -sn HEAD", SEVERAL),
    Case("a commit in a repository that signs (ssh) is signed", "echo x >>file; git commit -qam x; git log -1 --format='%G? %s'",
         START + "echo allowed >>.git/info/exclude" + KEY + "git config commit.gpgsign true; git config gpg.ssh.allowedSignersFile allowed",
         "ssh-keygen", ignored=("allowed",), differs=UNSIGNED,
         seen=("output: -G x", "output: +N x")),
    Case("a commit is signed where the user's settings say so", "echo x >>file; git commit -qam x; git log -1 --format='%G? %s'",
         START + "echo allowed >>.git/info/exclude" + KEY +
         "git config --global commit.gpgsign true; git config --global gpg.ssh.allowedSignersFile ~/projects/work/allowed", "ssh-keygen", ignored=(
         "allowed",), differs=UNSIGNED,
         seen=("output: -G x", "output: +N x")),
    Case("a signature of the user is verified", "git log -1 --format='%G? %GS'; git verify-commit HEAD",
         START + "echo allowed >>.git/info/exclude" + KEY + "git config gpg.ssh.allowedSignersFile allowed; git commit -q -S --allow-empty -m signed",
         "ssh-keygen", masked=("SHA256:[A-Za-z0-9+/]+",), ignored=("allowed",)),
    Case("a clone that borrows objects (--reference, --shared) in the same root takes commits",
         "cd clone; echo x >>file; git commit -qam x; git log --format=%s; git fsck; cd ../shared; git log --format=%s", SEVERAL +
         "git init -q --bare up.git; git push -q ./up.git main; git clone -q --reference . ./up.git clone; git clone -q --shared . shared", ignored=("clone/*", "shared/*")),
    Case("a shared repository (--shared) takes commits",
         "echo x >>file; git add .; git commit -qm x; git branch b; stat -c '%a %n' .git/objects .git/refs/heads | sort",
         "git init -q --shared; echo one >file; git add .; git commit -qm start"),
    Case("a shared bare repository takes a push",
         "git clone -q team.git clone 2>/dev/null; cd clone; echo x >x; git add x; git commit -qm x; git push -q origin HEAD:main; "
         "git -C ../team.git log --format=%s main", "git init -q --bare --shared team.git"),
    Case("git called by git with GIT_INDEX_FILE works on that index",
         "cp .git/index other; echo x >x; GIT_INDEX_FILE=$PWD/other git add x; git status --porcelain x; rm other", START),
    Case("an editor of the session writes the message", "echo x >>file; GIT_EDITOR='f() { echo edited >\"$1\"; }; f' git commit -qa; git log -1 --format=%s", START),
    Case("a clone from a daemon on localhost",
         "git daemon --base-path=$PWD --export-all --reuseaddr --listen=127.0.0.1 --port=9419 --pid-file=$PWD/pid & until timeout 5 git ls-remote -q git://127.0.0.1:9419/up.git "
         ">/dev/null 2>&1; do sleep 0.1; done; git clone -q git://127.0.0.1:9419/up.git c; git -C c log --format=%s | wc -l; kill $(cat pid); wait || true; rm -f pid", REMOTE),
    Case("rerere resolves the second time as the first", "git merge other >/dev/null 2>&1 || true; cat file; git merge --abort",
         START +
         "git config --global rerere.enabled true; git checkout -qb other; echo o >file; git commit -qam o; git checkout -q main; echo m >file; "
         "git commit -qam m; git merge other >/dev/null 2>&1 || true; echo both >file; git commit -qam merged; git reset -q --hard HEAD~1"),
]
