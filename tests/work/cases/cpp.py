"""C and C++: sanitizers, debuggers, build systems, compiler caches, and what programs measure."""

from case import Case
from reasons import NO_COUNTERS

HELLO = "printf '#include <stdio.h>\\nint twice(int x) { return 2 * x; }\\nint main(void) { printf(\"%%d\\\\n\", twice(21)); return 0; }\\n' >h.c\n"
BAD = "printf '#include <stdlib.h>\\nint main(void) { char *p = malloc(8); volatile char c = p[8]; free(p); return c * 0; }\\n' >bad.c\n"
LEAK = "printf '#include <stdlib.h>\\nint main(void) { void *volatile p = malloc(77); p = 0; return 0; }\\n' >leak.c\n"
CMAKE = (
    HELLO + "printf 'cmake_minimum_required(VERSION 3.18)\\nproject(h C)\\nenable_testing()\\nadd_executable(h h.c)\\nadd_test(NAME runs COMMAND "
    "h)\\ninstall(TARGETS h DESTINATION bin)\\n' >CMakeLists.txt\n"
)
AUTO = (
    HELLO + "printf 'AC_INIT([h], [1.0])\\nAM_INIT_AUTOMAKE([foreign])\\nAC_PROG_CC\\nAC_CONFIG_FILES([Makefile])\\nAC_OUTPUT\\n' >configure.ac; "
         "printf 'bin_PROGRAMS = h\\nh_SOURCES = h.c\\n' >Makefile.am\n"
)
BUILT = ("build", "build/*", "*.o", "h", "bad", "leak", "a.out", "*/h")
MANY = "for i in $(seq 60); do echo \"int f$i(void) { return $i; }\" >f$i.c; done; printf 'all: $(patsubst %%.c,%%.o,$(wildcard f*.c))\\n' >Makefile\n"
PERF = r"""
cat >p.c <<'EOP'
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  struct perf_event_attr a;
  memset(&a, 0, sizeof a);
  a.type = PERF_TYPE_SOFTWARE, a.size = sizeof a, a.config = PERF_COUNT_SW_TASK_CLOCK, a.exclude_kernel = 1, a.exclude_hv = 1;
  int fd = syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
  if (fd < 0) { perror("perf_event_open"); return 1; }
  unsigned long long n = 0;
  for (volatile int i = 0; i < 1000000; i++) ;
  return read(fd, &n, sizeof n) != sizeof n || puts(n ? "counted" : "nothing") < 0;
}
EOP
"""

