"""What a session sees: all of it, from / on, against the lists in view/; the accounts it knows; a shell to look around in."""

import json
from pathlib import Path

import pytest
from launching import DEMO, PLAYING_AGENT, PLAYING_POLICY, agent_says, assert_refused, pi, written_policy

LISTS = Path(__file__).with_name("view")
WALK = (LISTS / "walk.py").read_bytes()
ROOT = "/home/alice/projects"
HOST_POLICY = PLAYING_POLICY + "view: host\n"
TOOLS = "/srv/tools"
TOOLS_POLICY = PLAYING_POLICY + f"view_paths: [{TOOLS}, /etc/pip.conf]\n"


def walked(machine, *whole):
    """`whole`: directories besides those of walk.py that are not told one by one."""
    done = pi(machine, "sh", f"exec python3 - {ROOT} {' '.join(whole)}", input=WALK)
    assert (done.returncode, done.stderr) == (0, b""), done
    return json.loads(done.stdout)


def expected(name, release):
    """Of a list, the lines that must be seen on a release, and those that may be: `[release] ` begins one that only this release has,
    `? ` one that depends on the kernel. Blank lines and those that begin with # are for people."""
    must, may = set(), set()
    for text in (LISTS / name).read_text().splitlines():
        if not text or text.startswith("#"):
            continue
        if text.startswith("["):
            only, text = text[1:].split("] ", 1)
            if only != release:
                continue
        if text.startswith("? "):
            may.add(text[2:])
        else:
            must.add(text)
    return must, must | may


def assert_as_listed(seen, name, release):
    print(*sorted(seen), sep="\n")  # shown when this fails: the list as it would have to be
    must, may = expected(name, release)
    assert sorted(set(seen) - may) == [], f"seen, and not in {name}"
    assert sorted(must - set(seen)) == [], f"in {name}, and not seen"


@pytest.mark.parametrize("view", ["minimal", "host"])
def test_everything_there_is_on_the_list(view, machine, playing_policy):
    if view == "host":
        playing_policy(HOST_POLICY)
    seen = walked(machine, *(["/etc"] if view == "host" else []))
    assert_as_listed(seen["seen"], f"{view}.txt", machine.recipe)
    assert set(seen["processes"]) <= {"pi-agent-exec", "pi", "python3", "sh", "bash"}


def test_the_accounts_are_the_agents_its_users_roots_and_nobodys(machine, playing):
    """Names come from the user database, wherever that has them."""
    passwd = agent_says(machine, "sh", "cat /etc/passwd").decode().splitlines()
    assert [line.split(":")[0] for line in passwd] == ["root", "nobody", "pi-agent-alice", "alice"]
    assert passwd[2].split(":")[5:] == ["/var/lib/pi-agent/users/alice/home", "/bin/bash"]
    groups = agent_says(machine, "sh", "cut -d: -f1 /etc/group").decode().split()
    assert groups == ["root", "nogroup", "pi-agent-alice", "alice", "pi-agent"]
    assert agent_says(machine, "sh", "id -un; getent passwd bob carol || echo unknown").decode().split() == ["pi-agent-alice", "unknown"]
    shared = agent_says(machine, "sh", "cut -d: -f1 /etc/group", cwd="/srv/shared/app").decode().split()
    assert shared == groups


def test_what_packages_keep_outside_of_usr_is_shown_where_only_root_can_change_it(machine, playing):
    """PHP, TeX and others do not start without it. Settings of servers often hold passwords, and others than root could plant files."""
    kept = ("/etc/php/9.9/cli/php.ini", "/etc/php/9.9/fpm/pool.d/www.conf", "/var/lib/texmf/ls-R", "/var/lib/ghc/package.conf.d/x", "/var/lib/ieee-data/oui.txt", "/var/lib/aspell/x")
    places = ("/etc/php", "/var/lib/texmf", "/var/lib/ghc", "/var/lib/ieee-data", "/var/lib/aspell")
    machine.root(f"ls -d {' '.join(places)} 2>/dev/null && exit 1; for file in {' '.join(kept)}; do install -D -m 644 /dev/null $file; done", check=True)
    try:
        machine.root("chown bob /var/lib/ghc; chmod g+w /var/lib/aspell", check=True)
        said = agent_says(machine, "sh", f"ls {' '.join(kept)} 2>/dev/null; touch /var/lib/texmf/new /etc/php/9.9/cli/new 2>/dev/null || echo read-only").decode().split()
        assert said == [kept[0], kept[4], kept[2], "read-only"]
    finally:
        machine.root(f"rm -rf {' '.join(places)}", check=True)


