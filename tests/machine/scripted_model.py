"""A model for tests: an OpenAI-compatible server on loopback whose answers are scripted by the prompt.

A prompt that contains a JSON object with "steps" plays it, one tool call per request, and then ends with text:

    {"steps": [{"bash": "id -un"}, {"write": {"path": "hello.txt", "content": "hello\\n"}}], "say": "done"}

A step is {TOOL: ARGUMENTS}; "bash" also takes the command as a string. Around the object there may be other text.
The final text is "say" and the first 2000 characters of the last tool result. A prompt without such an object plays
DEFAULT_SCRIPT. Every request is written to stdout as one line of JSON, with its header Authorization as "authorization".
"""

import argparse
import json
import os
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DEFAULT_SCRIPT = {
    "steps": [
        {"bash": "id -un; pwd"},
        {"write": {"path": "hello.txt", "content": "hello from the agent\n"}},
    ],
    "say": "I ran a command and wrote hello.txt.",
}
RESULT_CHARACTERS = 2000


def text_of(message):
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def script_in(prompt):
    decoder = json.JSONDecoder()
    at = prompt.find("{")
    while at != -1:
        try:
            found, _ = decoder.raw_decode(prompt, at)
            if "steps" in found:
                return found
        except ValueError:
            pass
        at = prompt.find("{", at + 1)
    return DEFAULT_SCRIPT


def next_answer(messages):
    """The assistant's next message: the step that follows the tool results since the last prompt, or the final text."""
    last_prompt = max(index for index, message in enumerate(messages) if message["role"] == "user")
    script = script_in(text_of(messages[last_prompt]))
    results = [text_of(message) for message in messages[last_prompt:] if message["role"] == "tool"]
    if len(results) < len(script["steps"]):
        ((tool, arguments),) = script["steps"][len(results)].items()
        if tool == "bash" and isinstance(arguments, str):
            arguments = {"command": arguments}
        call = {"name": tool, "arguments": json.dumps(arguments)}
        return {"tool_calls": [{"index": 0, "id": f"call_{len(messages)}", "type": "function", "function": call}]}
    lines = [script.get("say", "done")] + [result[:RESULT_CHARACTERS] for result in results[-1:]]
    return {"content": "\n".join(lines)}


def chunks_of(answer):
    yield {"choices": [{"index": 0, "delta": {"role": "assistant", **answer}, "finish_reason": None}]}
    reason = "tool_calls" if "tool_calls" in answer else "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        sys.stdout.write(json.dumps({**request, "authorization": self.headers.get("Authorization")}) + "\n")
        sys.stdout.flush()
        if self.path != "/v1/chat/completions" or not request.get("stream"):
            self.send_error(404, "only streamed chat completions are scripted")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for chunk in chunks_of(next_answer(request["messages"])):
            chunk.update(id="scripted", object="chat.completion.chunk", created=0, model=request.get("model"))
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_):
        pass  # stdout is the record of requests; errors still reach stderr as exceptions


def tell_systemd_that_we_listen():
    if "NOTIFY_SOCKET" in os.environ:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8099)
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    tell_systemd_that_we_listen()
    server.serve_forever()


if __name__ == "__main__":
    main()