CASES = [
    Case("a program is compiled and runs", "gcc -O2 -o h h.c; ./h", HELLO, "gcc"),
    Case("a program with the address sanitizer ends well", "gcc -g -fsanitize=address -o h h.c; ./h", HELLO, "gcc", ignored=BUILT),
    Case("the address sanitizer finds a wrong read",
         "gcc -g -fsanitize=address -o bad bad.c; ! ./bad 2>log; grep -o 'heap-buffer-overflow' log | head -1; rm log", BAD, "gcc", ignored=BUILT),
    Case("the leak sanitizer finds a leak", "gcc -g -fsanitize=address -o leak leak.c; ! ./leak 2>log; grep -o '77 byte(s) leaked.*' log; rm log", LEAK,
         "gcc", ignored=BUILT),
    Case("the undefined-behaviour sanitizer tells of an overflow",
         "gcc -fsanitize=undefined -o a.out o.c; ./a.out 2>&1 | grep -o 'signed integer overflow.*'",
         "echo 'int main(int c, char **v) { int x = 2147483647; x += c; return 0; }' >o.c", "gcc", ignored=BUILT),
    Case("the thread sanitizer finds a race",
         "gcc -g -fsanitize=thread -o a.out r.c -lpthread; ! ./a.out 2>log; grep -o 'WARNING: ThreadSanitizer: data race' log | head -1; rm log",
         "printf '#include <pthread.h>\\nint x;\\nvoid *f(void *a) { for (int i = 0; i < 1000; i++) x++; return a; }\\nint main(void) { pthread_t t; "
         "pthread_create(&t, 0, f, 0); f(0); pthread_join(t, 0); return 0; }\\n' >r.c", "gcc", ignored=BUILT),
    Case("gdb runs a program and stops at a breakpoint",
         "gcc -g -o h h.c; gdb -nx -batch -ex 'break twice' -ex run -ex bt -ex 'print x' -ex continue ./h 2>&1 | grep -E '^(#|\\$|42)'", HELLO,
         "gdb gcc", ignored=BUILT),
    Case("gdb attaches to a program that runs", "gcc -g -o s s.c; ./s & until [ /proc/$!/exe -ef s ]; do sleep 0.1; done; gdb -nx -batch -p $! -ex 'bt 1' 2>&1 | grep -c '^#0'; kill $!",
         "printf '#include <unistd.h>\\nint main(void) { for (;;) pause(); }\\n' >s.c", "gdb gcc", ignored=("s",)),
    Case("gdb reads a core file that it makes",
         "gcc -g -o h h.c; gdb -nx -batch -ex 'break twice' -ex run -ex 'generate-core-file c' ./h >/dev/null 2>&1; "
         "gdb -nx -batch -ex 'print x' ./h c 2>/dev/null | grep '^\\$'; rm c", HELLO, "gdb gcc", ignored=BUILT),
    Case("strace shows the system calls of a program",
         "strace -e trace=execve,exit_group -o log /bin/true; sed 's/ADDRESS.*//;s/0x.*//' log | grep -o '^[a-z_]*'; rm log", "", "strace"),
    Case("strace follows children (-f) and counts (-c)", "strace -f -c -o log sh -c 'ls >/dev/null; true'; grep -c execve log; rm log", "", "strace"),
    Case("strace makes a call fail", "! strace -qq -o /dev/null -e inject=symlink,symlinkat:error=ENOSPC ln -s there link 2>said; cat said; rm said", "", "strace"),
    Case("valgrind finds a wrong read",
         "gcc -g -o bad bad.c; ! valgrind -q --error-exitcode=9 ./bad 2>log; grep -o 'Invalid read of size 1' log; rm log", BAD, "valgrind gcc", ignored=BUILT),
    Case("valgrind finds a leak", "gcc -g -o leak leak.c; valgrind --leak-check=full ./leak 2>&1 | grep -o 'definitely lost: [0-9]* bytes'", LEAK,
         "valgrind gcc", ignored=BUILT),
    Case("callgrind counts instructions",
         "gcc -g -o h h.c; valgrind -q --tool=callgrind --callgrind-out-file=cg ./h; callgrind_annotate --threshold=100 cg | grep -c twice; rm cg", HELLO,
         "valgrind gcc", ignored=BUILT),
    Case("ccache finds what it compiled before",
         "ccache -z >/dev/null; ccache gcc -c h.c -o h.o; ccache gcc -c h.c -o h.o; ccache --print-stats | grep -E '^(direct|preprocessed)_cache_hit'", HELLO,
         "ccache gcc"),
    Case("the user's ccache is warm", "ccache -z >/dev/null; ccache gcc -c h.c -o h.o; ccache --print-stats | grep -E '^direct_cache_hit'", HELLO +
         "ccache gcc -c h.c -o h.o; rm h.o", "ccache gcc"),
    Case("cmake and ninja build, test and install", "cmake -G Ninja -S . -B build >/dev/null; ninja -C build >/dev/null; ctest --test-dir build -Q; "
         "cmake --install build --prefix out >/dev/null; out/bin/h", CMAKE, "cmake ninja gcc", ignored=BUILT),
    Case("cmake builds on where the project has another name (~/w)", "cmake --build build >/dev/null; grep CMAKE_HOME_DIRECTORY build/CMakeCache.txt; build/h",
         CMAKE + "ln -s ~/projects/work ~/w; cmake -G Ninja -S /home/alice/w -B /home/alice/w/build >/dev/null", "cmake ninja gcc", ignored=BUILT),
    Case("cmake and make build in many jobs", "cmake -S . -B build >/dev/null; make -s -C build -j4 >/dev/null; build/h", CMAKE, "cmake make gcc", ignored=BUILT),
    Case("a build that the user began is finished", "ninja -C build | sed 's/.*ninja: //' | tail -1; touch h.c; ninja -C build >/dev/null; build/h", CMAKE +
         "cmake -G Ninja -S . -B build >/dev/null; ninja -C build >/dev/null", "cmake ninja", ignored=BUILT),
    Case("make -j builds sixty files", "make -s -j8; ls *.o | wc -l", MANY, "make gcc"),
    Case("autotools make a configure that builds", "autoreconf -i >/dev/null 2>&1; ./configure -q >/dev/null; make -s; ./h; make -s dist; ls *.tar.gz", AUTO,
         "autoreconf automake gcc", ignored=(*BUILT, "*.tar.gz", "autom4te.cache*", "config.log", "config.status", ".deps*", "configure~")),
    Case("meson sets up, builds and tests", "meson setup build >/dev/null; meson test -C build 2>&1 | grep -E '^Ok:'", HELLO +
         "printf \"project('h', 'c')\\ntest('h', executable('h', 'h.c'))\\n\" >meson.build", "meson ninja gcc", ignored=BUILT),
    Case("a shared library is made and loaded", "g++ -shared -fPIC -o libx.so x.cpp; g++ -o m m.cpp -L. -lx -Wl,-rpath,.; ./m",
         "echo 'int x() { return 5; }' >x.cpp; printf '#include <cstdio>\\nint x(); int main() { std::printf(\"%%d\\\\n\", x()); }\\n' >m.cpp", "g++"),
    Case("C++ threads, exceptions and files work", "g++ -std=c++20 -O1 -o t t.cpp -lpthread; ./t",
         "printf '#include <thread>\\n#include <filesystem>\\n#include <iostream>\\nint main() { std::thread([] { std::cout << \"thread\\\\n\"; "
         "}).join(); try { throw 1; } catch (int) { std::cout << std::filesystem::exists(\"t.cpp\"); } }\\n' >t.cpp", "g++", ignored=("t",)),
    Case("a program counts its own events (perf_event_open)", "gcc -o p p.c; ./p", PERF, "gcc", ignored=("p",), differs=NO_COUNTERS,
         seen=("status: outside 0, inside 1", "output: -counted", "errors: +perf_event_open: Operation not permitted")),
    Case("a JIT maps memory that it executes", "gcc -o j j.c; ./j",
         "printf '#include <stdio.h>\\n#include <string.h>\\n#include <sys/mman.h>\\nint main(void) { unsigned char c[] = {0xb8, 7, 0, 0, 0, 0xc3}; "
         "void *p = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); memcpy(p, c, 6); printf(\"%%d\\\\n\", ((int (*)(void))p)()); }\\n' >j.c",
         "gcc", ignored=("j",)),
    Case("gprof and gcov write their files", "gcc --coverage -o h h.c; ./h; gcov -n *.gcda | grep -o 'Lines executed:100.00%.*' | head -1", HELLO,
         "gcc gcov", ignored=(*BUILT, "*.gcda", "*.gcno")),
    Case("objdump, nm, readelf and strip say the same",
         "gcc -O1 -o h h.c; nm h | grep -c ' T '; readelf -h h | grep Type; objdump -d h | grep -c twice; strip h; ./h", HELLO, "gcc objdump"),
    Case("fakeroot makes an archive of root's files",
         "fakeroot sh -c 'chown root:root h.c; tar -cf t.tar h.c'; tar -tvf t.tar | cut -d' ' -f1,2; rm t.tar", HELLO, "fakeroot"),
    Case("pkg-config finds a library and ar makes one",
         "PKG_CONFIG_PATH=. pkg-config --modversion x; gcc -c h.c; ar rcs libh.a h.o; ar t libh.a; ranlib libh.a", HELLO +
         "printf 'Name: x\\nDescription: x\\nVersion: 3\\n' >x.pc", "pkg-config ar"),
]
