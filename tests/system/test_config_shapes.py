"""Files of the user's config that change their kind, or have odd names, sizes and numbers; and what the agent keeps beside them."""

import hashlib

import pytest
from launching import STATE, agent_says, messages, pi, wait_until_empty

pytestmark = pytest.mark.usefixtures("playing")

CONFIG = "/home/alice/.pi/agent"
INSIDE = f"{STATE}/alice/home/.pi/agent"
MANY_FILES_SECONDS = 300  # a busy machine takes more than a minute to copy 20,000, and as long to remove them


@pytest.fixture(autouse=True)
def config(machine):
    """An empty config directory of alice and no state of her agent; her own config comes back afterwards."""
    machine.run("mv .pi .pi-kept && mkdir -p .pi/agent", check=True)
    machine.root(["rm", "-rf", f"{STATE}/alice"], check=True)
    yield
    script = f"cd /home/alice && chmod -R u+rwX .pi; rm -rf .pi && mv .pi-kept .pi && rm -rf {STATE}/alice"
    machine.root(script, check=True, timeout=MANY_FILES_SECONDS)


def on_host(machine, script):
    machine.run(script, cwd=CONFIG, check=True, timeout=MANY_FILES_SECONDS)


def inside(machine, script="true"):
    return agent_says(machine, "sh", f'cd "$PI_CODING_AGENT_DIR" && {script}', timeout=MANY_FILES_SECONDS)


def digests(machine, directory, user):
    """Name and content of every file below a directory, as bytes that can be compared."""
    script = "find . -type f ! -path ./settings.json -print0 | LC_ALL=C sort -z | xargs -0r sha256sum -z"
    return machine.run(["bash", "-c", f'cd "$1" && {script}', "bash", directory], user=user, check=True, timeout=MANY_FILES_SECONDS).stdout


def assert_the_same(machine):
    assert digests(machine, CONFIG, "alice") == digests(machine, INSIDE, "root") != b""


# --- what changes its kind


def test_a_file_becomes_a_directory_and_a_file_again(machine):
    on_host(machine, "echo one >x; mkdir y; echo two >y/file")
    inside(machine)
    on_host(machine, "rm x; mkdir -p x/deep; echo in >x/deep/file; rm -r y; echo now >y")
    assert inside(machine, "cat x/deep/file y") == b"in\nnow\n"
    on_host(machine, "rm -r x y; echo one >x; mkdir y; echo two >y/file")
    assert inside(machine, "cat x y/file; find . -mindepth 1 | sort") == b"one\ntwo\n./settings.json\n./x\n./y\n./y/file\n"


def test_a_link_becomes_a_file_and_a_directory(machine):
    machine.run("mkdir -p ~/store; echo stored >~/store/file", check=True)
    on_host(machine, "ln -s ~/store x; ln -s ~/store/file f")
    assert inside(machine, "cat x/file f") == b"stored\nstored\n"
    on_host(machine, "rm x f; echo own >x; mkdir f; echo own >f/file")
    assert inside(machine, "cat x f/file; find . -mindepth 1 | sort") == b"own\nown\n./f\n./f/file\n./settings.json\n./x\n"
    machine.run("rm -r ~/store", check=True)


def test_links_into_a_store_that_belongs_to_root_are_copied_and_followed_when_they_are_exchanged(machine):
    """As home-manager lays out a configuration."""
    for generation in (1, 2):
        store = f"/srv/store/{generation}-pi"
        machine.root(f"mkdir -p {store}/skills/a; echo g{generation} >{store}/AGENTS.md; echo s{generation} >{store}/skills/a/SKILL.md", check=True)
        machine.root(f"chmod -R a-w,a+rX /srv/store; touch -d @1 {store}/* {store}/skills/a/*", check=True)
        on_host(machine, f"ln -sfn {store}/AGENTS.md AGENTS.md; ln -sfn {store}/skills skills")
        assert inside(machine, "cat AGENTS.md skills/a/SKILL.md; find . -type l") == f"g{generation}\ns{generation}\n".encode()
    machine.root(["rm", "-r", "/srv/store"], check=True)


def test_what_the_agent_put_into_a_directory_of_the_hosts_stays_when_that_becomes_a_file(machine):
    on_host(machine, "mkdir x; echo mine >x/file")
    inside(machine, "echo its >x/own")
    on_host(machine, "rm -r x; echo now a file >x")
    done = pi(machine, "sh", 'cd "$PI_CODING_AGENT_DIR"; cat x x.kept-*/own; ls x.kept-*')
    assert done.stdout == b"now a file\nits\nown\n", done
    (said,) = messages(done)
    assert said.startswith("pi: config: what the agent had put at .pi/agent/x in its home is kept beside it as x.kept-")
    assert inside(machine, "cat x x.kept-*/own") == b"now a file\nits\n"


