#!/usr/bin/env python3
"""A model for scripts/screens, behind an OpenAI-compatible endpoint on loopback: it wants to run one
command, and answers when it has the result. Prints its port.
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ARGUMENTS = json.dumps({"command": "git push origin main"})
CALL = {"id": "call-1", "type": "function", "function": {"name": "run_command", "arguments": ARGUMENTS}}
USAGE = {"prompt_tokens": 2150, "completion_tokens": 320, "total_tokens": 2470}


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        done = any(m["role"] == "tool" for m in request["messages"])
        message = {"role": "assistant", "content": "The release is published." if done else None}
        if not done:
            message["tool_calls"] = [CALL]
        reason = "stop" if done else "tool_calls"
        if request.get("stream"):
            self.stream(request["model"], message, reason)
        else:
            self.send(
                "application/json",
                json.dumps(
                    {
                        "id": "answer",
                        "object": "chat.completion",
                        "model": request["model"],
                        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                        "usage": USAGE,
                    }
                ),
            )

    def stream(self, model, message, reason):
        delta = dict(message)
        if "tool_calls" in delta:
            delta["tool_calls"] = [{"index": 0, **CALL}]
        chunks = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {"choices": [], "usage": USAGE},
        ]
        head = {"id": "answer", "object": "chat.completion.chunk", "model": model}
        events = [json.dumps({**head, **chunk}) for chunk in chunks] + ["[DONE]"]
        self.send("text/event-stream", "".join(f"data: {event}\n\n" for event in events))

    def send(self, content_type, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
print(server.server_address[1], flush=True)
server.serve_forever()