def test_each_group_of_its_processes_has_a_name(machine, playing):
    """Else id ends with status 1, and so does a script that asks for it."""
    for place in ("/home/alice/projects/demo", "/srv/shared/app"):
        done = pi(machine, "sh", "id && id -Gn", cwd=place)
        assert (done.returncode, done.stderr) == (0, b""), done


def test_an_account_of_a_directory_service_is_known_too(machine, playing):
    """The agent's own comes from another source than /etc/passwd: another module of the name service switch."""
    line = machine.root("getent passwd pi-agent-alice", check=True).stdout.decode().strip()
    uid, gid = line.split(":")[2:4]
    machine.root("cp -a /etc/passwd /etc/nsswitch.conf /root/; sed -i 's/^passwd:.*/passwd: files extrausers/' /etc/nsswitch.conf", check=True)
    try:
        machine.write("/var/lib/extrausers/passwd", line + "\n")
        machine.root("sed -i /^pi-agent-alice:/d /etc/passwd; getent passwd pi-agent-alice", check=True)
        said = agent_says(machine, "sh", "cat /etc/passwd").decode().splitlines()
        assert f"pi-agent-alice:x:{uid}:{gid}::/var/lib/pi-agent/users/alice/home:/bin/bash" in said
    finally:
        machine.root("mv /root/passwd /root/nsswitch.conf /etc/; rm /var/lib/extrausers/passwd", check=True)


@pytest.mark.parametrize("how", ["a file", "a link into /run", "a chain of links"])
def test_the_name_servers_are_the_hosts_wherever_that_keeps_them(how, machine, playing):
    arrange = {
        "a file": "echo 'nameserver 192.0.2.1' >/etc/resolv.conf",
        # As systemd-resolved keeps it: in a directory of an account of its own.
        "a link into /run": "install -d -o games /run/resolver; echo 'nameserver 192.0.2.1' >/run/resolver/stub; ln -s /run/resolver/stub /etc/resolv.conf",
        "a chain of links": "install -d /run/resolver; echo 'nameserver 192.0.2.1' >/run/resolver/real; ln -s real /run/resolver/stub; ln -s ../run/resolver/stub /etc/resolv.conf",
    }[how]
    machine.root(f"test ! -e /etc/resolv.conf -a ! -L /etc/resolv.conf || mv /etc/resolv.conf /root/; {arrange}", check=True)
    try:
        assert agent_says(machine, "sh", "cat /etc/resolv.conf") == b"nameserver 192.0.2.1\n"
    finally:
        machine.root("rm -rf /etc/resolv.conf /run/resolver; test ! -e /root/resolv.conf || mv /root/resolv.conf /etc/", check=True)


def test_certificates_are_there_through_a_chain_of_links(machine, playing):
    machine.root(
        "mv /etc/ssl/certs /root/certs; install -d /var/lib/ca; cp -r /root/certs /var/lib/ca/pem; ln -s /var/lib/ca/pem /etc/certs-link;"
        " ln -s ../certs-link /etc/ssl/certs",
        check=True,
    )
    try:
        look = "head -1 /etc/ssl/certs/ca-certificates.crt; ls /var/lib/ca; touch /var/lib/ca/x 2>/dev/null || echo closed"
        assert agent_says(machine, "sh", look).decode().splitlines() == ["-----BEGIN CERTIFICATE-----", "pem", "closed"]
    finally:
        machine.root("rm -r /etc/ssl/certs /etc/certs-link /var/lib/ca; mv /root/certs /etc/ssl/certs", check=True)


