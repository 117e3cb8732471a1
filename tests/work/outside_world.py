"""Runs as root in the machine: a network outside of it, with the servers that programs of work ask, by their names.

    outside_world.py DIRECTORY ACCOUNT

Files are in DIRECTORY/www/HOST, served by HTTP and HTTPS; repositories in DIRECTORY/git/HOST, served by HTTPS with git's own http-backend, and by ssh
to ACCOUNT. A name server says that every name is there. Each request by HTTP is a line on standard output, after `ready`, and each name that
is asked for: `NAME name`.
"""

import os
import posixpath
import socket
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from gate_driver import NEIGHBOUR, OUTSIDE, OWN, in_network, ip, listen, new_network

DIRECTORY, ACCOUNT = Path(sys.argv[1]), sys.argv[2]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        host = self.headers["Host"].partition(":")[0]
        path, _, query = self.path.partition("?")
        print(self.command, host, self.path, flush=True)
        if ".git/" in path:
            return self.git(host, path, query)
        place = posixpath.normpath(path).lstrip("/")
        file = DIRECTORY / "www" / host / place / ("index" if path.endswith("/") else "")
        if not file.is_file():
            return self.answer("404 Not Found", "text/plain", b"not here\n")
        self.answer("200 OK", "text/html" if file.name == "index" else "application/octet-stream", file.read_bytes())

    do_HEAD = do_POST = do_GET

    def git(self, host, path, query):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        environment = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": f"{DIRECTORY}/git/{host}", "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
            "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""), "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }  # fmt: skip
        account = ["setpriv", f"--reuid={ACCOUNT}", "--clear-groups"]
        done = subprocess.run([*account, "git", "http-backend"], input=body, stdout=subprocess.PIPE, env=environment, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.answer(fields.get("Status", "200 OK"), fields.get("Content-Type", "text/plain"), content)

    def answer(self, status, kind, content):
        number, _, words = status.partition(" ")
        self.send_response(int(number), words)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    def __init__(self, network, port, context=None):
        super().__init__((OUTSIDE, port), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = in_network(network, listen, socket.AF_INET, OUTSIDE, port)
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, *_):
        pass  # a client that does not trust it, or goes


def name_in(labels):
    """Each part has its length before it."""
    parts = []
    while labels:
        parts.append(labels[1 : labels[0] + 1].decode("ascii", "replace").lower())
        labels = labels[labels[0] + 1 :]
    return ".".join(parts)


def serve_names(server):
    """One A record for whatever is asked, and no other (RFC 1035)."""
    while True:
        question, peer = server.recvfrom(512)
        end = question.index(b"\0", 12) + 5
        print("NAME", name_in(question[12 : end - 5]), flush=True)
        record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(OUTSIDE) if question[end - 4 : end - 2] == b"\0\1" else b""
        server.sendto(question[:2] + b"\x81\x80\0\1" + (b"\0\1" if record else b"\0\0") + b"\0\0\0\0" + question[12:end] + record, peer)


def main():
    network = new_network()
    inside = ["nsenter", "-t", str(network.pid), "-n"]
    ip("link", "add", "world0", "type", "veth", "peer", "name", "out0", "netns", str(network.pid))
    ip("address", "add", f"{OWN}/24", "dev", "world0")
    ip("link", "set", "world0", "up")
    for arguments in (["address", "add", f"{NEIGHBOUR}/24", "dev", "out0"], ["address", "add", f"{OUTSIDE}/32", "dev", "out0"], ["link", "set", "out0", "up"]):
        subprocess.run([*inside, "ip", *arguments], check=True)
    ip("route", "add", f"{OUTSIDE}/32", "via", NEIGHBOUR)
    settings = ["Port=22", f"ListenAddress={OUTSIDE}", f"HostKey={DIRECTORY}/host", f"AuthorizedKeysFile={DIRECTORY}/authorized"]
    settings += ["UsePAM=no", "StrictModes=no", "PasswordAuthentication=no", "PidFile=none"]
    subprocess.Popen([*inside, "/usr/sbin/sshd", "-D", "-f", "/dev/null", *(f"-o{setting}" for setting in settings)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DIRECTORY / "leaf.pem", DIRECTORY / "leaf.key")
    for server in (Server(network, 80), Server(network, 443, context)):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    names = in_network(network, listen, socket.AF_INET, OUTSIDE, 53, socket.SOCK_DGRAM)
    threading.Thread(target=serve_names, args=(names,), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
