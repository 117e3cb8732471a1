"""Keys that the agent never holds: the real pi asks each provider through the gate, and the key is nowhere in its session."""

import json
from pathlib import Path

import pytest
from cache import AGENT_DIRECTORY, remove_tree
from launching import DEMO, STANDARD_POLICY, pi
from recipes import AGENTS, DEFAULT_AGENT
from scripted_provider import SAID

HERE = Path(__file__).parent
ADDRESS = "198.51.100.7"  # of the machine itself, beside loopback; the policy names it, or no name could lead there
PLACE = "/var/lib/provider-test"
KEYS = {name: f"sk-{name}-that-no-session-has" for name in ("anthropic", "openai", "google", "openrouter", "azure")}
# Provider, model, host, and how the key is sent.
SHAPES = [
    ("anthropic", "claude-sonnet-4-5", "api.anthropic.com", "x-api-key", ""),
    ("openai", "gpt-5.1", "api.openai.com", "authorization", "Bearer "),
    ("google", "gemini-2.5-flash", "generativelanguage.googleapis.com", "x-goog-api-key", ""),
    ("openrouter", "openai/gpt-5.1", "openrouter.ai", "authorization", "Bearer "),
    ("openrouter", "anthropic/claude-sonnet-4.5", "openrouter.ai", "authorization", "Bearer "),
    ("azure", "gpt-5.1", "tests.openai.azure.com", "api-key", ""),  # pi 0.87 calls it azure-openai-responses
]
HOSTS = sorted({host for _, _, host, _, _ in SHAPES})
AUTHORITY = "/usr/local/share/ca-certificates/provider-test.crt"
MAKE_CERTIFICATES = f"""
set -e; mkdir -p {PLACE}; cd {PLACE}
new="openssl req -config cnf -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
printf '[req]\\ndistinguished_name=name\\n[name]\\n[ca]\\nbasicConstraints=critical,CA:true\\nkeyUsage=critical,keyCertSign\\nsubjectKeyIdentifier=hash\\n' >cnf
$new -x509 -days 2 -subj /CN=provider-test -extensions ca -keyout ca.key -out ca.pem
$new -subj /CN=leaf -keyout leaf.key -out leaf.csr
echo subjectAltName={",".join("DNS:" + host for host in HOSTS)} >names
openssl x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out leaf.pem
cp ca.pem {AUTHORITY}; update-ca-certificates
ip address replace {ADDRESS}/32 dev lo
cp /etc/hosts hosts.before; echo {ADDRESS} {" ".join(HOSTS)} >>/etc/hosts
"""
REMOVE_CERTIFICATES = f"cat {PLACE}/hosts.before >/etc/hosts; ip address del {ADDRESS}/32 dev lo; rm -r {PLACE} {AUTHORITY}; update-ca-certificates --fresh"
# Inside: everything that the agent's account can read of itself, its home and its session, searched for a text.
SEARCH = """
import os, sys
text = sys.stdin.buffer.read()  # an argument would be found
def contents():
    for directory in (os.environ["HOME"], os.environ["TMPDIR"], "/run", "/etc", os.getcwd()):
        for place, directories, files in os.walk(directory):
            for name in files: yield os.path.join(place, name)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("environ", "cmdline", "maps"): yield f"/proc/{pid}/{name}"
found = []
for path in contents():
    try:
        with open(path, "rb") as file:
            if text in file.read(1 << 24): found.append(path)
    except OSError: pass
print(found)
"""


def section(*names):
    lines = [f'network: {{hosts: ["{ADDRESS}:443"]}}', "providers:"]
    for name in names:
        host = ", host: tests.openai.azure.com" if name.startswith("azure") else ""
        lines.append(f"  {name}: {{key_file: {PLACE}-keys/{name}{host}}}")
    return "\n".join(lines) + "\n"