def test_the_time_zone_is_the_hosts_by_its_name_too(machine, playing):
    machine.root("cp -a /etc/localtime /root/; ln -sf /usr/share/zoneinfo/Asia/Kolkata /etc/localtime", check=True)
    try:
        assert agent_says(machine, "sh", "readlink /etc/localtime; date +%Z").split() == [b"/usr/share/zoneinfo/Asia/Kolkata", b"IST"]
    finally:
        machine.root("rm /etc/localtime; mv /root/localtime /etc/", check=True)


def test_a_file_that_only_root_reads_is_not_shown_and_a_huge_one_is_named(machine, playing):
    machine.root("cp -a /etc/hosts /root/; echo x >/etc/rpc; chmod 600 /etc/rpc; yes '192.0.2.1 x' | head -c 2000000 >>/etc/hosts", check=True)
    try:
        done = pi(machine, "sh", "ls /etc/hosts /etc/rpc")
        assert done.stdout == b"" and b"not shown to the agent: /etc/hosts (larger than 1 MiB)" in done.stderr, done
    finally:
        machine.root("mv /root/hosts /etc/; rm /etc/rpc", check=True)


SHIPPED = "/etc/issue.net"  # a conffile of base-files, for no program that a session has
COPIES = "/var/lib/pi-agent/etc"


def test_a_package_s_file_is_seen_as_long_as_nobody_changes_it(machine, playing):
    shown = agent_says(machine, "sh", f"cat {SHIPPED}; readlink {SHIPPED}; cat /etc/skel/.bashrc >/dev/null && echo whole")
    assert shown == machine.read(SHIPPED) + f"/var/lib/pi-agent{SHIPPED}\nwhole\n".encode()
    machine.root(f"cp -p {SHIPPED} /root/kept; echo mine >>{SHIPPED}", check=True)
    try:  # nobody looked again, and it is not shown as it was
        done = pi(machine, "sh", f"cat {SHIPPED}")
        assert done.stdout == b"" and done.returncode != 0, done
        machine.root("mv /etc/skel/.profile /root/", check=True)
        assert agent_says(machine, "sh", "ls -A /etc/skel") == b".bash_logout\n.bashrc\n"  # the others of its directory stay
    finally:
        machine.root(f"cp -p /root/kept {SHIPPED}; rm /root/kept; mv /root/.profile /etc/skel/", check=True)
    assert agent_says(machine, "sh", f"cat {SHIPPED}") == machine.read(SHIPPED)


def test_copies_are_made_again_where_something_changed_and_go_with_the_product(machine, playing):
    machine.root(["pi-agentctl", "apply", "--package-files"], check=True)  # other tests change files of /etc, too
    numbers = f"cd {COPIES} && find . -type f -printf '%P %i\\n' | sort"
    before = machine.root(numbers, check=True).stdout
    assert b"issue.net " in before and b"pam.d" not in before and b"shadow" not in before, before
    machine.root(f"echo old >{COPIES}/stale; echo x >>{COPIES}/issue.net; pi-agentctl apply --package-files", check=True)
    after = machine.root(numbers, check=True).stdout
    changed = {line.split()[0] for line in set(after.splitlines()) ^ set(before.splitlines())}
    assert changed == {b"issue.net"} and machine.read(f"{COPIES}/issue.net") == machine.read(SHIPPED), changed
    assert f"would: remove {COPIES}," in machine.root(["pi-agentctl", "remove", "--dry-run"], check=True).stdout.decode()


@pytest.fixture
def tools(machine):
    machine.root(f"install -d {TOOLS}/bin; echo tool >{TOOLS}/bin/tool; echo '[global]' >/etc/pip.conf", check=True)
    yield
    machine.root(f"rm -rf {TOOLS} /etc/pip.conf", check=True)


def test_paths_of_the_policy_are_shown_besides_and_read_only(machine, playing_policy, tools):
    playing_policy(TOOLS_POLICY)
    look = f"cat {TOOLS}/bin/tool /etc/pip.conf; touch {TOOLS}/x 2>/dev/null || echo closed; ls /srv"
    assert agent_says(machine, "sh", look).decode().split() == ["tool", "[global]", "closed", "tools"]
    text = machine.root(["pi-agentctl", "explain", "--user", "alice", "--cwd", DEMO], check=True).stdout.decode()
    assert f"besides: /etc/pip.conf, {TOOLS}\n" in text


