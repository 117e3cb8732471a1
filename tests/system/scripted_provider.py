"""Providers of models for tests: each answers a prompt in its own shape, as a stream, with the text SAID and after it what a tool gave.

    scripted_provider.py ADDRESS PORT [CERTIFICATE KEY]

A prompt with the word "look" makes the model call its tool `bash` with `COMMAND`, once. After the first event of an answer, "slowly" makes it rest
before each further one, "silent N" makes it silent for N seconds, and "hold" until there is a file `go` beside this one. A WebSocket gets each text
back. Each request is a line of JSON on standard output.
"""

import base64
import hashlib
import json
import re
import ssl
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SAID = "The provider says hello."
PIECES = re.findall(r"\S+\s*", SAID)
BETWEEN_PIECES = 0.7  # seconds, of an answer that comes slowly
HELD_SECONDS = 240
GO = Path(__file__).with_name("go")
COMMAND = "echo seen-by-the-tool"
ENDED = {"input_tokens": 1, "output_tokens": 1}


def anthropic(request):
    calls = wants_a_tool(request) and not has(request, "tool_result")
    block = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}} if calls else {"type": "text", "text": ""}
    deltas = [{"type": "input_json_delta", "partial_json": json.dumps({"command": COMMAND})}] if calls else [{"type": "text_delta", "text": piece} for piece in PIECES]
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": [], "stop_reason": None, "stop_sequence": None, "usage": ENDED}
    yield {"type": "message_start", "message": message}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield from ({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas)
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def responses(request):
    calls = wants_a_tool(request) and not has(request, "function_call_output")
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": SAID, "annotations": []}]}
    if calls:
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "bash", "arguments": json.dumps({"command": COMMAND}), "status": "completed"}
    begun = {**item, "status": "in_progress", **({"arguments": ""} if calls else {"content": []})}
    at = {"item_id": item["id"], "output_index": 0}
    yield {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}
    yield {"type": "response.output_item.added", "output_index": 0, "item": begun}
    if calls:
        yield {"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}
    else:
        yield {"type": "response.content_part.added", **at, "content_index": 0, "part": {"type": "output_text", "text": "", "annotations": []}}
        yield from ({"type": "response.output_text.delta", **at, "content_index": 0, "delta": piece} for piece in PIECES)
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": [item], "usage": {**ENDED, "total_tokens": 2}}}


def google(request):
    calls = wants_a_tool(request) and not has(request, "functionResponse")
    *parts, last = [{"functionCall": {"name": "bash", "args": {"command": COMMAND}}}] if calls else [{"text": piece} for piece in PIECES]
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    yield from ({"candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in parts)
    yield {"candidates": [{"content": {"role": "model", "parts": [last]}, "finishReason": "STOP"}], "usageMetadata": usage}


def completions(request):
    calls = wants_a_tool(request) and not has(request, '"tool"')
    function = {"name": "bash", "arguments": json.dumps({"command": COMMAND})}
    deltas = [{"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}] if calls else [{"content": piece} for piece in PIECES]
    about = {"id": "chat_1", "object": "chat.completion.chunk", "created": 0, "model": request["model"]}
    yield from ({**about, "choices": [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}]} for delta in deltas)
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    yield {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}], "usage": usage}
    yield "[DONE]"


def prompt_of(request):
    """Of the user alone: what a system prompt says is nobody's wish."""
    said = request.get("messages") or request.get("input") or request.get("contents")
    return json.dumps([one for one in said if one.get("role") == "user"])


def wants_a_tool(request):
    return re.search(r"\blook\b", prompt_of(request))


def rest(prompt, index):
    """Before the event of this number."""
    silent = re.search(r"\bsilent (\d+)", prompt)
    if index == 1 and silent:
        time.sleep(int(silent[1]))
    if index == 1 and re.search(r"\bhold\b", prompt):
        until = time.monotonic() + HELD_SECONDS
        while not GO.exists() and time.monotonic() < until:
            time.sleep(0.05)
    if index > 0 and re.search(r"\bslowly\b", prompt):
        time.sleep(BETWEEN_PIECES)


def has(request, word):
    return word in json.dumps(request)


# By what a path ends with, before its query.
SHAPES = {"/v1/messages": anthropic, "/responses": responses, ":streamGenerateContent": google, "/chat/completions": completions}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.write_down(request)
        shape = next((shape for end, shape in SHAPES.items() if self.path.partition("?")[0].endswith(end)), None)
        if shape is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for index, event in enumerate(shape(request)):
            rest(prompt_of(request), index)
            data = event if isinstance(event, str) else json.dumps(event)
            name = f"event: {event['type']}\n" if shape in (anthropic, responses) else ""
            piece = f"{name}data: {data}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self):
        """A WebSocket (RFC 6455) that gives back what it gets, until it is closed; its frames here are short."""
        self.write_down(None)
        if "Sec-WebSocket-Key" not in self.headers:
            self.send_error(404)
            return
        accept = hashlib.sha1((self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", base64.b64encode(accept).decode())):
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        while len(head := self.rfile.read(2)) == 2 and head[0] != 0x88:
            mask, masked = self.rfile.read(4), self.rfile.read(head[1] & 0x7F)  # of a client always (section 5.1)
            text = bytes(byte ^ mask[index % 4] for index, byte in enumerate(masked))
            self.wfile.write(bytes((0x81, len(text))) + text)

    def write_down(self, request):
        fields = {name.lower(): value for name, value in self.headers.items()}
        print(json.dumps({"path": self.path, "fields": fields, "request": request}), flush=True)

    def log_message(self, *_):
        pass


def main(address, port, *certificate):
    server = ThreadingHTTPServer((address, int(port)), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