def test_a_file_of_the_agents_where_the_host_has_a_directory_is_kept_beside_it(machine):
    inside(machine, "echo its >skills")
    on_host(machine, "mkdir skills; echo mine >skills/a")
    done = pi(machine, "sh", 'cd "$PI_CODING_AGENT_DIR"; cat skills/a skills.kept-*')
    assert done.stdout == b"mine\nits\n" and len(messages(done)) == 1, done
    assert inside(machine, "cat skills/a skills.kept-*") == b"mine\nits\n"


def test_the_agents_own_files_in_mirrored_directories_survive(machine):
    on_host(machine, "mkdir -p skills/a extensions; echo mine >skills/a/SKILL.md; echo mine >extensions/x.ts")
    inside(machine, "mkdir -p skills/b skills/a/cache; echo its | tee skills/b/SKILL.md skills/a/cache/x skills/own extensions/y.ts >top")
    on_host(machine, "echo new >skills/a/SKILL.md; rm -r extensions")
    kept = "cat skills/a/SKILL.md skills/b/SKILL.md skills/a/cache/x skills/own extensions/y.ts top; ls extensions"
    assert inside(machine, kept) == b"new\n" + 5 * b"its\n" + b"y.ts\n"
    on_host(machine, "rm -r skills")
    assert inside(machine, "ls -d skills/*; ls skills/a; cat top") == b"skills/a\nskills/b\nskills/own\ncache\nits\n"


def test_directories_that_the_agent_closed_are_written_and_emptied_all_the_same(machine):
    on_host(machine, "mkdir -p a/b c d; echo 1 | tee a/b/f a/b/g c/f c/g d/f >d/g")
    inside(machine, "chmod 0 a/b; chmod 0500 c; chmod 0 d")
    on_host(machine, "rm a/b/f c/f; echo 2 | tee a/b/g >c/g; rm -r d")
    assert inside(machine, "cat a/b/g c/g; ls -d a/b/f c/f d 2>&1 | wc -l; find . -mindepth 1 | sort | tr '\\n' ' '") == (
        b"2\n2\n3\n./a ./a/b ./a/b/g ./c ./c/g ./settings.json "
    )


# --- names


NAMES = [b"new\nline", b" lead and trail ", b"-rf", b"%n $HOME ${X} `id`", b"\xff\xfe\x80", "ü\u202e".encode(), b"\\x41", b"'\"", b"x" * 255, b"\xff" * 255, b"..."]


def test_odd_names_of_files_and_directories_come_and_go(machine):
    script = f"""
import os
for name in {NAMES!r}:
    open(b"file-" + name if len(name) < 250 else name, "wb").write(name)
    os.makedirs(b"dirs/" + name + b"/" + name)
    open(b"dirs/" + name + b"/" + name + b"/f", "wb").write(name)
"""
    machine.run(["python3", "-c", script], cwd=CONFIG, check=True)
    inside(machine)
    assert_the_same(machine)
    assert machine.root(f"find {INSIDE} -type f | wc -l").stdout.strip() == b"%d" % (2 * len(NAMES) + 4)  # and settings.json; three newlines in names
    on_host(machine, "find . -type f -exec sh -c 'for f; do echo new >\"$f\"; done' sh {} +")
    inside(machine)
    assert_the_same(machine)
    on_host(machine, "find . -mindepth 1 -delete")
    assert inside(machine, "find . -mindepth 1") == b"./settings.json\n"


def test_a_file_of_each_mode_is_copied_if_it_can_be_read_and_loses_all_but_its_owners_bits(machine):
    on_host(machine, "for m in 000 200 400 444 600 644 700 755 777 4755 2755 1777; do echo $m >m$m; chmod $m m$m; done")
    done = pi(machine, "sh", 'cd "$PI_CODING_AGENT_DIR" && stat -c "%n %a" m*')
    assert done.stdout == b"m1777 700\nm2755 700\nm400 600\nm444 600\nm4755 700\nm600 600\nm644 600\nm700 700\nm755 700\nm777 700\n"
    denied = [f"pi: config: skipped {CONFIG}/{name}: opening: Permission denied" for name in ("m000", "m200")]
    assert sorted(messages(done)) == denied


def test_a_file_that_the_user_closes_keeps_what_was_copied_until_it_is_opened_or_deleted(machine):
    on_host(machine, "echo one >f; mkdir d; echo one >d/f")
    inside(machine)
    on_host(machine, "chmod 0 f d")
    for _ in range(2):
        done = pi(machine, "sh", 'cd "$PI_CODING_AGENT_DIR" && cat f d/f')
        assert done.stdout == b"one\none\n" and len(messages(done)) == 2, done
    on_host(machine, "chmod 700 f d; rm f; echo two >d/f")
    assert inside(machine, "cat d/f; ls") == b"two\nd\nsettings.json\n"


# --- sizes and numbers


