"""Go, Rust, Java, Ruby, Perl and Lua: builds and tests without a network, and what their programs ask of the system."""

from case import Case, saying
from reasons import DOTFILES

GO = "export GOPROXY=off GOFLAGS=-mod=mod GOTOOLCHAIN=local GOCACHE=$PWD/.kept\n"
# Go's own library, compiled once: newer ones come without, and a home is new for every run.
COMPILED = "[ -e /var/tmp/kept-go ] || GOCACHE=/var/tmp/kept-go GOPROXY=off go build net/http/httptest testing; cp -a /var/tmp/kept-go .kept\n"
GO_PROJECT = COMPILED + """
printf 'module example.org/hello\\n\\ngo 1.19\\n' >go.mod; mkdir -p lib
printf 'package lib\\n\\nfunc Twice(x int) int { return 2 * x }\\n' >lib/lib.go
printf 'package lib\\n\\nimport "testing"\\n\\nfunc TestTwice(t *testing.T) {\\n\\tif Twice(2) != 4 {\\n\\t\\tt.Fatal()\\n\\t}\\n}\\n' >lib/lib_test.go
printf 'package main\\n\\nimport (\\n\\t"fmt"\\n\\n\\t"example.org/hello/lib"\\n)\\n\\nfunc main() { fmt.Println(lib.Twice(21)) }\\n' >main.go
"""


def go_program(imports, body):
    listed = "".join(f'\\t"{one}"\\n' for one in imports.split())
    return COMPILED + f"printf 'module example.org/x\\n\\ngo 1.19\\n' >go.mod; printf 'package main\\n\\nimport (\\n{listed})\\n\\nfunc main() {{\\n{body}}}\\n' >main.go"


CACHED_MODULE = (
    COMPILED + GO + r"""
d=~/go/pkg/mod/cache/download/example.org/m/@v; m=example.org/m@v1.0.0; mkdir -p $d ~/go/pkg/mod/$m
echo 'module example.org/m' | tee $d/v1.0.0.mod >~/go/pkg/mod/$m/go.mod; printf 'package m\n\nconst X = 4\n' >~/go/pkg/mod/$m/m.go
echo '{"Version":"v1.0.0"}' >$d/v1.0.0.info; (cd ~/go/pkg/mod && zip -qr $d/v1.0.0.zip $m)
printf 'module example.org/x\n\ngo 1.19\n\nrequire example.org/m v1.0.0\n' >go.mod; printf 'package main\n\nimport "example.org/m"\n\nfunc main() { println(m.X) }\n' >main.go
GOSUMDB=off go mod tidy
"""
)


CARGO_PROJECT = """
mkdir -p src dep/src tests
printf '[package]\\nname = "hello"\\nversion = "1.0.0"\\nedition = "2021"\\n[dependencies]\\ndep = { path = "dep" }\\n' >Cargo.toml
printf '[package]\\nname = "dep"\\nversion = "0.1.0"\\nedition = "2021"\\n' >dep/Cargo.toml; echo 'pub fn twice(x: i32) -> i32 { 2 * x }' >dep/src/lib.rs
echo 'fn main() { println!("{}", dep::twice(21)); }' >src/main.rs
printf '#[test]\\nfn twice() { assert_eq!(dep::twice(2), 4); }\\n' >tests/t.rs
"""
JAVA = (
    "mkdir -p src/main/java; printf 'public class Hello {\\n  public static void main(String[] a) { System.out.println(\"hello \" + a.length); "
    "}\\n}\\n' >src/main/java/Hello.java\n"
)
MAVEN = JAVA + (
    "printf '<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>hello</artifactId><version>1</version><packaging>pom</packaging>"
    "<properties><said>yes</said></properties></project>\\n' >pom.xml\n"
)
GRADLE = JAVA + r"""
d=~/.gradle/wrapper/dists/gradle-8.5-bin/abc/gradle-8.5/bin; mkdir -p $d gradle/wrapper
printf '#!/bin/sh\nmkdir -p ~/.gradle/daemon build/classes && javac -d build/classes src/main/java/Hello.java && echo BUILD SUCCESSFUL\n' >$d/gradle; chmod +x $d/gradle
printf 'distributionUrl=https\\://services.gradle.org/distributions/gradle-8.5-bin.zip\n' >gradle/wrapper/gradle-wrapper.properties
printf '#!/bin/sh\nexec ~/.gradle/wrapper/dists/gradle-8.5-bin/abc/gradle-8.5/bin/gradle "$@"\n' >gradlew; chmod +x gradlew
"""
GEM = r"""
export SOURCE_DATE_EPOCH=1767323045
mkdir -p g/lib vendor/cache; echo 'module HelloGem; def self.hi; "hi"; end; end' >g/lib/hello_gem.rb
printf 'Gem::Specification.new { |s| s.name = "hello_gem"; s.version = "1.0.0"; s.summary = "s"; s.authors = ["a"]; s.files = ["lib/hello_gem.rb"] }\n' >g/hello_gem.gemspec
(cd g && gem build -q hello_gem.gemspec >/dev/null 2>&1 && mv hello_gem-1.0.0.gem ../vendor/cache/)
"""
BUILT = ("target", "target/*", "out", "out/*", "hello", "build", "build/*")