class Service:
    """The providers, and what they were asked."""

    def __init__(self, machine):
        self.machine = machine
        machine.write(f"{PLACE}/scripted_provider.py", (HERE / "scripted_provider.py").read_text())
        command = f"exec python3 -B {PLACE}/scripted_provider.py {ADDRESS} 443 {PLACE}/leaf.pem {PLACE}/leaf.key >>{PLACE}/requests"
        self.process = machine.popen(["sh", "-c", command], user="root")
        machine.root(f"for i in $(seq 200); do grep -q ready {PLACE}/requests && exit; sleep 0.1; done; exit 1", check=True)

    def requests(self):
        lines = self.machine.read(f"{PLACE}/requests").decode().splitlines()[1:]
        self.machine.root(f"echo ready >{PLACE}/requests", check=True)  # which the provider appends to
        return [json.loads(line) for line in lines]

    def end(self):
        self.process.kill_all()
        self.process.communicate()


@pytest.fixture(scope="module")
def service(machine):
    machine.root(MAKE_CERTIFICATES, check=True)
    for name, key in KEYS.items():
        machine.write(f"{PLACE}-keys/{name}", key + "\n", mode=0o600)
    made = Service(machine)
    yield made
    made.end()
    machine.root(f"rm -r {PLACE}-keys; {REMOVE_CERTIFICATES}", check=True)


@pytest.fixture(scope="module", params=AGENTS)
def held(request, machine, service):
    """The machine under a policy whose providers' keys the gate holds, with each of the agents."""
    text = STANDARD_POLICY
    directory = AGENT_DIRECTORY
    if request.param != DEFAULT_AGENT:
        directory = f"{AGENT_DIRECTORY}-{request.param}"
        machine.add_agent(request.param, directory)
        text = text.replace(f"{AGENT_DIRECTORY}/bin/pi", f"{directory}/bin/pi")
    machine.install_policy(text + section(*KEYS))
    machine.names = {"azure": "azure-openai-responses"} if request.param.startswith("0.") else {}  # under which it asks, by the policy's
    yield machine
    machine.install_policy(STANDARD_POLICY)
    if request.param != DEFAULT_AGENT:
        remove_tree(machine.filesystem / directory.lstrip("/"))


@pytest.mark.parametrize(("provider", "model", "host", "field", "prefix"), SHAPES)
def test_pi_asks_a_provider_with_a_key_that_it_does_not_have(provider, model, host, field, prefix, held, service):
    done = pi(held, "--provider", held.names.get(provider, provider), "--model", model, "-p", "hello")
    assert (done.returncode, done.stdout.decode().strip()) == (0, SAID), done
    asked = service.requests()
    assert asked and all(one["fields"]["host"] == host and one["fields"][field] == prefix + KEYS[provider] for one in asked), asked
    assert "held-by-the-gate" not in json.dumps([one["fields"] for one in asked])


def test_message_threads_go_through_whole(held, service):
    """pi 1.5 and later asks so where the address has the provider's name in it, as the gate's route has."""
    if held.names:
        pytest.skip("pi 0.87 has no message threads")
    service.requests()
    for more in ((), ("-c",)):
        done = pi(held, "--provider", "anthropic", "--model", "claude-sonnet-4-5", *more, "-p", "hello")
        assert (done.returncode, done.stdout.decode().strip()) == (0, SAID), done
    asked = [one for one in service.requests() if (one["request"] or {}).get("messages")]
    assert len(asked) == 2 and all("message-threads-" in one["fields"]["anthropic-beta"] for one in asked), asked
    assert asked[0]["request"]["thread"] == {"type": "create"}, asked


def test_pi_shows_what_stands_for_a_key(held, service):
    if held.names:
        pytest.skip("the commands are those of pi 1.5 and later")
    done = pi(held, "auth", "print-api-key", "--provider", "anthropic")
    assert (done.returncode, done.stdout) == (0, b"held-by-the-gate\n"), done
    done = pi(held, "auth", "check", "--provider", "azure", "--json", "--credentials")
    assert done.returncode == 0 and b"held-by-the-gate" in done.stdout and b"sk-" not in done.stdout, done


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter", "google"])
def test_a_tools_result_goes_back_by_the_same_way(provider, held, service):
    model = next(model for name, model, *_ in SHAPES if name == provider)
    done = pi(held, "--provider", provider, "--model", model, "-p", "please look")
    assert (done.returncode, done.stdout.decode().strip()) == (0, SAID), done
    assert "seen-by-the-tool" in json.dumps(service.requests()[-1]["request"])


