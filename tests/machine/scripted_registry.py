"""A package registry on loopback in a machine, and the packages in it. Run in the machine, this file is the registry itself.

A package's node is a script that plays npm where npm-cli.js is its first argument, and the agent otherwise.
"""

import base64
import gzip
import hashlib
import io
import json
import ssl
import sys
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

PORT = 4873
URL = f"http://127.0.0.1:{PORT}/"
SECURE_PORT = 4874
SECURE_URL = f"https://127.0.0.1:{SECURE_PORT}/"
PLACE = "/srv/registry"
CERTIFICATE = "/usr/local/lib/scripted_registry.pem"  # of SECURE_URL, and its own authority
DATA = "/usr/share/pi-agent/agents"
PACKAGE = "@earendil-works/pi-coding-agent"
# Beside it, `play` is what the test adds to what npm does; it runs in the tree.
NODE = r"""#!/bin/sh
case $1 in
*/npm-cli.js)
    set -e
    package=@earendil-works/pi-coding-agent version=1.6.0
    [ "$2" = ci ] || { version=${3##*@}; [ "$version" != latest ] || version=2.0.0; }
    mkdir -p "node_modules/$package/dist" node_modules/.bin
    echo "{\"version\": \"$version\", \"bin\": {\"pi\": \"dist/cli.js\"}}" >"node_modules/$package/package.json"
    echo "agent $version" >"node_modules/$package/dist/cli.js"
    ln -sf "../$package/dist/cli.js" node_modules/.bin/pi
    . "${1%/bin/npm-cli.js}/play"
    ;;
*)
    [ "$1" != --require ] || shift 2 # what the launcher has the agent's node read first
    cli=$1; shift
    case $1 in
    sh) shift; export CLI=$cli; exec sh -c "$@" ;;
    *) cat "$cli" ;;
    esac
    ;;
esac
"""


def archive(files, members=()):
    """A package's archive: files below package/ with their texts, and whatever else a test puts in. Those named bin/node are programs."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo("package/" + name)
            member.size, member.mode = len(text), 0o755 if name == "bin/node" else 0o644
            tar.addfile(member, io.BytesIO(text.encode()))
        for member in members:
            tar.addfile(member)
    return gzip.compress(packed.getvalue(), 1, mtime=0)


def integrity_of(data):
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


class Registry:
    """In `machine`, with node and npm as the product's data of agents names them from now on."""

    def __init__(self, machine):
        self.machine = machine
        machine.write("/usr/local/lib/scripted_registry.py", Path(__file__).read_text())
        machine.root(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=registry -addext subjectAltName=IP:127.0.0.1"
            f" -keyout {CERTIFICATE}.key -out {CERTIFICATE} 2>/dev/null", check=True)  # fmt: skip
        machine.root(["systemd-run", "--quiet", "--unit=scripted-registry", "python3", "/usr/local/lib/scripted_registry.py", PLACE], check=True)
        machine.root("for i in $(seq 100); do ss -lnt | grep -q :4874 && exit; sleep .05; done; exit 1", check=True)
        self.publish()

    def publish(self, play="", node=NODE, members=(), pinned=True, archives_from=URL):
        """`pinned` off: what is pinned stays what was published before."""
        node_archive = archive({"bin/node": node})
        npm_archive = archive({"bin/npm-cli.js": "", "play": play + "\n"}, members)
        for package, version, data in (("node-test", "24.0.0", node_archive), ("npm", "11.0.0", npm_archive)):
            dist = {"tarball": f"{archives_from}{package}.tgz", "integrity": integrity_of(data)}
            self.machine.write(f"{PLACE}/{package}", json.dumps({"versions": {version: {"dist": dist}}}))
            self.machine.write(f"{PLACE}/{package}.tgz", data)
        if pinned:
            node_pin = {"package": "node-test", "version": "24.0.0", "integrity": integrity_of(node_archive)}
            npm_pin = {"package": "npm", "version": "11.0.0", "integrity": integrity_of(npm_archive)}
            self.machine.write(f"{DATA}/node.json", json.dumps({"node": {"x86_64": node_pin}, "npm": npm_pin}))

    def behave(self, **how):
        """cut: archives break off in the middle; slow: after some bytes they wait for a long time; lead: SECURE_URL leads to the plain one."""
        self.machine.write(f"{PLACE}/behaviour", json.dumps(how))


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        place = Path(sys.argv[1])
        path = (place / unquote(self.path).lstrip("/")).resolve()
        if place not in path.parents or not path.is_file():
            return self.send_error(404)
        behaviour = place / "behaviour"
        how = json.loads(behaviour.read_text()) if behaviour.exists() else {}
        if how.get("lead") and self.server.server_port == SECURE_PORT:
            self.send_response(302)
            self.send_header("Location", URL.rstrip("/") + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        data = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if path.suffix == ".tgz" and how.get("cut"):
            self.wfile.write(data[: len(data) // 2])
        elif path.suffix == ".tgz" and how.get("slow"):
            self.wfile.write(data[:100])
            self.wfile.flush()
            time.sleep(60)
        else:
            self.wfile.write(data)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    secure = ThreadingHTTPServer(("127.0.0.1", SECURE_PORT), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, f"{CERTIFICATE}.key")
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    threading.Thread(target=secure.serve_forever, daemon=True).start()
    ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