CASES = [
    Case("go build, run and test", GO + "go build -o hello .; ./hello; go test ./... | sed 's/\\t[0-9.]*s$//'; go vet ./...", GO_PROJECT, "go"),
    Case("go formats, lists and documents", GO + "gofmt -l .; go list ./...; go doc ./lib Twice", GO_PROJECT, "go"),
    Case("a Go program lists the network interfaces", GO + "go run .", go_program("fmt net",
         '\\ti, err := net.Interfaces()\\n\\tfmt.Println(len(i) > 0, err)\\n\\ta, err := net.InterfaceAddrs()\\n\\tfmt.Println(len(a) > 0, err)\\n'),
         "go"),
    Case("a Go program serves and asks on localhost", GO + "go run .", go_program("fmt io net/http net/http/httptest",
         '\\ts := httptest.NewServer(http.FileServer(http.Dir(".")))\\n\\tr, err := http.Get(s.URL + "/go.mod")\\n\\tb, _ := '
         'io.ReadAll(r.Body)\\n\\tfmt.Println(len(b), err)\\n'), "go"),
    Case("a Go workspace with a replaced module", GO + "go build -o hello . && ./hello",
         COMPILED + "mkdir m; printf 'module example.org/m\\n\\ngo 1.19\\n' >m/go.mod; printf 'package m\\n\\nconst X = 3\\n' >m/m.go; "
         "printf 'module example.org/x\\n\\ngo 1.19\\n\\nrequire example.org/m v0.0.0\\n\\nreplace example.org/m => ./m\\n' >go.mod; "
         "printf 'package main\\n\\nimport \"example.org/m\"\\n\\nfunc main() { println(m.X) }\\n' >main.go", "go"),
    Case("go install puts a program where GOBIN says", GO + "GOBIN=$PWD/bin go install . && bin/hello", GO_PROJECT, "go"),
    Case("go install puts a program into the place of its user", GO + "go install . && $(go env GOPATH)/bin/hello", GO_PROJECT, "go"),
    Case("go install takes another machine's name", GO + "GOARCH=arm64 go install -n . >/dev/null 2>&1; echo $?", GO_PROJECT, "go"),
    Case("a module in the user's module cache is used", GO + "go build -o hello . && ./hello",
         CACHED_MODULE, "go zip", ignored=("hello",)),
    Case("cargo builds with a path dependency and runs", "cargo build --offline -q; target/debug/hello; cargo run --offline -q", CARGO_PROJECT, "cargo", ignored=BUILT),
    Case("cargo tests", "cargo test --offline -q 2>&1 | grep -o 'test result: ok. [0-9]* passed' | sort | uniq -c", CARGO_PROJECT, "cargo", ignored=BUILT),
    Case("cargo installs below a root", "cargo install --offline -q --path . --root inst; inst/bin/hello", CARGO_PROJECT, "cargo", ignored=(*BUILT,
         "inst/bin/hello", "inst/.crates*")),
    Case("cargo uses vendored sources", "cargo build --offline -q; target/debug/hello", CARGO_PROJECT +
         "mkdir vendor; mv dep vendor/dep; echo '{\"files\":{}}' >vendor/dep/.cargo-checksum.json; sed -i 's/dep = .*/dep = \"0.1\"/' Cargo.toml; "
         "mkdir .cargo; printf '[source.crates-io]\\nreplace-with = \"v\"\\n[source.v]\\ndirectory = \"vendor\"\\n' >.cargo/config.toml", "cargo", ignored=BUILT),
    Case("the user's cargo settings count", "cargo hello", CARGO_PROJECT +
         "mkdir -p ~/.cargo; printf '[alias]\\nhello = \"run --offline -q\"\\n' >~/.cargo/config.toml", "cargo", ignored=BUILT, differs=DOTFILES,
         seen=("status: outside 0, inside 101", "output: -42", "errors: +*", "tree: Cargo.lock: outside *, inside none")),
    Case("rustc compiles a file that uses threads and processes", "rustc -O -o out t.rs; ./out",
         "printf 'use std::{process::Command, thread};\\nfn main() { thread::spawn(|| println!(\"thread\")).join().unwrap(); "
         "println!(\"{:?}\", Command::new(\"echo\").arg(\"x\").output().unwrap().stdout); }\\n' >t.rs", "rustc", ignored=BUILT),
    Case("a toolchain of rustup runs", "${RUSTUP_HOME-$HOME/.rustup}/toolchains/stable-x86_64-unknown-linux-gnu/bin/rustc",
         saying("~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin/rustc", "rustup")),
    Case("a rustup proxy in ~/.cargo/bin runs by its name", "PATH=~/.cargo/bin:$PATH cargo-hello",
         saying("~/.cargo/bin/cargo-hello", "proxy")),
    Case("javac and java",
         "javac -d out src/main/java/Hello.java; java -cp out Hello a b; jar --create --file h.jar -C out .; jar --list --file h.jar", JAVA,
         "javac java jar", ignored=("h.jar",)),
    Case("java runs a source file and a program in jshell",
         "java src/main/java/Hello.java x; echo 'System.out.println(6 * 7)' | jshell -s - 2>/dev/null", JAVA, "java jshell"),
    Case("java asks for interfaces, processes and memory", "java A.java",
         "printf 'import java.net.*;\\nclass A { public static void main(String[] a) throws Exception { "
         "System.out.println(NetworkInterface.getNetworkInterfaces().hasMoreElements()); "
         "System.out.println(new String(new ProcessBuilder(\"echo\", \"x\").start().getInputStream().readAllBytes())); "
         "System.out.println(Runtime.getRuntime().maxMemory() > 1e7); } }\\n' >A.java", "java"),
    Case("jcmd and jstack look into a running program",
         "java W.java & until jcmd $! VM.version >/dev/null 2>&1; do sleep 0.2; done; jcmd $! VM.version | grep -c OpenJDK; jstack $! | grep -c 'java.lang.Thread.State' | sed 's/[0-9]*/N/'; kill $!; "
         "wait $! 2>/dev/null || true", "echo 'class W { public static void main(String[] a) throws Exception { Thread.sleep(60000); } }' >W.java",
         "java jcmd jstack"),
    Case("maven validates a project offline", "mvn -o -q validate; mvn -o -B validate 2>&1 | grep -o 'BUILD SUCCESS'", MAVEN, "mvn", timeout=180),
    Case("maven takes an artifact of the user's repository", "mvn -o -q validate && cat ~/.m2/repository/org/example/parent/1/parent-1.pom | wc -c",
         "d=~/.m2/repository/org/example/parent/1; mkdir -p $d; printf "
         "'<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>parent</artifactId><version>1</version><packaging>pom</packaging></project>\\n' "
         ">$d/parent-1.pom; "
         "printf "
         "'<project><modelVersion>4.0.0</modelVersion><parent><groupId>org.example</groupId><artifactId>parent</artifactId><version>1</version><relativePath/></parent><artifactId>hello</artifactId><packaging>pom</packaging></project>\\n' "
         ">pom.xml", "mvn", timeout=180),
    Case("a gradle of the user's wrapper builds", "./gradlew build; java -cp build/classes Hello", GRADLE, "javac"),
    Case("a JDK of sdkman runs", "~/.sdkman/candidates/java/current/bin/java",
         saying("~/.sdkman/candidates/java/21/bin/java", "sdkman") + "ln -s 21 ~/.sdkman/candidates/java/current"),
    Case("a JDK of the user's jdks directory runs", "~/.jdks/21/bin/java", saying("~/.jdks/21/bin/java", "jdks")),
    Case("ruby runs, and its standard library",
         "ruby -rjson -rsocket -e 'puts JSON.dump({a: 1}); s = TCPServer.new(\"127.0.0.1\", 0); puts s.addr[3]; puts `echo sub`'", "", "ruby"),
    Case("ruby lists the addresses of the host", "ruby -rsocket -e 'puts Socket.ip_address_list.size > 0, Socket.getifaddrs.size > 0'", "", "ruby"),
    Case("rake runs tasks", "rake -q",
         "printf 'task default: [:a] do\\n  puts \"default\"\\nend\\ntask :a do\\n  sh \"echo a\", verbose: false\\nend\\n' >Rakefile", "rake"),
    Case("bundler installs from a cache and runs",
         "bundle config set --local path vendor/bundle; bundle install --local --quiet; bundle exec ruby -e 'require \"hello_gem\"; puts HelloGem.hi'", GEM +
         "printf 'source \"https://example.org\"\\ngem \"hello_gem\"\\n' >Gemfile", "bundle gem", ignored=("vendor/bundle*",)),
    Case("gem installs for the user",
         "gem install -q --local --no-document --user-install vendor/cache/hello_gem-1.0.0.gem >/dev/null 2>&1; ruby -rhello_gem -e 'puts HelloGem.hi'", GEM,
         "gem"),
    Case("a ruby of rbenv runs", "~/.rbenv/versions/3.3.0/bin/ruby", saying("~/.rbenv/versions/3.3.0/bin/ruby", "rbenv")),
    Case("a ruby of rvm runs", "~/.rvm/rubies/ruby-3.3.0/bin/ruby", saying("~/.rvm/rubies/ruby-3.3.0/bin/ruby", "rvm")),
    Case("a tool of asdf runs by its shim", "~/.asdf/shims/tool",
         "mkdir -p ~/.asdf/shims ~/.asdf/installs/tool/1/bin; printf '#!/bin/sh\\necho asdf\\n' >~/.asdf/installs/tool/1/bin/tool; "
         "printf '#!/bin/sh\\nexec ~/.asdf/installs/tool/1/bin/tool\\n' >~/.asdf/shims/tool; "
         "chmod +x ~/.asdf/shims/tool ~/.asdf/installs/tool/1/bin/tool"),
    Case("a compiler of ghcup and one of dotnet run", "~/.ghcup/bin/ghc; ~/.dotnet/dotnet",
         saying("~/.ghcup/bin/ghc", "ghc") + saying("~/.dotnet/dotnet", "dotnet")),
    Case("php has its extensions", "php -r 'echo mb_strlen(\"äö\"), \"\\n\";'; php --ini | grep -c '/etc/php/.*/cli/conf.d/.*mbstring'", "", "php"),
    Case("perl's tests run with prove", "prove -q t | tail -1; perl -MFile::Temp -MSocket -e 'print File::Temp->new ? \"ok\\n\" : \"\"'",
         "mkdir t; printf 'use Test::More tests => 1;\\nok(1);\\n' >t/a.t", "prove perl"),
    Case("a Perl module is made and installed below the project",
         "perl Makefile.PL INSTALL_BASE=$PWD/out >/dev/null; make -s install >/dev/null 2>&1; perl -Iout/lib/perl5 -MHello -e 'print Hello::hi()'",
         "mkdir lib; printf 'package Hello;\\nour $VERSION = 1;\\nsub hi { \"hi\\n\" }\\n1;\\n' >lib/Hello.pm; "
         "printf 'use ExtUtils::MakeMaker;\\nWriteMakefile(NAME => \"Hello\", VERSION_FROM => \"lib/Hello.pm\");\\n' >Makefile.PL", "perl make", ignored=(
         "out/*", "blib*", "Makefile", "MYMETA*", "pm_to_blib")),
    Case("lua runs", "lua5.4 -e 'print(_VERSION, io.popen(\"echo x\"):read())'", "", "lua5.4"),
]