def test_a_path_of_the_policy_that_is_missing_or_anybodys_is_refused_by_check_and_at_the_start(machine, playing_policy, tools):
    playing_policy(TOOLS_POLICY)
    machine.root(f"chown alice {TOOLS}", check=True)
    assert_refused(pi(machine, "sh", "true"), 78, f"{TOOLS}", "belongs to uid 1000, not to root", "view_paths (/etc/pi-agent/policy.yaml:")
    checked = machine.root(["pi-agentctl", "check"])
    assert checked.returncode == 78 and b"view_paths" in checked.stderr, checked
    machine.root(f"rm -r {TOOLS}", check=True)
    assert_refused(pi(machine, "sh", "true"), 71, f"cannot open {TOOLS}: No such file or directory")


def test_a_path_of_the_policy_that_leads_into_a_home_is_refused(machine, playing_policy, tools):
    machine.root("install -d /home/everybody; ln -s /home/everybody /srv/link", check=True)
    try:
        done = machine.root("sed 's|view_paths: .*|view_paths: [/srv/link]|' >/root/draft.yaml; pi-agentctl check /root/draft.yaml", input=TOOLS_POLICY.encode())
        assert done.returncode == 78 and b"/home/everybody" in done.stderr and b"is kept from every session" in done.stderr, done
    finally:
        machine.root("rm /srv/link /root/draft.yaml; rmdir /home/everybody", check=True)


def test_the_agents_program_may_live_anywhere_that_only_root_fills(machine, playing_policy):
    """A script whose interpreter lies elsewhere again, reached through links."""
    script = machine.read(PLAYING_AGENT).decode().replace("#!/usr/bin/python3", "#!/data/python/current/bin/python3", 1)
    machine.write("/srv/agents/pi-9/lib/node_modules/pi/cli", script, mode=0o755)
    machine.root(
        "install -d /srv/agents/pi-9/bin /data/python/3/bin; ln -s ../lib/node_modules/pi/cli /srv/agents/pi-9/bin/pi; ln -s pi-9 /srv/agents/pi;"
        " cp /usr/bin/python3 /data/python/3/bin/; ln -s 3 /data/python/current",
        check=True,
    )
    try:
        playing_policy(PLAYING_POLICY.replace(PLAYING_AGENT, "/srv/agents/pi/bin/pi"))
        assert agent_says(machine, "sh", "ls /srv /srv/agents /data/python").decode().split() == [
            "/data/python:", "3", "current", "/srv:", "agents", "/srv/agents:", "pi", "pi-9"]
    finally:
        machine.root("rm -r /srv/agents /data", check=True)


def test_the_agents_program_does_not_bring_anybodys_root_along(machine, playing_policy):
    machine.root(f"install -d /srv/shared/bin; cp {PLAYING_AGENT} /srv/shared/bin/pi", check=True)
    try:
        with written_policy(machine, PLAYING_POLICY.replace(PLAYING_AGENT, "/srv/shared/bin/pi")):
            assert_refused(pi(machine, "sh", "true"), 78, "every session would see /srv/shared, where the root /srv/shared/app (/etc/pi-agent/policy.yaml:")
    finally:
        machine.root("rm -r /srv/shared/bin", check=True)


def test_a_shell_sees_what_the_agent_sees(machine, playing):
    done = machine.run(["pi-agentctl", "shell", "--", "-c", "id -un; pwd; cat /etc/passwd | wc -l; exit 7"], user="alice", cwd=DEMO)
    assert (done.returncode, done.stdout.split()) == (7, [b"pi-agent-alice", DEMO.encode(), b"4"]), done
    assert b"a shell in the agent's place" in machine.root("journalctl -q -n 20 -t pi-agent-runner").stdout
    refused = machine.run(["pi-agentctl", "shell"], user="alice", cwd="/home/alice")
    assert refused.returncode == 77 and b"pi: denied" in refused.stderr, refused
    asked = machine.root(["pi-agentctl", "shell"])
    assert asked.returncode == 77 and b"root cannot run the agent" in asked.stderr, asked
