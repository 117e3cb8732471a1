"""Shells, and what programs ask of the host: manuals, packages, addresses, limits, /proc, /dev/shm, languages and times."""

from case import Case
from reasons import ACCOUNT_NAME, DOTFILES, NO_32_BIT, NO_CORES, NO_HOST_PROCESSES, NO_NAMESPACES, NO_OTHER_HOMES, NO_PERSONALITY, NO_SUDO, NO_SYSTEMCTL, OWN_SCHEDULING, SOCKET_LISTS, VARIABLES

CASES = [
    Case("man shows a manual", "man ls | head -3 | tail -1; man -w ls", "", "man"),
    Case("man and git help show git's manual", "man git | sed -n 3,4p", "", "man git"),
    Case("dpkg tells the state of a package", "dpkg -s git | grep -E '^(Package|Status)'; dpkg -l git | tail -1 | cut -c1-8", "", "dpkg"),
    Case("dpkg tells whose a file is and what a package holds", "dpkg -S /usr/bin/git; dpkg -L git | grep -c bin/git$", "", "dpkg"),
    Case("apt-cache tells of an installed package",
         "apt-cache policy git | head -2 | sed 's/:.*git/: git/'; apt list --installed git 2>/dev/null | cut -d/ -f1", "", "apt-cache"),
    Case("ip lists addresses and routes", "ip -brief addr | awk '{print $1}'; ip route | wc -l; ip -6 addr show lo | grep -c inet6", "", "ip"),
    Case("hostname tells name and addresses", "hostname | wc -w; hostname -I | wc -l; hostname -s | wc -w", "", "hostname"),
    Case("ifconfig and netstat", "/usr/sbin/ifconfig -a | grep -o '^lo'; netstat -rn | head -1; netstat -ltn | head -1", "", "netstat"),
    Case("ss lists sockets that listen", "nc -l 127.0.0.1 7654 & for i in $(seq 50); do ss -ltn 2>/dev/null | grep -q 7654 && break; sleep 0.1; done; ss -ltn | grep -c 7654; kill $!", "", "ss nc", differs=SOCKET_LISTS,
         seen=("errors: +Cannot open netlink socket: Protocol not supported",)),
    Case("getent asks for hosts, users and groups",
         "getent hosts localhost; getent passwd root | cut -d: -f1,3; getent group root | cut -d: -f1,3; getent services http/tcp | "
         "awk '{print $1, $2}'"),
    Case("names of users show in ls", "ls -l /etc/passwd | awk '{print $3, $4}'"),
    Case("the locale is the user's", "locale | head -2; locale charmap; printf 'é' | wc -m; locale -a | head -1"),
    Case("a language of the project sorts and formats", "LOCPATH=$PWD/l LC_ALL=de_DE.UTF-8 bash -c 'locale decimal_point; printf \"%.2f\\n\" 1,5'",
         "mkdir l; localedef --no-archive -i de_DE -f UTF-8 l/de_DE.UTF-8 2>/dev/null", "localedef", ignored=("l/*",)),
    Case("time zones are known", "TZ=Europe/Berlin date -d @0 +%H:%M%z; date -d @0 +%Z; python3 -c 'import zoneinfo; print(zoneinfo.ZoneInfo(\"Asia/Tokyo\"))'"),
    Case("the limit of open files is what it is outside", "ulimit -Sn; ulimit -Hn"),
    Case("a thousand and a half files are open at once",
         "python3 -c \"import resource; r = resource.getrlimit(7); resource.setrlimit(7, (min(4000, r[1]), r[1])); "
         "f = [open('/dev/null') for _ in range(1500)]; print(len(f))\""),
    Case("limits of stack, processes and memory",
         "ulimit -s; ulimit -v; [ $(ulimit -u) = unlimited ] || [ $(ulimit -u) -gt 500 ] && echo enough; ulimit -l | sed 's/.*/a number/'"),
    Case("a core file is written where the limit allows it", "ulimit -c unlimited; ulimit -c; sh -c 'kill -ABRT $$' 2>/dev/null || echo $?", "", differs=NO_CORES,
         seen=("status: outside 0, inside 1", "output: -unlimited", "output: -134", "errors: -bash: line 3: * (core dumped) *",
               "errors: +bash: line 3: ulimit: core file size: cannot modify limit: Operation not permitted", "tree: core: outside *, inside none")),
    Case("/dev/shm takes files and executes none by surprise",
         "echo x >/dev/shm/work-test; cat /dev/shm/work-test; rm /dev/shm/work-test; df --output=target /dev/shm | tail -1"),
    Case("/tmp and /var/tmp take files and programs", "for d in /tmp /var/tmp; do f=$(mktemp -p $d); printf '#!/bin/sh\\necho ran\\n' >$f; chmod +x $f; $f; rm $f; done"),
    Case("/proc tells a process of itself",
         "grep -c processor /proc/cpuinfo | sed 's/[0-9]*/N/'; head -1 /proc/self/status; readlink /proc/self/exe; cat /proc/self/comm; "
         "[ -r /proc/meminfo ] && [ -r /proc/loadavg ] && [ -r /proc/uptime ] && [ -r /proc/stat ] && echo readable"),
    Case("/proc/sys is readable", "cat /proc/sys/kernel/ostype /proc/sys/vm/max_map_count /proc/sys/fs/inotify/max_user_watches /proc/sys/kernel/pid_max"),
    Case("ps, pgrep and top see the session's own processes",
         "sleep 30 & until pgrep -x sleep | grep -q $!; do sleep 0.1; done; ps -o comm= -p $!; pgrep -x sleep | grep -c $!; top -b -n1 -p $! | tail -1 | awk '{print $NF}'; kill $!", "", "ps pgrep top"),
    Case("ps sees the host's processes", "ps -e -o comm= | grep -c systemd | sed 's/[1-9][0-9]*/some/'", "", "ps", differs=NO_HOST_PROCESSES,
         seen=("output: -some", "output: +0")),
    Case("lsof and fuser find who has a file open", "exec 3<f; lsof -t f | grep -c $$; fuser f 2>/dev/null | grep -c $$", "echo x >f", "lsof fuser"),
    Case("sysconf and nproc", "getconf _NPROCESSORS_ONLN; nproc; getconf PAGESIZE ARG_MAX 2>/dev/null || getconf PAGESIZE; getconf NAME_MAX ."),
    Case("uname, the release and virtualisation", "uname -sm; . /etc/os-release; echo $ID; cat /etc/debian_version | cut -c1-2"),
    Case("free, df and du tell of memory and space", "free -m | head -1 | wc -w; df --output=avail . | wc -l; du -sb f | cut -f1", "echo x >f"),
    Case("mount and findmnt tell where the project lies", "findmnt -no FSTYPE -T . | wc -l; stat -f -c %T . ; mount | wc -l | sed 's/[0-9]*/N/'"),
    Case("whoami, id and logname", "whoami; id -un; id -Gn | wc -w", "", differs=ACCOUNT_NAME,
         seen=("output: -alice", "output: +pi-agent-alice")),
    Case("a program makes namespaces of its own", "unshare --user --map-root-user id -u; unshare -Urmp --fork true", "", "unshare", differs=NO_NAMESPACES,
         seen=("status: outside 0, inside 1", "output: -0", "errors: +unshare: unshare failed: Operation not permitted")),
    Case("bubblewrap builds a sandbox", "bwrap --ro-bind / / --dev /dev --unshare-all true; echo built", "", "bwrap", differs=NO_NAMESPACES,
         seen=("status: outside 0, inside 1", "output: -built", "errors: +bwrap: No permissions to create *new namespace, *")),
    Case("a program runs without random addresses (setarch)", "setarch -R sh -c 'echo ran'; setarch --list | grep -c x86_64", "", "setarch"),
    Case("a program runs under the name of a 32-bit machine (setarch)", "linux32 uname -m", "", "linux32", differs=NO_PERSONALITY,
         seen=("status: outside 0, inside 1", "output: -i686", "errors: +linux32: failed to set personality to linux32: Operation not permitted")),
    Case("a 32-bit program runs", "./tiny && echo ran || echo $?",
         # exit(0) by int 0x80, as an ELF file of 32 bits.
         r"printf '\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\2\0\3\0\1\0\0\0\x54\x80\4\x08\x34\0\0\0\0\0\0\0\0\0\0\0\x34\0\x20\0\1\0\0\0\0\0\0\0' >tiny; "
         r"printf '\1\0\0\0\0\0\0\0\0\x80\4\x08\0\x80\4\x08\x5d\0\0\0\x5d\0\0\0\5\0\0\0\0\x10\0\0\x31\xdb\x31\xc0\x40\xcd\x80\0\0' >>tiny; chmod +x tiny",
         differs=NO_32_BIT, seen=("output: -ran", "output: +159", "errors: +*Bad system call*")),
    Case("a thread asks for the scheduling that it has, and pins itself (ZeroMQ, OpenMP)", "python3 t.py", r"""cat >t.py <<'END'
import ctypes, os, threading
libc = ctypes.CDLL(None, use_errno=True)
me = threading.get_native_id()
policy, param = ctypes.c_int(), ctypes.c_int()
libc.pthread_self.restype = ctypes.c_void_p
self = ctypes.c_void_p(libc.pthread_self())
print(libc.pthread_getschedparam(self, ctypes.byref(policy), ctypes.byref(param)), libc.pthread_setschedparam(self, policy, ctypes.byref(param)))
os.sched_setaffinity(me, os.sched_getaffinity(0))
os.setpriority(os.PRIO_PROCESS, me, 3)
print(os.getpriority(os.PRIO_PROCESS, me))
ready, done = threading.Event(), threading.Event()
other = threading.Thread(target=lambda: (ready.set(), done.wait()))
other.start()
ready.wait()
os.sched_setaffinity(other.native_id, {min(os.sched_getaffinity(0))})
print(len(os.sched_getaffinity(other.native_id)), os.sched_getscheduler(other.native_id))
os.sched_setscheduler(other.native_id, os.SCHED_BATCH, os.sched_param(0))
print(os.sched_getscheduler(other.native_id))
done.set()
END"""),
    Case("prlimit reads the limits of a process", "sleep 60 & prlimit --pid $! --nofile --output=SOFT --noheadings; kill $!", "", "prlimit"),
    Case("a POSIX message queue is made, used and removed", "python3 q.py", r"""cat >q.py <<'END'
import ctypes, os
libc = ctypes.CDLL("librt.so.1", use_errno=True)
queue = libc.mq_open(b"/work-test", os.O_CREAT | os.O_RDWR, 0o600, None)
again = libc.mq_open(b"/work-test", os.O_RDWR)
print(queue >= 0, again >= 0, libc.mq_send(queue, b"hello", 5, 0))
text = ctypes.create_string_buffer(8192)
print(libc.mq_receive(again, text, 8192, None), text.value, libc.mq_unlink(b"/work-test"))
END"""),
    Case("sudo is asked", "sudo -n true 2>/dev/null && echo root || echo no", "", differs=NO_SUDO,
         seen=("output: -no", "output: +root")),
    Case("another user's home is asked for", "ls -d /home/bob; ls /home | wc -l", "", differs=NO_OTHER_HOMES,
         seen=("status: outside 0, inside 2", "output: -/home/bob", "output: -4", "errors: +ls: cannot access '/home/bob': No such file or directory")),
    Case("systemctl asks the host's manager", "systemctl is-system-running >/dev/null; systemctl show -p Version | cut -c1-7", "", "systemctl", differs=NO_SYSTEMCTL,
         seen=("status: outside 0, inside 1", "output: -Version")),
    Case("a speller finds its dictionary", "echo 'helo wrld' | aspell -d en_US list", "", "aspell"),
    Case("an XML catalog leads to the host's stylesheets",
         "xsltproc --nonet http://docbook.sourceforge.net/release/xsl/current/html/docbook.xsl a.xml 2>/dev/null | grep -o '<title>.*</title>'",
         "echo '<article><title>One</title><para>x</para></article>' >a.xml", "xsltproc"),
    Case("ping of localhost", "ping -c1 -W2 127.0.0.1 | grep -c '1 received'", "", "ping"),
    Case("nc and curl speak over localhost and a Unix socket",
         "nc -l -U s >got & until echo through | nc -N -U s 2>/dev/null; do sleep 0.1; done; wait; cat got; rm -f s got", "", "nc"),
    Case("openssl makes keys, digests and certificates",
         "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=x -keyout k -out c 2>/dev/null; openssl x509 -in c -noout -subject; echo x | "
         "openssl dgst -sha256; rm k c", "", "openssl"),
    Case("gpg makes a key and signs",
         "export GNUPGHOME=$PWD/g; mkdir -m700 g; gpg -q --batch --passphrase '' --quick-gen-key a@b 2>/dev/null; echo x | gpg -q --batch -s | "
         "gpg -q --batch 2>/dev/null; gpgconf --kill all; rm -rf g", "", "gpg"),
    Case("ssh-keygen makes a key and ssh-agent keeps it",
         "ssh-keygen -q -t ed25519 -N '' -f k; eval $(ssh-agent) >/dev/null; ssh-add -q k; ssh-add -l | wc -l; ssh-agent -k >/dev/null; rm k k.pub",
         "", "ssh-agent"),
    Case("s-nail writes a letter", "echo body | s-nail -n -S mta=$PWD/mta -s subject bob@localhost; grep -E '^(Subject|To|body)' sent",
         "printf '#!/bin/sh\\ncat >%s/sent\\n' $PWD >mta; chmod +x mta", "s-nail", ignored=("sent",)),
    Case("jq, bc, awk, xmllint-like filters",
         "echo '{\"a\": [1, 2]}' | jq -c '.a | add'; echo '2^64' | bc; echo a b | awk '{print $2}'; seq 5 | paste -sd+ | bc", "", "jq bc"),
    Case("bash traces and shows what a script does, and nothing before it", "bash -xc 'echo hi'; bash -vc 'echo hi'; bash -xc ': $-'"),
    Case("a linker's path of the project is searched", "./h", "printf 'int one(void) { return 1; }\n' >l.c; printf '#include <stdio.h>\nint one(void); int main(void) { return one() == 1 ? puts(\"found\") < 0 : 1; }\n' >h.c; "
         "mkdir lib; gcc -shared -fPIC -o lib/libone.so l.c; gcc -o h h.c -Llib -lone", "gcc", variables=(("LD_LIBRARY_PATH", "/home/alice/projects/work/lib:/home/alice/lib"),)),
    Case("dash, bash, zsh and fish run scripts", "for s in dash bash zsh; do $s -c 'echo $((6 * 7))'; done; fish -c 'math 6 x 7'", "", "dash zsh fish"),
    Case("bash reads the user's .bashrc where it is interactive", "bash -ic 'hello; echo $SET' 2>/dev/null",
         "printf 'alias hello=\"echo hi\"\\nSET=set\\n' >>~/.bashrc", differs=DOTFILES,
         seen=("output: -hi", "output: -set", "output: +")),
    Case("a login shell reads the user's .profile", "bash -lc 'echo $FROM_PROFILE'", "echo 'export FROM_PROFILE=yes' >>~/.profile", differs=DOTFILES,
         seen=("output: -yes", "output: +")),
    Case("signals, traps and process groups",
         "bash -c 'trap \"echo caught; exit 5\" TERM; kill -TERM $$' || echo $?; setsid sh -c 'echo session'; (sleep 9 & wait) & kill $!; wait $! || "
         "echo $?"),
    Case("nice, ionice, chrt and taskset", "nice -n 5 nice; ionice -c3 true && echo idle; taskset -c 0 nproc; chrt -b 0 true && echo batch"),
    Case("niceness, affinity and limits of a process by its number",
         "sleep 60 & renice -n 19 -p $! >/dev/null 2>&1 && echo renice; taskset -p 1 $! >/dev/null 2>&1 && echo taskset; prlimit --pid $! --core=0 2>&1 && echo prlimit; "
         "kill $!", differs=OWN_SCHEDULING,
         seen=("[bookworm] output: -renice", "[bookworm] output: -taskset", "[bookworm] output: -prlimit",
               "[bookworm] output: +prlimit: failed to set the CORE resource limit: Operation not permitted")),
    Case("OpenMP pins its threads", "gcc -fopenmp -o o o.c; OMP_PROC_BIND=true OMP_NUM_THREADS=2 ./o",
         "printf '#include <stdio.h>\nint main(void) {\n#pragma omp parallel\n#pragma omp single\n  puts(\"ran\");\n}\n' >o.c", "gcc", ignored=("o",)),
    Case("a terminal is there through script and expect",
         # Its input does not end: script(1) types that end, too, and may then lose what is still to come.
         "mkfifo in; script -qec 'tty | cut -c1-8; stty size | wc -w' /dev/null <>in | tr -d '\\r'; rm in; expect -c 'set timeout -1; spawn -noecho sh -c \"test -t 0 && echo terminal\"; "
         "expect eof'", "", "script expect", masked=(r"\r",)),
    Case("screen keeps a session",
         "screen -dmS work sh -c 'echo in >f; sleep 60'; until [ -s f ]; do sleep 0.1; done; cat f; screen -ls | grep -c '[.]work'; screen -S work -X quit; rm f", "", "screen"),
    Case("tmux keeps a session",
         "tmux -L work new-session -d 'echo in >f; sleep 60'; until [ -s f ]; do sleep 0.1; done; cat f; tmux -L work kill-server; rm f", "", "tmux"),
    Case("EDITOR of the user's environment is kept", "echo \"${EDITOR-unset}\"; echo x >>f; git commit -qa; git log -1 --format=%s",
         "git init -q; echo one >f; git add .; git commit -qm start; printf '#!/bin/sh\\necho edited >\"$1\"\\n' >ed; chmod +x ed; "
         "echo ed >>.git/info/exclude",
         variables=(("EDITOR", "/home/alice/projects/work/ed"),)),
    Case("GIT_INDEX_FILE of the user's environment is kept, as a hook has it",
         "echo x >x; git add x; git diff --cached --name-only; unset GIT_INDEX_FILE; git status --porcelain",
         "git init -q; echo one >f; git add .; git commit -qm start; cp .git/index .git/other",
         variables=(("GIT_INDEX_FILE", "/home/alice/projects/work/.git/other"),)),
    Case("git's places of the user's environment may be relative, as a hook has them", "git add w/x; git diff --cached --name-only; git status --porcelain",
         "mkdir w; git init -q; echo one >f; git add .; git commit -qm start; echo x >w/x; cp .git/index .git/other",
         variables=(("GIT_DIR", ".git"), ("GIT_INDEX_FILE", ".git/other"), ("GIT_WORK_TREE", "."))),
    Case("GIT_DIR and GIT_WORK_TREE of the user's environment are kept", "git status --porcelain; git rev-parse --show-toplevel",
         "mkdir w; git init -q --separate-git-dir=r.git w; rm w/.git; echo x >w/x",
         variables=(("GIT_DIR", "/home/alice/projects/work/r.git"), ("GIT_WORK_TREE", "/home/alice/projects/work/w"))),
    Case("a directory that the user's PATH has last is searched last", "type -P head; type -P last",
         "mkdir bin; printf '#!/bin/sh\\n' | tee bin/head >bin/last; chmod +x bin/*",
         variables=(("PATH", "/usr/local/bin:/usr/bin:/bin:/home/alice/projects/work/bin"),)),
    Case("a directory of the project in the user's PATH is searched", "project-tool",
         "mkdir bin; printf '#!/bin/sh\\necho tool\\n' >bin/project-tool; chmod +x bin/project-tool",
         variables=(("PATH", "/home/alice/projects/work/bin:/usr/local/bin:/usr/bin:/bin"),)),
    Case("directories of /opt and /usr/local in the user's PATH are searched", "opt-tool; go-tool", variables=(("PATH",
         "/opt/tool/bin:/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin"),)),
    Case("another variable of the user's environment is kept", "echo \"${MY_SETTING-unset}\"", variables=(("MY_SETTING", "kept"),), differs=VARIABLES,
         seen=("output: -kept", "output: +unset")),
    Case("a program of /opt and of /usr/local runs", "ls -d /opt /usr/local/bin; /usr/local/bin/node -p 1"),
    Case("here documents, process substitution and coproc",
         "cat <(echo a) <(echo b); coproc cat; echo c >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x; exec {COPROC[1]}>&-; "
         "diff <(echo 1) <(echo 1) && echo same"),
    Case("dates, random numbers and sleeping",
         "date -u -d 2020-01-01 +%s; head -c4 /dev/urandom | wc -c; sleep 0.1; echo $((RANDOM >= 0)); cat /proc/sys/kernel/random/uuid | wc -c"),
]
