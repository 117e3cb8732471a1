"""Editors, databases that a test starts, file watchers, archives, and trees of many files."""

from case import Case
from reasons import DOTFILES

POSTGRES = "bin=$(echo /usr/lib/postgresql/*/bin); $bin/initdb -A trust -U me -D db >/dev/null; mkdir sock; "
STOP = "$bin/pg_ctl -s -D db -m fast stop; rm -rf db sock"
MANY = "mkdir many; cd many; for d in $(seq 100); do mkdir d$d; for f in 1 2 3 4 5 6 7 8 9 10; do echo $d.$f >d$d/f$f; done; done; cd ..\n"

CASES = [
    Case("vim edits a file without a screen", "vim -u NONE -es -c '%s/one/two/' -c 'wq' f; cat f", "echo one >f", "vim"),
    Case("vim with the user's settings edits a file", "vim -u ~/.vimrc -es -c 'normal ggIx' -c 'normal >>' -c 'wq' f; cat f",
         "echo one >f; echo 'set expandtab shiftwidth=3' >~/.vimrc", "vim", differs=DOTFILES,
         seen=("status: outside 0, inside 1", "output: -   xone", "tree: f: outside *, inside *")),
    Case("vim keeps a swap and an undo file", "vim -u NONE -es -c 'set undofile' -c '%s/one/two/' -c 'wq' f; ls -A", "echo one >f", "vim", ignored=(".f.un~",)),
    Case("nano writes a file at a terminal",
         "TERM=xterm expect -c 'set timeout -1; spawn nano f; expect GNU; send \"typed\\x0f\\r\"; expect Wrote; send \"\\x18\"; expect eof' >/dev/null; cat f", "",
         "nano expect"),
    Case("ed-like editing with sed -i, awk and patch", "sed -i s/one/two/ f; awk '{print NR, $0}' f; patch -s <p; cat f",
         "echo one >f; printf -- '--- f\\n+++ f\\n@@ -1 +1 @@\\n-two\\n+three\\n' >p", "patch"),
    Case("EDITOR of the user edits a commit's message", "echo x >>f; git commit -qa; git log -1 --format=%s",
         "git init -q; echo one >f; git add .; git commit -qm start; git config core.editor 'vim -u NONE -es -c \"normal isubject\" -c wq'", "vim"),
    Case("sqlite makes and reads a database",
         "sqlite3 a.db 'create table t(x); insert into t values (1), (2); select sum(x) from t; pragma journal_mode=wal; insert into t values (3); "
         "select count(*) from t'; sqlite3 a.db .dump", "", "sqlite3", ignored=("a.db*",)),
    Case("two processes share a sqlite database",
         "sqlite3 a.db 'create table t(x)'; for i in 1 2 3 4; do sqlite3 -cmd '.timeout 60000' a.db \"insert into t values ($i)\" & done; wait; "
         "sqlite3 a.db 'select count(*) from t'; rm a.db", "", "sqlite3"),
    Case("postgresql serves on a Unix socket", POSTGRES +
         "$bin/pg_ctl -s -w -D db -l log -o \"-c listen_addresses='' -k $PWD/sock\" start; psql -h $PWD/sock -U me -Atc 'select 6 * 7' postgres; " + STOP +
         "; rm log", "", "psql"),
    Case("postgresql serves on localhost", POSTGRES +
         "$bin/pg_ctl -s -w -D db -l log -o \"-p 54321 -k $PWD/sock\" start; psql -h 127.0.0.1 -p 54321 -U me -Atc 'create table t(x int); "
         "insert into t select generate_series(1, 1000); select count(*) from t' postgres; " + STOP + "; rm log", "", "psql"),
    Case("redis serves on localhost and on a Unix socket",
         "redis-server --port 6390 --unixsocket $PWD/s --save '' --daemonize no >log & until redis-cli -p 6390 ping 2>/dev/null; do sleep 0.1; done; "
         "redis-cli -s $PWD/s set a 1; redis-cli -p 6390 get a; redis-cli -p 6390 shutdown nosave || true; wait; rm -f log s", "",
         "redis-server redis-cli", masked=(r"^Could not connect.*\n",)),
    Case("redis keeps its data in a file",
         "redis-server --port 6391 --dir $PWD >log & until redis-cli -p 6391 ping >/dev/null 2>&1; do sleep 0.1; done; redis-cli -p 6391 set a 1; "
         "redis-cli -p 6391 save; redis-cli -p 6391 shutdown; wait; ls; rm dump.rdb log", "", "redis-server redis-cli"),
    Case("inotifywait sees what changes",
         "inotifywait -e create,moved_to --format '%e %f' -m . >log 2>err & until grep -qs established err; do sleep 0.1; done; echo x >a; mv a b; "
         "until grep -q b log; do sleep 0.1; done; kill $!; wait $! 2>/dev/null || true; grep -vE 'log|err' log; rm log err", "", "inotifywait"),
    Case("inotifywait watches a tree",
         "inotifywait -r -m -e close_write --format '%w%f' many >log 2>err & until grep -qs established err; do sleep 0.1; done; echo y >many/d7/f7; "
         "until grep -q f7 log; do sleep 0.1; done; kill $!; wait $! 2>/dev/null || true; cat log; rm log err", MANY, "inotifywait"),
    Case("entr runs a command again",
         "(ls f | entr -n -p sh -c 'until grep two f; do sleep 0.1; done; kill $PPID' 2>/dev/null) & "
         "while kill -0 $! 2>/dev/null; do echo two >f; sleep 0.3; done; wait $! || true", "echo one >f", "entr"),
    Case("watch, timeout and time", "timeout 5 sh -c 'exit 3' || echo $?; timeout 0.2 sleep 5 || echo $?; command time -f %x true", "", "time"),
    Case("a tree of a thousand files is copied, counted and removed",
         "cp -r many copy; find copy -type f | wc -l; diff -r many copy; rm -r copy; find many -name f7 -delete; find many -type f | wc -l", MANY),
    Case("a directory of five thousand names is listed", "ls big | wc -l; ls -U big | head -1 | wc -l; rm -r big", "mkdir big; cd big; seq 5000 | xargs touch"),
    Case("git status of a tree of a thousand files",
         "git status --porcelain; echo x >many/d5/f5; git status --porcelain; git add -A; git commit -qm x", MANY +
         "git init -q; git add .; git commit -qm many"),
    Case("ripgrep, fd and find see the same files", "rg -l '^77[.]' many | LC_ALL=C sort; fdfind -t f f7 many/d77; find many -path '*d77/*' | wc -l", MANY +
         "git init -q; echo many/d78 >.gitignore", "rg fdfind"),
    Case("a long path and odd names",
         "p=$(printf 'd%.0s' $(seq 200)); mkdir -p $p/$p/$p/$p; echo deep >$p/$p/$p/$p/f; cat $p/$p/$p/$p/f; touch 'a b' $'c\\nd' 'é' -- '-x'; ls -b"),
    Case("sparse and large files",
         "truncate -s 3G big; stat -c '%s %b' big; fallocate -l 1M full; stat -c %s full; cp --sparse=always big copy; stat -c %b copy; rm big copy"),
    Case("dd, direct and synchronous writes",
         "dd if=/dev/zero of=f bs=4k count=100 oflag=dsync status=none; dd if=f of=g bs=4k iflag=direct status=none 2>&1; sync f; stat -c %s f g"),
    Case("file locks keep others out", "flock f sh -c 'flock -n f true || echo held'; flock -n f echo free", "touch f"),
    Case("archives go and come: tar, gzip, xz, zip, cpio-like",
         "tar -czf a.tgz d; tar -cJf a.txz d; zip -qr a.zip d; rm -r d; tar -xf a.tgz; tar -tf a.txz; unzip -l a.zip | tail -1; "
         "ls -l --time-style=+%s d | cut -d' ' -f1", "mkdir d; echo x >d/x; ln -s x d/l; chmod 755 d/x", "zip unzip xz", ignored=("a.*",)),
    Case("rsync mirrors with deletes", "rsync -a --delete --itemize-changes src/ dst/ | sort; rsync -an --itemize-changes src/ dst/",
         "mkdir src dst; echo a >src/a; echo b >dst/b; chmod 600 src/a", "rsync"),
    Case("rsync and tar keep numeric owners of the user", "tar -cf t.tar f; tar -xf t.tar --same-owner 2>&1; rsync -a --numeric-ids f g; rm t.tar; ls",
         "echo x >f", "rsync"),
    # Each writes a file of its own: what several write into one pipe, moreutils' parallel has lost a line of, outside.
    Case("xargs -P and parallel shells", "seq 20 | xargs -P4 -n1 sh -c 'echo $0 >x$0'; sort -n x*; parallel -j4 sh -c 'echo $0 >p$0' -- 1 2 3; cat p1 p2 p3", "", "parallel"),
    Case("memory is mapped from a file and shared",
         "python3 -c \"import mmap; f = open('f', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0:1] = b'X'; m.flush(); print(open('f').read())\"",
         "echo abc >f"),
]