def test_the_key_is_nowhere_inside(held, service):
    """And the search finds what is there."""
    held.write("/home/alice/projects/demo/search.py", SEARCH, owner="alice")
    held.write("/home/alice/projects/demo/planted", "a text that is planted", owner="alice")
    search = ["pi-agentctl", "shell", "--", "-c", "python3 search.py"]
    for key in KEYS.values():
        done = held.run(search, user="alice", cwd=DEMO, input=key.encode())
        assert (done.returncode, done.stdout) == (0, b"[]\n"), done
    done = held.run(search, user="alice", cwd=DEMO, input=b"a text that is planted")
    held.root(f"rm {DEMO}/search.py {DEMO}/planted", check=True)
    assert b"/planted" in done.stdout, done
    journal = held.root(["journalctl", "--no-pager", "--output=export"], check=True).stdout
    assert not any(key.encode() in journal for key in KEYS.values())


def test_the_users_own_key_for_a_provider_stays_out(held, service):
    """In auth.json, in models.json and in a file of variables; another provider's stays."""
    agent = "/home/alice/.pi/agent"
    held.root(["cp", "-a", agent, f"{agent}.before"], check=True)
    mine = {"type": "api_key", "key": "sk-alices-own"}
    held.write(f"{agent}/auth.json", json.dumps({"anthropic": mine, "groq": mine}), owner="alice", mode=0o600)
    models = {"providers": {"anthropic": {"baseUrl": "https://evil.example", "apiKey": "sk-alices-own"}}}
    held.write(f"{agent}/models.json", json.dumps(models), owner="alice", mode=0o600)
    held.write(f"{agent}/env", "ANTHROPIC_API_KEY=sk-alices-own\nGROQ_API_KEY=sk-alices-own\n", owner="alice", mode=0o600)
    script = "cat ~/.pi/agent/auth.json ~/.pi/agent/models.json; env"
    inside = held.run(["pi-agentctl", "shell", "--", "-c", script], user="alice", cwd=DEMO).stdout.decode()
    done = pi(held, "--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p", "hello")
    held.root(f"rm -r {agent} && mv {agent}.before {agent}", check=True)
    assert (done.returncode, done.stdout.decode().strip()) == (0, SAID), done
    assert '"baseUrl": "http://127.0.0.1:809/api.anthropic.com"' in inside and "evil.example" not in inside, inside
    assert "ANTHROPIC_API_KEY" not in inside and "GROQ_API_KEY=sk-alices-own" in inside, inside
    assert service.requests()[-1]["fields"]["x-api-key"] == KEYS["anthropic"]


def test_a_login_for_a_provider_stays_and_the_gate_puts_the_key_in_its_place(held, service):
    """pi takes a login before a key; it goes to the gate all the same, and no further."""
    agent = "/home/alice/.pi/agent"
    held.root(["cp", "-a", agent, f"{agent}.before"], check=True)
    login = {"type": "oauth", "refresh": "sk-ant-ort-alices", "access": "sk-ant-oat01-alices-own", "expires": 4_000_000_000_000}
    held.write(f"{agent}/auth.json", json.dumps({"anthropic": login}), owner="alice", mode=0o600)
    inside = held.run(["pi-agentctl", "shell", "--", "-c", "cat ~/.pi/agent/auth.json"], user="alice", cwd=DEMO).stdout
    done = pi(held, "--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p", "hello")
    held.root(f"rm -r {agent} && mv {agent}.before {agent}", check=True)
    assert json.loads(inside)["anthropic"] == login, inside
    assert (done.returncode, done.stdout.decode().strip()) == (0, SAID), done
    fields = service.requests()[-1]["fields"]
    assert fields["x-api-key"] == KEYS["anthropic"] and "sk-ant-oat01" not in json.dumps(fields), fields
