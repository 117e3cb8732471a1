"""Providers of models for tests: each answers a prompt in its own shape, as a stream, with the text SAID and after it what a tool gave.

    scripted_provider.py ADDRESS PORT [CERTIFICATE KEY]

A prompt with the word "look" makes the model call its tool `bash` with `COMMAND`, once. Each request is a line of JSON on standard output.
"""

import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SAID = "The provider says hello."
COMMAND = "echo seen-by-the-tool"
ENDED = {"input_tokens": 1, "output_tokens": 1}


def anthropic(request):
    calls = wants_a_tool(request) and not has(request, "tool_result")
    block = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}} if calls else {"type": "text", "text": ""}
    delta = {"type": "input_json_delta", "partial_json": json.dumps({"command": COMMAND})} if calls else {"type": "text_delta", "text": SAID}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": [], "stop_reason": None, "stop_sequence": None, "usage": ENDED}
    yield {"type": "message_start", "message": message}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
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
        yield {"type": "response.output_text.delta", **at, "content_index": 0, "delta": SAID}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": [item], "usage": {**ENDED, "total_tokens": 2}}}


def google(request):
    calls = wants_a_tool(request) and not has(request, "functionResponse")
    part = {"functionCall": {"name": "bash", "args": {"command": COMMAND}}} if calls else {"text": SAID}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    yield {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}], "usageMetadata": usage}


def completions(request):
    calls = wants_a_tool(request) and not has(request, '"tool"')
    function = {"name": "bash", "arguments": json.dumps({"command": COMMAND})}
    delta = {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]} if calls else {"content": SAID}
    about = {"id": "chat_1", "object": "chat.completion.chunk", "created": 0, "model": request["model"]}
    yield {**about, "choices": [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}]}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    yield {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}], "usage": usage}
    yield "[DONE]"


def wants_a_tool(request):
    return "look" in json.dumps(request.get("messages") or request.get("input") or request.get("contents"))


def has(request, word):
    return word in json.dumps(request)


# By what a path ends with, before its query.
SHAPES = {"/v1/messages": anthropic, "/responses": responses, ":streamGenerateContent": google, "/chat/completions": completions}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fields = {name.lower(): value for name, value in self.headers.items()}
        print(json.dumps({"path": self.path, "fields": fields, "request": request}), flush=True)
        shape = next((shape for end, shape in SHAPES.items() if self.path.partition("?")[0].endswith(end)), None)
        if shape is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in shape(request):
            data = event if isinstance(event, str) else json.dumps(event)
            name = f"event: {event['type']}\n" if shape in (anthropic, responses) else ""
            piece = f"{name}data: {data}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

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