def test_a_sparse_file_of_5_gb_is_skipped_by_name_and_takes_no_room(machine):
    on_host(machine, "truncate -s 5G holes; echo rest >rest")
    done = pi(machine, "sh", 'cd "$PI_CODING_AGENT_DIR" && ls && cat rest')
    assert (done.returncode, done.stdout) == (0, b"rest\nsettings.json\nrest\n")
    assert messages(done) == [f"pi: config: skipped {CONFIG}/holes: larger than 256 MiB"]
    assert int(machine.root(["du", "-sm", f"{STATE}/alice"], check=True).stdout.split()[0]) < 2


def test_files_of_many_sizes_have_the_same_bytes_inside(machine):
    sizes = [0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 1 << 20, (8 << 20) - 1, (8 << 20) + 1, 20_000_000]
    on_host(machine, "".join(f"head -c {size} /dev/urandom >f{size};" for size in sizes))
    inside(machine)
    assert_the_same(machine)
    on_host(machine, "".join(f"head -c {size} /dev/urandom >f{other};" for size, other in zip(sizes, reversed(sizes))))
    inside(machine)
    assert_the_same(machine)


def test_20000_files_come_change_and_go(machine):
    on_host(machine, "for d in $(seq 200); do mkdir -p many/$d; (cd many/$d; for i in $(seq 100); do echo $d $i >f$i; done); done")
    inside(machine)
    assert_the_same(machine)
    on_host(machine, "for d in $(seq 200); do echo new >many/$d/f7; rm many/$d/f8; done; rm -r many/77")
    inside(machine)
    assert_the_same(machine)
    on_host(machine, "rm -r many")
    assert inside(machine, "ls") == b"settings.json\n"


def test_a_hundred_directories_in_each_other_are_copied(machine):
    deep = "/".join(f"d{level}" for level in range(100))
    on_host(machine, f"mkdir -p {deep}; echo deep >{deep}/file; echo half >{deep[: len(deep) // 2].rpartition('/')[0]}/file")
    inside(machine)
    assert_the_same(machine)
    on_host(machine, f"echo new >{deep}/file")
    assert inside(machine, f"cat {deep}/file") == b"new\n"
    on_host(machine, "rm -r d0")
    assert inside(machine, "ls") == b"settings.json\n"


def test_directories_nested_too_deep_are_skipped_by_name_and_the_rest_is_there(machine):
    machine.run(["python3", "-c", "import os\nfor _ in range(1000): os.mkdir('d'); os.chdir('d')\n"], cwd=CONFIG, check=True)
    on_host(machine, "echo rest >rest")
    done = pi(machine, "sh", 'cat "$PI_CODING_AGENT_DIR/rest"')
    assert done.stdout == b"rest\n" and len(messages(done)) == 1 and messages(done)[0].endswith(": nested too deep"), done


def test_the_agents_skills_of_the_home_are_mirrored_beside_its_own(machine):
    machine.run("mkdir -p ~/.agents/skills/a; echo mine >~/.agents/skills/a/SKILL.md; echo not >~/.agents/other", check=True)
    look = "cd ~/.agents && find . -type f | sort && cat skills/a/SKILL.md"
    assert agent_says(machine, "sh", look + "; mkdir -p skills/b; echo its >skills/b/own; echo x >skills/a/SKILL.md") == b"./skills/a/SKILL.md\nmine\n"
    assert agent_says(machine, "sh", look) == b"./skills/a/SKILL.md\n./skills/b/own\nmine\n"
    machine.run("rm -r ~/.agents", check=True)
    assert agent_says(machine, "sh", "cd ~/.agents && find . -type f") == b"./skills/b/own\n"


def test_a_file_that_is_rewritten_all_the_time_is_one_of_its_versions(machine):
    """Each is a hundred kilobytes of one letter, put in place at once, or written over the old one in place."""
    writing = """
import itertools, os
for letter in itertools.cycle("abcdef"):
    with open("whole.new", "w") as file: file.write(letter * 100_000)
    os.rename("whole.new", "whole")
    with open("torn", "r+" if os.path.exists("torn") else "w") as file: file.write(letter * 100_000)
"""
    process = machine.popen(["python3", "-c", writing], cwd=CONFIG)
    try:
        for _ in range(20):
            done = pi(machine, "sh", 'cd "$PI_CODING_AGENT_DIR" && cat whole')
            assert len(set(done.stdout)) == 1 and len(done.stdout) == 100_000, done.stderr
    finally:
        process.kill_all()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
    on_host(machine, "rm -f whole.new; touch torn")
    pi(machine, "sh", "true")
    assert_the_same(machine)
    last = machine.run("cat torn", cwd=CONFIG, check=True).stdout
    assert hashlib.sha256(last).digest() == hashlib.sha256(machine.read(f"{INSIDE}/torn")).digest()
    wait_until_empty(lambda: machine.root(["ls", "-A", f"{STATE}/alice/staging"], check=True).stdout)
