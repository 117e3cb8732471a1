"""Serves bare repositories over HTTPS to who has the token, with git's own http-backend: git_forge.py DIRECTORY CERTIFICATE KEY PORT TOKEN."""

import base64
import http.server
import os
import ssl
import subprocess
import sys

DIRECTORY, CERTIFICATE, KEY, PORT, TOKEN = sys.argv[1:]
EXPECTED = "Basic " + base64.b64encode(f"agent:{TOKEN}".encode()).decode()


class Forge(http.server.BaseHTTPRequestHandler):
    def serve(self):
        if self.headers.get("Authorization") != EXPECTED:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="forge"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        environment = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": DIRECTORY, "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": "agent", "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)), "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }  # fmt: skip
        done = subprocess.run(["git", "http-backend"], input=body, stdout=subprocess.PIPE, env=environment, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(fields.pop("Status", "200 OK").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = serve


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(PORT)), Forge)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("ready", flush=True)
server.serve_forever()
