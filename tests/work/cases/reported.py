"""What people reported of sandboxes: ordinary libraries and tools that one of them had broken."""

from case import Case
from cases.cpp import AUTO, BUILT, HELLO
from cases.go_rust_java_ruby import COMPILED, GO
from reasons import NO_CLONE3, NO_OTHER_HOMES, NO_SERVICE_ACCOUNTS

# Waits for a server of the case, and ends with it.
UNTIL = "until curl -sf {0} >got; do kill -0 $server; sleep 0.1; done; "
END = "; kill $server; wait $server 2>/dev/null || true; rm -f got"
CALLS = r"""cat >t.py <<'EOP'
import ctypes, os, select, signal, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
EOP
cat >>t.py <<'EOP'
"""


def python(text, errors=""):
    """A case's parts: a program in Python, and what runs it."""
    return {"script": f"python3 t.py{errors}; rm t.py", "prepare": CALLS + text.strip("\n") + "\nEOP\n"}


def node(text):
    return {"script": "node t.js; rm t.js", "prepare": "cat >t.js <<'EOP'\n" + text.strip("\n") + "\nEOP\n", "tools": "node"}


LIBRARIES = [
    Case("ZeroMQ asks and answers, between threads, by a socket file and by TCP", **python("""
import threading, zmq
context = zmq.Context()
for place in ("inproc://here", "ipc://" + os.getcwd() + "/s", "tcp://127.0.0.1:*"):
    server, client = context.socket(zmq.REP), context.socket(zmq.REQ)
    server.bind(place)
    client.connect(server.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\\0"))
    threading.Thread(target=lambda: server.send(server.recv() + b"!")).start()
    client.send(b"hello")
    print(place.partition(":")[0], client.recv())
    client.close()
""")),
    Case("a Jupyter kernel runs a cell", **python("""
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="python3")
said = []
client.execute_interactive("print(6 * 7)", output_hook=lambda message: said.append(message["content"].get("text")), timeout=60)
print([text for text in said if text])
client.stop_channels()
manager.shutdown_kernel(now=True)
""", " 2>/dev/null")),
    Case("semaphores, locks and a pool of processes (POSIX)", **python("""
import multiprocessing as m
from concurrent.futures import ProcessPoolExecutor
def main():
    with m.Semaphore(2), m.RLock(), ProcessPoolExecutor(2) as pool:
        print(list(pool.map(abs, [-1, -2])), os.sysconf("SC_SEM_NSEMS_MAX"))
    with m.get_context("forkserver").Manager() as manager:
        shared = manager.dict(a=1)
        shared["b"] = 2
        print(dict(shared))
if __name__ == "__main__":
    main()
""")),
    Case("shared memory, semaphores and queues of System V", "for what in -M4096 -S2 -Q; do id=$(ipcmk $what | grep -o '[0-9]*$'); kind=$(echo $what | cut -c2 | tr MSQ msq); ipcs -$kind -i $id | grep -c 'mode\\|uid' "
         "| sed 's/[1-9][0-9]*/there/'; ipcrm -$kind $id; done; ipcs -a | grep -c \"^0x.*$(id -un)\" || true", "", "ipcmk ipcs ipcrm"),
    Case("a program is run from memory (memfd_create), and its file is sealed", **python("""
import fcntl
fd = os.memfd_create("program", os.MFD_ALLOW_SEALING)
os.write(fd, open("/bin/echo", "rb").read())
fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW)
print(subprocess.run([f"/proc/self/fd/{fd}", "from", "memory"], pass_fds=[fd], stdout=-1).stdout)
try:
    os.write(fd, b"x")
except PermissionError:
    print("sealed")
""")),
    Case("a file without a name gets one (O_TMPFILE), and two exchange theirs", **python("""
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o644)
os.write(fd, b"unnamed")
print(libc.linkat(-100, f"/proc/self/fd/{fd}".encode(), -100, b"named", 0x400))
open("other", "w").write("other")
print(libc.renameat2(-100, b"named", -100, b"other", 2), open("named").read(), open("other").read())
print(libc.renameat2(-100, b"named", -100, b"other", 1))
""")),
    Case("files are copied in the kernel (copy_file_range, sendfile, splice)", **python("""
open("a", "wb").write(b"x" * 100000)
a = os.open("a", os.O_RDONLY)
for name, copy in (("b", lambda out: os.copy_file_range(a, out, 100000, 0)), ("c", lambda out: os.sendfile(out, a, 0, 100000))):
    print(copy(os.open(name, os.O_CREAT | os.O_WRONLY)), os.path.getsize(name))
r, w = os.pipe()
print(libc.splice(a, ctypes.byref(ctypes.c_long(0)), w, None, 1000, 0), len(os.read(r, 1000)))
""")),
    Case("locks of POSIX, of open files and of flock keep other processes out", **python("""
import fcntl, struct
whole = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)
other = "import fcntl, sys; f = open('f', 'r+'); fcntl.%s(f, fcntl.LOCK_EX | fcntl.LOCK_NB)"
def tried(how):
    return subprocess.run([sys.executable, "-c", other % how], stderr=subprocess.DEVNULL).returncode
for name, lock, how in (("posix", lambda f: fcntl.lockf(f, fcntl.LOCK_EX), "lockf"), ("open file", lambda f: fcntl.fcntl(f, 37, whole), "lockf"), ("flock", lambda f: fcntl.flock(f, fcntl.LOCK_EX), "flock")):
    with open("f", "w") as file:
        lock(file)
        print(name, tried(how), end=" ")
    print(tried(how))
""")),
    Case("descriptors of processes, timers, signals and events", **python("""
child = subprocess.Popen(["sleep", "60"])
fd = os.pidfd_open(child.pid)
poll = select.epoll()
poll.register(fd, select.EPOLLIN)
signal.pidfd_send_signal(fd, signal.SIGTERM)
print(len(poll.poll(20)), child.wait())
events = libc.eventfd(3, 0)
print(int.from_bytes(os.read(events, 8), sys.byteorder))
timer = libc.timerfd_create(1, 0)
libc.timerfd_settime(timer, 0, (ctypes.c_long * 4)(0, 0, 0, 1000000), None)
print(int.from_bytes(os.read(timer, 8), sys.byteorder) > 0)
signal.setitimer(signal.ITIMER_REAL, 0.05)
print(signal.sigwait({signal.SIGALRM}) if not signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM}) else "")
""")),
    Case("a process adopts orphans, is named, and ends with its parent (prctl)", **python("""
print(libc.prctl(36, 1, 0, 0, 0), libc.prctl(15, b"my-name"), open("/proc/self/comm").read().strip())
child = subprocess.Popen(["sh", "-c", "sleep 0.2 & exit 0"])
child.wait()
print(os.wait()[1])
r, w = os.pipe()
if not (middle := os.fork()):
    if not os.fork():
        libc.prctl(1, signal.SIGKILL)
        os.write(w, b"x")
        signal.pause()
    os.read(r, 1)
    os._exit(0)
os.waitpid(middle, 0)
print(os.wait()[1])
""")),
    Case("memory is locked, advised and protected", **python("""
import mmap
page = mmap.mmap(-1, 8192)
where = ctypes.addressof(ctypes.c_char.from_buffer(page))
print(libc.mlock(ctypes.c_void_p(where), 4096), libc.munlock(ctypes.c_void_p(where), 4096), libc.mprotect(ctypes.c_void_p(where), 4096, 1))
page.madvise(mmap.MADV_DONTNEED)
page.madvise(mmap.MADV_DONTFORK)
print(page[0])
""")),
    Case("a terminal of a program's own: size, modes, and what is typed", **python("""
import fcntl, pty, struct, termios, tty
pid, fd = pty.fork()
if not pid:
    os.execlp("sh", "sh", "-c", "stty size; stty -echo; read -r line; echo got $line; test -t 0 && tty >/dev/null && echo terminal")
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
os.write(fd, b"typed\\n")
said = b""
try:
    while data := os.read(fd, 1000):
        said += data
except OSError:
    pass
os.waitpid(pid, 0)
print([line for line in said.decode().split() if line not in ("typed",)][-3:])
""")),
    Case("a file's owner is denied what its mode denies", "chmod 000 f; cat f 2>&1 || true; chmod 555 d; touch d/x 2>&1 || true; chmod 644 f; chmod 755 d; cat f", "echo x >f; mkdir d"),
]
NODES = [
    Case("node runs programs and takes what they say (spawnSync, execFileSync)", **node("""
const { spawnSync, execFileSync, execSync } = require("child_process");
const done = spawnSync("git", ["--version"]);
console.log(done.status, done.error, done.stdout.length > 0, execFileSync("echo", ["x"]).toString(), execSync("exit 0; echo never").length);
try { execSync("exit 3", { stdio: "ignore" }); } catch (error) { console.log(error.status); }
""")),
    Case("node forks, and passes messages and a socket (cluster)", **node("""
const cluster = require("cluster"), http = require("http");
if (cluster.isPrimary) {
  const workers = [cluster.fork(), cluster.fork()];
  let listening = 0;
  cluster.on("listening", (worker, address) => {
    if (++listening < 2) return;
    http.get({ port: address.port, host: "127.0.0.1" }, (answer) => answer.on("data", (data) => { console.log(`${data}`); workers.forEach((one) => one.send("end")); }));
  });
} else {
  http.createServer((_, answer) => answer.end("from a worker")).listen(0, "127.0.0.1");
  process.on("message", () => process.exit(0));
}
""")),
    Case("threads of node share memory and wait for each other", **node("""
const { Worker, isMainThread, workerData } = require("worker_threads");
if (isMainThread) {
  const shared = new Int32Array(new SharedArrayBuffer(8));
  const threads = [1, 2, 3].map(() => new Worker(__filename, { workerData: shared }));
  Promise.all(threads.map((one) => new Promise((ended) => one.on("exit", ended)))).then(() => console.log(shared[0], Atomics.wait(shared, 1, 0, 10)));
} else for (let i = 0; i < 1000; i++) Atomics.add(workerData, 0, 1);
""")),
    Case("node serves on a socket file below the temporary directory (tsx, vite)", **node("""
const fs = require("fs"), net = require("net"), os = require("os"), path = require("path");
const place = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "tsx-")), `${process.pid}.pipe`);
const server = net.createServer((one) => one.end("through")).listen(place, () => net.connect(place).on("data", (data) => { console.log(`${data}`); server.close(); }));
""")),
    Case("a web socket is opened on localhost", **node(r"""
const crypto = require("crypto"), http = require("http"), net = require("net");
const server = http.createServer().on("upgrade", (request, socket) => {
  const key = crypto.createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${key}\r\n\r\n`);
  socket.end(Buffer.from([0x81, 2, 0x6f, 0x6b]));
}).listen(0, "localhost", () => {
  const client = net.connect(server.address().port, "localhost", () => client.write("GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"));
  let said = Buffer.alloc(0);
  client.on("data", (data) => (said = Buffer.concat([said, data]))).on("end", () => { console.log(said.toString("latin1").split("\r\n").slice(0, 4), said.subarray(-2).toString()); server.close(); });
});
""")),
    Case("node has no cache of compiled code that it was not told of", "node -p 'process.env.NODE_COMPILE_CACHE'; node -p 'require(\"module\").getCompileCacheDir?.()'", "", "node"),
]
BUILDS = [
    Case("make passes its jobs on to makes below, and keeps their words together (-O)", "make -s -j4 -O; make -s -j4 -O again | sort",
         "for d in a b c; do mkdir $d; printf 'all: x y\\nx y:\\n\\t@sleep 0.1; echo %s-$@ >$@\\nagain:\\n\\t@echo %s again\\n' $d $d >$d/Makefile; done; "
         "printf 'all again: a b c\\na b c:\\n\\t+@$(MAKE) -s -C $@ $(filter again,$(MAKECMDGOALS))\\n.PHONY: all again a b c\\n' >Makefile", "make"),
    Case("cmake's presets configure, build and test", "cmake --preset dev >/dev/null; cmake --build --preset dev >/dev/null; ctest --preset dev -Q; build/dev/h; cmake --list-presets", HELLO +
         "printf 'cmake_minimum_required(VERSION 3.20)\\nproject(h C)\\nenable_testing()\\nadd_executable(h h.c)\\nadd_test(NAME runs COMMAND h)\\n' >CMakeLists.txt; "
         'printf \'{"version": 3, "configurePresets": [{"name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev"}], "buildPresets": [{"name": "dev", "configurePreset": "dev"}], '
         '"testPresets": [{"name": "dev", "configurePreset": "dev"}]}\\n\' >CMakePresets.json', "cmake ninja gcc", ignored=BUILT),
    Case("meson builds a subproject, and installs below DESTDIR", "meson setup build --prefix=/usr >/dev/null; DESTDIR=$PWD/out meson install -C build >/dev/null; out/usr/bin/h; find out -type f | sort", HELLO +
         "printf \"project('h', 'c')\\nsubproject('s')\\nexecutable('h', 'h.c', install: true)\\n\" >meson.build; mkdir -p subprojects/s; "
         "printf \"project('s', 'c')\\ninstall_data('data', install_dir: 'share/s')\\n\" >subprojects/s/meson.build; echo data >subprojects/s/data", "meson ninja gcc", ignored=(*BUILT, "out/usr/bin/h")),
    Case("autotools try what they would release, in a read-only tree (distcheck)", "autoreconf -i >/dev/null 2>&1; ./configure -q >/dev/null; make -s distcheck 2>/dev/null | grep 'ready for distribution'; ls -d h-1.0*", AUTO,
         "autoreconf automake gcc", ignored=(*BUILT, "*.tar.gz", "autom4te.cache*", "config.log", "config.status", ".deps*", "configure~"), timeout=300),
    Case("a preloaded library of the project stands in for the C library's function", "LD_PRELOAD=$PWD/p.so sh -c './h; true'; LD_LIBRARY_PATH=. ldd ./h | grep -c libc.so",
         HELLO + "printf 'int puts(const char *s);\\nint printf(const char *f, ...) { return puts(\"preloaded\"); }\\n' >p.c; gcc -w -fno-builtin -shared -fPIC -o p.so p.c; gcc -fno-builtin -o h h.c", "gcc", ignored=("p.so", "h")),
    Case("gdb has the same addresses at each run", "for i in 1 2; do gdb -nx -batch -ex 'break twice' -ex run -ex 'print $sp' ./h 2>/dev/null | grep '^\\$'; done | uniq | wc -l", HELLO + "gcc -g -o h h.c", "gdb gcc",
         ignored=BUILT),
    Case("cargo runs a build script and an example of a workspace", "cargo run --offline -q -p app; cargo run --offline -q -p app --example e",
         "mkdir -p app/src app/examples; printf '[workspace]\\nmembers = [\"app\"]\\nresolver = \"2\"\\n' >Cargo.toml; printf '[package]\\nname = \"app\"\\nversion = \"1.0.0\"\\nedition = \"2021\"\\n' >app/Cargo.toml; "
         "printf 'fn main() { std::fs::write(format!(\"{}/made.rs\", std::env::var(\"OUT_DIR\").unwrap()), \"const MADE: u8 = 7;\").unwrap(); }\\n' >app/build.rs; "
         "printf 'include!(concat!(env!(\"OUT_DIR\"), \"/made.rs\"));\\nfn main() { println!(\"{MADE}\"); }\\n' >app/src/main.rs; echo 'fn main() { println!(\"example\"); }' >app/examples/e.rs", "cargo", ignored=("target", "target/*")),
    Case("go builds from vendored modules", GO + "go build -mod=vendor -o hello .; ./hello 2>&1", COMPILED +
         "mkdir -p vendor/example.org/m; printf 'module example.org/x\\n\\ngo 1.19\\n\\nrequire example.org/m v1.0.0\\n' >go.mod; printf '# example.org/m v1.0.0\\n## explicit; go 1.19\\nexample.org/m\\n' >vendor/modules.txt; "
         "printf 'package m\\n\\nconst X = 5\\n' >vendor/example.org/m/m.go; printf 'package main\\n\\nimport \"example.org/m\"\\n\\nfunc main() { println(m.X) }\\n' >main.go", "go", ignored=("hello",)),
    Case("a Debian package is built and read", "dpkg-deb --root-owner-group -Zgzip -b p >/dev/null; dpkg-deb -c p.deb | cut -d' ' -f1,2 | sort | uniq -c; dpkg-deb -f p.deb Package; dpkg-deb -x p.deb out; cat out/usr/share/p/x",
         "mkdir -p p/DEBIAN p/usr/share/p; echo x >p/usr/share/p/x; printf 'Package: p\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@example.org>\\nDescription: p\\n' >p/DEBIAN/control", "dpkg-deb", ignored=("p.deb",)),
    Case("environment-modules loads a module of the project", ". /usr/share/modules/init/bash; module use $PWD/modules; module load tool/1; project-tool; module list 2>&1 | grep -o 'tool/1'; module unload tool; type -P project-tool || echo gone",
         "mkdir -p modules/tool bin; printf '#%%Module\\nprepend-path PATH %s/bin\\n' $PWD >modules/tool/1; printf '#!/bin/sh\\necho tool\\n' >bin/project-tool; chmod +x bin/project-tool"),
]
FILES = [
    Case("tar keeps hard links, holes and attributes", "tar --xattrs --sparse -cf t.tar a b hole; mkdir x; tar --xattrs -xf t.tar -C x; cd x; stat -c '%h %n' a b; getfattr --only-values -n user.note a; echo; stat -c '%s %b' hole; rm ../t.tar",
         "echo x >a; ln a b; setfattr -n user.note -v hello a; truncate -s 1M hole", "setfattr getfattr"),
    Case("rsync keeps hard links, attributes and access lists (-aHAX)", "rsync -aHAX src/ dst/; stat -c '%h %n' dst/a dst/b; getfattr --only-values -n user.note dst/a; echo; rsync -aHAXni src/ dst/ | wc -l",
         "mkdir src; echo x >src/a; ln src/a src/b; setfattr -n user.note -v hello src/a", "rsync setfattr getfattr"),
    Case("cp links, refers and takes back-ups", "cp -l f hard; cp -s $PWD/f soft; cp --reflink=auto f copy; echo two >f2; cp -b f2 copy; cp -u f f2; stat -c '%h' f; ls; cat copy copy~ f2; install -D -m 750 f deep/er/f; stat -c %a deep/er/f",
         "echo one >f"),
    Case("holes are punched into a file and found", "fallocate -p -o 4096 -l 65536 f; stat -c '%s' f; od -An -tx1 -j4096 -N2 f; od -An -c -j4095 -N1 f; python3 -c \"import os; f = os.open('f', 0); print(os.lseek(f, 0, os.SEEK_HOLE))\"",
         "head -c 131072 /dev/zero | tr '\\0' x >f; sync f", "fallocate"),
    Case("standard streams are opened by their names", "(echo in | cat /dev/stdin; echo out >/dev/stdout; echo err >/dev/stderr; echo in | python3 -c 'print(open(\"/dev/stdin\").read())'; exec 3>f; echo three >/dev/fd/3; cat f; "
         "awk 'BEGIN { print \"awk\" >\"/dev/stderr\" }'; bash -c 'echo a; echo b >>/dev/stdout; echo c >/dev/stderr' >g 2>&1; cat g; echo x | tee /dev/stderr | wc -l) 2>&1 | cat"),
    Case("tail follows a log that is turned over", "(tail -F -n +1 log 2>/dev/null & echo $! >pid; wait) >seen & until grep -qs one seen; do sleep 0.1; done; mv log log.1; echo two >log; until grep -q two seen; do sleep 0.1; done; "
         "kill $(cat pid); wait; cat seen; rm pid", "echo one >log", "tail"),
    Case("what is started in the background goes on", "nohup sh -c 'sleep 0.3; echo done >late' >/dev/null 2>&1 & (setsid sh -c 'sleep 0.3; echo done >later' &) ; until [ -s late ] && [ -s later ]; do sleep 0.1; done; "
         "(sleep 0.1; exit 3) & wait $! || echo $?; sh -c 'kill -STOP $$; echo on' & until ps -o stat= -p $! | grep -q T; do sleep 0.1; done; kill -CONT $!; wait $!"),
    Case("odd characters stay as they are", "printf '%s\\n' 'a!=b' \"it's\" '$HOME `x` \\\\ \"q\"' \"$1\"; jq -nc '{\"a\": 1} | select(.a != 2)'; echo \"${#1}\"", "", "jq", arguments=("tab\there !$PATH 'é' \\",)),
    Case("programs run without any variable, and with few files", "env -i /usr/bin/python3 -c 'import os; print(sorted(os.environ))'; env -i /bin/bash -c 'export -p'; prlimit --nofile=64:64 bash -c 'ulimit -n'; umask; touch f; stat -c %a f", "", "prlimit"),
]
SERVERS = [
    Case("localhost has its names, and all addresses of 127", "python3 -m http.server -b 0.0.0.0 8767 >/dev/null 2>&1 & server=$!; " + UNTIL.format("http://127.0.0.1:8767/f") +
         "for name in localhost 127.0.0.2 127.1 app.localhost; do curl -sf http://$name:8767/f; done; getent ahostsv4 localhost | head -1 | cut -d' ' -f1" + END, "echo served >f", "curl"),
    Case("nginx serves a directory with the host's list of types", "/usr/sbin/nginx -p $PWD -c n.conf -e log & server=$!; " + UNTIL.format("http://127.0.0.1:8768/a.css") +
         "curl -sI http://127.0.0.1:8768/a.css | grep -i '^content-type'; curl -sI http://127.0.0.1:8768/a.woff2 | grep -i '^content-type'" + END,
         "mkdir www t; echo x | tee www/a.css >www/a.woff2; for one in client_body proxy fastcgi uwsgi scgi; do echo \"${one}_temp_path t/$one;\"; done >temp; "
         "printf 'daemon off;\\npid n.pid;\\nevents {}\\nhttp {\\n  include /etc/nginx/mime.types;\\n  access_log off;\\n  include temp;\\n  server { listen 127.0.0.1:8768; root www; }\\n}\\n' >n.conf", "curl",
         ignored=("log", "n.pid", "t/*")),
    Case("TLS is spoken on localhost", "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout k -out c 2>/dev/null; openssl s_server -quiet -accept 127.0.0.1:8769 -key k -cert c -WWW & server=$!; " +
         UNTIL.format("--cacert c https://localhost:8769/f") + "cat got" + END + "; rm k c", "echo secret >f", "openssl curl", masked=(r"^FILE:.*\n|^.*(?:depth|verify|DONE).*\n",)),
    Case("the host's certificate authorities are found", "python3 -c 'import ssl; print(ssl.create_default_context().cert_store_stats()[\"x509_ca\"] > 50)'; openssl verify -CApath /etc/ssl/certs $(ls /etc/ssl/certs/*.pem | head -1) | grep -c OK; "
         "ls /etc/ssl/certs | wc -l", "", "openssl"),
    Case("pg_virtualenv starts a database for a test", "pg_virtualenv psql -Atc 'select 6 * 7' 2>/dev/null | grep -x 42", "", "pg_virtualenv", NO_SERVICE_ACCOUNTS, ("status: outside 0, inside 1", "output: -42")),
    Case("php serves a project", "php -S 127.0.0.1:8770 >/dev/null 2>&1 & server=$!; " + UNTIL.format("http://127.0.0.1:8770/i.php") + "cat got" + END,
         "echo '<?php echo PHP_SAPI, \" \", strlen(tempnam(sys_get_temp_dir(), \"x\")) > 0, \"\\n\";' >i.php", "php curl"),
    Case("socat carries a line from one socket file to a file", "socat -u UNIX-LISTEN:s OPEN:got,creat & one=$!; until [ -S s ]; do sleep 0.1; done; echo through | socat -u - UNIX-CONNECT:s; wait $one; cat got; rm -f s got",
         "", "socat"),
]
TOOLS = [
    Case("gpg in the home of its user starts its agent, signs and is believed", "gpg -q --batch --passphrase '' --quick-gen-key a@example.org default default never 2>/dev/null; gpg -q --batch --detach-sign f; gpg --batch --verify f.sig f 2>&1 | grep -c 'Good signature'; "
         "gpg-connect-agent /bye; gpgconf --kill all; rm f.sig", "echo x >f", "gpg gpg-connect-agent"),
    Case("gpg hides a file behind a passphrase", "gpg -q --batch --pinentry-mode loopback --passphrase secret -c f; gpg -q --batch --pinentry-mode loopback --passphrase secret -d f.gpg 2>/dev/null; gpgconf --kill all; rm f.gpg", "echo x >f", "gpg"),
    Case("ssh-keygen signs a file and verifies it", "ssh-keygen -q -t ed25519 -N '' -C me -f k; ssh-keygen -q -Y sign -f k -n file f 2>/dev/null; echo \"me $(cat k.pub)\" >who; ssh-keygen -Y verify -f who -I me -n file -s f.sig <f | sed 's/ with.*//'; rm k* who f.sig",
         "echo x >f", "ssh-keygen"),
    Case("lynx shows a page of the project", "lynx -dump -nolist a.html", "echo '<h1>Title</h1><p>Text with <b>words</b></p>' >a.html", "lynx"),
    Case("netaddr knows whose a hardware address is", "python3 -c \"import netaddr; print(netaddr.EUI('00-00-0C-07-AC-0A').oui.registration().org != '')\""),
    Case("man shows a page of the project", "man -l p.1 2>/dev/null | grep -v '^$'", "printf '.TH P 1 2026-01-02 p p\\n.SH NAME\\np \\\\- says p\\n.SH DESCRIPTION\\n.B p\\nsays p.\\n' >p.1", "man"),
    Case("types of files are known by name and by content", "python3 -c 'import mimetypes as m; print(m.guess_type(\"a.woff2\"), m.guess_type(\"a.tar.gz\"), m.guess_type(\"a.odt\"))'; file -b --mime-type h.c p.png", HELLO +
         "printf '\\211PNG\\r\\n\\032\\n' >p.png", "file"),
    Case("zsh trusts its functions and completes", "zsh -fc 'autoload -Uz compaudit compinit; compaudit && echo trusted; compinit -D; print $(( ${#_comps} > 100 )); zmodload zsh/zpty zsh/net/tcp; zpty p echo from a terminal; zpty -r p line; print -r - ${line%%$\"\\r\"*}'",
         "", "zsh", masked=(r"\r",)),
    Case("a terminal of the user's own description is known", "tput colors; tput cols; infocmp -1 work-term | grep -c 'colors#8'", "printf 'work-term|of the test,\\n\\tcolors#8, cols#97, bold=\\\\E[1m,\\n' >t.ti; tic -o ~/.terminfo t.ti",
         "tput tic", variables=(("TERM", "work-term"),)),
    Case("tmux starts though the user's own one is named", "tmux -L work new-session -d 'echo in >f; sleep 60'; until [ -s f ]; do sleep 0.1; done; tmux -L work list-sessions | wc -l; tmux -L work kill-server; rm f", "", "tmux",
         variables=(("TMUX", "/tmp/tmux-12345/default,1,0"),)),
    Case("tools keep their caches where their users look for them", "pip cache dir; npm config get cache; yarn cache dir; ccache -k cache_dir; python3 -m site --user-base", "", "pip npm yarn ccache"),
    Case("Python packs a program into one file, and steps through another", "python3 -m zipapp -p '/usr/bin/env python3' -o app.pyz app; ./app.pyz; printf 'n\\nn\\np x\\nc\\nq\\n' | python3 -m pdb t.py | grep -o 'Pdb) 42'; python3 -m doctest d.py; rm app.pyz",
         "mkdir app; echo 'print(\"packed\")' >app/__main__.py; printf 'x = 42\\ny = x\\nprint(y)\\n' >t.py; printf '\"\"\"\\n>>> 6 * 7\\n42\\n\"\"\"\\n' >d.py"),
    Case("perl forks, locks and asks other programs", "perl t.pl", r"""cat >t.pl <<'EOP'
use strict; use Fcntl ":flock"; use IPC::Open3; use POSIX (); use File::Temp "tempfile";
my ($file, $name) = tempfile(UNLINK => 1); flock($file, LOCK_EX) or die;
my $pid = fork; if (!$pid) { open my $other, "<", $name; POSIX::_exit(flock($other, LOCK_EX | LOCK_NB) ? 0 : 5); }
waitpid $pid, 0; print $? >> 8, "\n";
my $child = open3(my $in, my $out, undef, "tr a-z A-Z"); print $in "through\n"; close $in; print <$out>; waitpid $child, 0;
print scalar(my @list = glob("*.pl")), " ", (POSIX::uname())[0], "\n";
EOP
""", "perl"),
    Case("ruby has terminals, sockets and children", "ruby t.rb", r"""cat >t.rb <<'EOP'
require "pty"; require "socket"; require "tmpdir"
PTY.spawn("test -t 0 && echo terminal") { |out, _, pid| puts out.gets.strip; Process.wait(pid) }
Dir.mktmpdir { |dir| UNIXServer.open("#{dir}/s") { |server| client = UNIXSocket.new("#{dir}/s"); server.accept.puts("unix"); puts client.gets } }
puts Process.wait2(fork { exit 4 })[1].exitstatus, IO.popen(%w[echo x]).read, File.open("t.rb") { |f| f.flock(File::LOCK_EX) }
EOP
""", "ruby"),
    Case("lua makes temporary files and reads commands", "lua5.4 -e 'local f = io.tmpfile(); f:write(\"x\"); f:seek(\"set\"); print(f:read()); local n = os.tmpname(); print(os.remove(n)); print(io.popen(\"echo y; exit 3\"):close()); print(os.execute(\"exit 2\"))'", "", "lua5.4",
         NO_CLONE3, ("[trixie] output: -nil\texit\t2", "[trixie] output: +nil\tFunction not implemented\t38")),
    Case("java locks a file, watches a directory and is listed", "java T.java; java -XX:ActiveProcessorCount=1 -cp . -version 2>&1 | grep -c Server", r"""cat >T.java <<'EOP'
import java.nio.channels.*; import java.nio.file.*; import java.util.concurrent.TimeUnit;
class T { public static void main(String[] a) throws Exception {
  try (FileChannel f = FileChannel.open(Path.of("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE); FileLock l = f.lock()) { System.out.println(l.isValid()); }
  WatchService w = FileSystems.getDefault().newWatchService(); Path.of(".").register(w, StandardWatchEventKinds.ENTRY_CREATE); Files.createFile(Path.of("new"));
  WatchKey k = w.poll(30, TimeUnit.SECONDS); System.out.println(k.pollEvents().get(0).context());
  Path t = Files.createTempFile("x", "y"); System.out.println(new java.util.TreeSet<>(Files.getPosixFilePermissions(t))); Files.delete(t);
  System.out.println(ProcessHandle.current().info().command().isPresent());
} }
EOP
""", "java"),
    Case("an AGENTS.md that is a link to the home is read", "cat AGENTS.md", "mkdir ~/rules; echo rules >~/rules/AGENTS.md; ln -s ~/rules/AGENTS.md AGENTS.md", differs=NO_OTHER_HOMES,
         seen=("status: outside 0, inside 1", "output: -rules", "errors: +cat: AGENTS.md: No such file or directory")),
    Case("settings of more agents and editors are written and committed", "mkdir -p .cursor .gemini .codex .opencode/plugin .github/hooks tools; for f in .mcp.json .cursor/mcp.json .gemini/settings.json .codex/config.toml opencode.json .opencode/plugin/p.js "
         ".github/hooks/h.json tools/bazel; do echo '{}' >$f; done; git add .; git commit -qm settings; git show --stat --format=%s | tail -1", "git init -q"),
]
CASES = [*LIBRARIES, *NODES, *BUILDS, *FILES, *SERVERS, *TOOLS]
