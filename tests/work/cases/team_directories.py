"""Directories of a team: set-gid, group-writable, with access lists; and modes in general."""

from case import Case
from reasons import ACCESS_LISTS, NO_OTHER_OWNER, NO_SET_ID_FILES, ONE_GROUP

TEAM = "chgrp devs .; chmod 2775 .; umask 002; mkdir -p tree/sub; echo a >tree/a; echo b >tree/sub/b; chmod 755 tree/sub; "
MODES = "find . -printf '%M %p\\n' | LC_ALL=C sort -k2"
GIVEN = "umask 002; "

CASES = [
    Case("mkdir and chmod 755 in a set-gid directory", "mkdir d; chmod 755 d; chmod u=rwx,go=rx d; " + MODES, TEAM),
    Case("chmod 2775 gives a directory the set-gid bit", "mkdir d; chmod 2775 d; stat -c '%a' d; chmod g-s d; stat -c '%a' d", "mkdir plain"),
    Case("mkdir -m 2775 makes a set-gid directory", "mkdir -m 2775 d; stat -c '%a' d"),
    Case("cp -r of a tree in a set-gid directory", "cp -r tree copy; " + MODES, TEAM),
    Case("cp -a of a tree in a set-gid directory", "cp -a tree copy; " + MODES, TEAM),
    Case("mv of a set-gid tree to another file system and back", "mv tree /dev/shm/work-$$; mv /dev/shm/work-$$ back; " + MODES, TEAM, differs=ONE_GROUP),
    Case("mv of a set-gid tree to the temporary directory", "t=$(mktemp -d); mv tree $t/; find $t/tree -printf '%M %P\\n' | LC_ALL=C sort -k2; rm -r $t", TEAM, differs=ONE_GROUP),
    Case("mv of a set-gid tree within the file system", "mv tree moved; mkdir in; mv moved in/; " + MODES, TEAM),
    Case("mv of a plain tree to another file system and back", "mv plain /dev/shm/work-$$; mv /dev/shm/work-$$ back; " + MODES, "mkdir -p plain/sub; echo x >plain/sub/f; chmod 2755 plain/sub"),
    Case("an access list without names keeps the set-gid bit", "setfacl -m u::rwx,g::rx,o::- tree; stat -c '%A' tree; setfacl -m g::rwx tree/sub; stat -c '%A' tree/sub", TEAM, "setfacl"),
    Case("cp -a of a file keeps the group of a team", "cp -a tree/a b; cp -a tree/sub/b tree/c; cp -p tree/a d; " + MODES, TEAM),
    Case("a set-uid directory is made", "mkdir d; chmod 4755 d; stat -c '%a' d", "", differs=NO_SET_ID_FILES),
    Case("Python's copytree in a set-gid directory", "python3 -c \"import shutil; shutil.copytree('tree', 'copy')\"; " + MODES, TEAM),
    Case("rsync -a of a set-gid tree", "rsync -a tree/ copy/; " + MODES, TEAM, "rsync"),
    Case("tar -xp restores a set-gid tree", "tar -cf t.tar tree; mkdir x; tar -xpf t.tar -C x; rm t.tar; " + MODES, TEAM),
    Case("tar -x restores a tree with the umask", GIVEN + "tar -cf t.tar tree; mkdir x; tar -xf t.tar -C x; rm t.tar; " + MODES, TEAM),
    Case("chmod -R g+w of a set-gid tree", "chmod -R g+w .; " + MODES, TEAM),
    Case("chmod -R u+rwX,go-w of a set-gid tree", "chmod -R u+rwX,go-w tree; " + MODES, TEAM),
    Case("install -d -m 2775 makes a set-gid directory", "install -d -m 2775 shared/in; stat -c '%a %n' shared shared/in", TEAM),
    Case("install -m 755 of a file in a set-gid directory", "install -m 755 tree/a bin; stat -c '%a %n' bin", TEAM),
    Case("unzip restores a tree in a set-gid directory", "unzip -q t.zip -d x; " + MODES, TEAM + "zip -qr t.zip tree", "zip unzip", ignored=("t.zip",)),
    Case("git init --shared in a set-gid directory",
         "git init -q --shared repo; cd repo; echo x >x; git add x; git commit -qm x; stat -c '%a %n' .git .git/objects .git/refs", TEAM),
    Case("a clone in a set-gid directory", "git clone -q repo copy; stat -c '%a %n' copy copy/.git copy/.git/objects", TEAM +
         "git init -q repo; git -C repo commit -q --allow-empty -m x"),
    Case("a sticky directory is made", "mkdir d; chmod 1777 d; stat -c '%a' d"),
    Case("a file in a set-gid directory gets its group", "echo x >new; mkdir dir", TEAM),
    Case("a default access list is inherited", "echo x >new; mkdir dir; getfacl -c new dir 2>/dev/null | grep -v '^$'; getfacl -cd dir",
         "setfacl -d -m u:bob:rwx,g:devs:rx .", "setfacl getfacl", differs=ACCESS_LISTS),
    Case("a default access list of the user's own group holds", "umask 077; mkdir dir; echo x >dir/f; stat -c '%a %n' dir dir/f",
         "setfacl -d -m g::rwx,o::rx .", "setfacl"),
    Case("an access list is set and read", "echo x >f; setfacl -m u:bob:r f; getfacl -c f; setfacl -b f; getfacl -c f", "", "setfacl getfacl", differs=ACCESS_LISTS),
    Case("cp -a keeps an access list", "cp -a f g; getfacl -c g", "echo x >f; setfacl -m u:bob:rw f", "setfacl getfacl", differs=ACCESS_LISTS),
    Case("user attributes are set and copied", "setfattr -n user.note -v hello f; cp -a f g; getfattr -n user.note --only-values g", "echo x >f", "setfattr getfattr"),
    Case("a set-uid file is made", "cp tree/a prog; chmod 4755 prog; stat -c '%a' prog", TEAM, differs=NO_SET_ID_FILES),
    Case("a set-gid file is made", "cp tree/a prog; chmod 2755 prog; stat -c '%a' prog", TEAM, differs=NO_SET_ID_FILES),
    Case("chgrp to a group of the user's", "echo x >f; chgrp devs f; stat -c '%a' f", "", differs=ONE_GROUP),
    Case("a colleague's group-writable file is appended to", "echo mine >>theirs; cat theirs", TEAM + "echo theirs >theirs; chmod 664 theirs"),
    Case("chown to a colleague is refused", "echo x >f; chown bob f 2>/dev/null && exit 1; chown alice f 2>/dev/null; echo done", "", differs=NO_OTHER_OWNER),
    Case("umask 002 of a script holds", "umask 002; echo x >f; mkdir d; stat -c '%a %n' f d"),
    Case("a read-only tree is removed after chmod", "chmod -R u+w ro; rm -r ro; ls", "mkdir -p ro/sub; echo x >ro/sub/f; chmod -R a-w ro"),
    Case("hard and symbolic links are made", "ln f hard; ln -s f soft; ln -sr d/x up 2>/dev/null; stat -c '%h' f; readlink soft up", "echo x >f; mkdir d"),
    Case("a named pipe carries a line", "mkfifo p; echo through >p & cat p; rm p"),
    Case("file times are kept", "touch -d 2001-02-03 f; cp -p f g; stat -c %Y f g; touch -r f h; stat -c %Y h"),
]
