"""Version control other than git: Mercurial, Subversion, Fossil and Breezy, in repositories that the user made and in new ones."""

from case import Case
from reasons import BREEZY_LIMBO

HG = "printf '[ui]\\nusername = me <me@example.org>\\n' >~/.hgrc; hg init -q; echo one >f; hg add -q f; hg commit -qm one -d '0 0'\n"
AS_ME = "export HGUSER='me <me@example.org>'\n"
# Its log names the account that commits, which differs, so both commit under one name.
SVN = "svnadmin create repo; svn checkout -q --username me file://$PWD/repo wc; cd wc; echo one >f; svn add -q f; svn commit -q --username me -m one; svn update -q; cd ..\n"
FOSSIL = "export USER=me; fossil init --date-override 2026-01-02 --admin-user me r.fossil >/dev/null; mkdir co; cd co; fossil open -f ../r.fossil >/dev/null; echo one >f; fossil add f >/dev/null; fossil commit -m one --user-override me --no-warnings >/dev/null 2>&1; cd ..\n"
AS_BRZ = "export BRZ_EMAIL='me <me@example.org>'\n"
BRZ = AS_BRZ + "brz init -q; echo one >f; brz add -q f; brz commit -qm one\n"

CASES = [
    Case("a Mercurial repository of the user's is changed and committed to", AS_ME + "echo two >>f; hg status; hg diff --nodates; hg commit -qm two -d '0 0'; "
         "hg log -T '{rev} {node|short} {desc} {author}\\n'; hg update -q 0; cat f; hg verify -q", HG, "hg", ignored=(".hg/*",)),
    Case("a Mercurial repository is cloned, pulled from and pushed to", AS_ME + "hg clone -q . ../work-clone; cd ../work-clone; hg paths; echo two >>f; hg commit -qm two -d '0 0'; hg push -q; "
         "cd ../work; hg update -q; cat f; hg -R ../work-clone pull | tail -1; rm -r ../work-clone", HG, "hg", ignored=(".hg/*",)),
    Case("branches of Mercurial are made, merged and rebased", AS_ME + "echo b >b; hg add -q b; hg commit -qm b -d '0 0'; hg update -q 0; echo c >c; hg add -q c; hg commit -qm c -d '0 0'; "
         "hg --config extensions.rebase= rebase -q -d 1; hg log -G -T '{rev} {desc}'; hg bookmark here; hg bookmarks | cut -c1-8; ls", HG, "hg", ignored=(".hg/*",)),
    Case("a new Mercurial repository is made in the project", AS_ME + "hg init new; cd new; echo x >x; hg add -q x; hg commit -qm x -d '0 0'; hg log -T '{node}\\n'; hg shelve -q 2>/dev/null || echo nothing; hg status",
         "", "hg", ignored=("new/.hg/*",)),
    Case("a Subversion working copy of the user's is changed and committed", "cd wc; echo two >>f; svn status; svn diff; svn commit -q --username me -m two; svn update -q; svn log -q | grep -o '^r[0-9]* | me'; "
         "svn blame f; svn cleanup; svnversion", SVN, "svn svnadmin", ignored=("repo/*", "wc/.svn/*")),
    Case("Subversion branches and merges", "cd wc; svn copy -q --username me -m branch ^/ ^/branch; svn mkdir -q --username me --parents -m d file://${PWD%/wc}/repo/d; svn update -q; echo x >d/x; svn add -q d/x; "
         "svn propset -q svn:ignore '*.o' d; svn commit -q --username me -m x; svn update -q; svn revert -q -R .; svn list -R; svn propget svn:ignore d; svn export -q . ../out; ls ../out",
         SVN, "svn svnadmin", ignored=("repo/*", "wc/.svn/*")),
    Case("Subversion's file is locked and unlocked", "cd wc; svn lock -q --username me f; svn status; svn info f | grep '^Lock Owner'; svn unlock -q f; svn status", SVN, "svn svnadmin",
         ignored=("repo/*", "wc/.svn/*")),
    Case("a Fossil check-out of the user's is changed and committed", "export USER=me; cd co; echo two >>f; fossil changes; fossil diff -i | tail -1; fossil commit -m two --user-override me --no-warnings >/dev/null 2>&1; "
         "fossil timeline -n 5 -W 0 | grep -o '\\*CURRENT\\* two'; fossil branch list; fossil undo >/dev/null 2>&1 || true; cat f", FOSSIL, "fossil", ignored=("r.fossil*", "co/.fslckout*")),
    Case("a Breezy branch of the user's is changed, committed, branched and merged", AS_BRZ + "echo two >>f; brz status; brz commit -qm two; brz log --line | sed 's/ 2[0-9-]*//'; brz branch -q . ../work-b; "
         "cd ../work-b; echo three >g; brz add -q g; brz commit -qm three; cd ../work; brz merge -q ../work-b; brz commit -qm merge; brz revno; ls; rm -r ../work-b", BRZ, "brz", BREEZY_LIMBO,
         ("status: outside 0, inside 3", "output: -3", "output: -f", "output: -g", "errors: +brz: ERROR: Failed to rename * Invalid cross-device link: *", "tree: g: *"), (".bzr/*",)),
    Case("a new Breezy branch is made in the project", AS_BRZ + "brz init -q new; cd new; echo x >x; brz add -q x; brz commit -qm first; brz tag -q v1; brz tags | cut -c1-2; brz export ../out; ls ../out", "", "brz",
         ignored=("new/.bzr/*",)),
]
