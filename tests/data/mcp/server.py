#!/usr/bin/env python3
"""A tool server for tests (Model Context Protocol), in both eras, over stdio and HTTP.

It says what a test makes it say: see `main` for the options and `TOOLS` for what it can do.
Messages that it gets go to the file of --log, one a line.
"""

import argparse
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODERN = "2026-07-28"
LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
INFO = {"name": "test-server", "version": "1.2.3"}


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def schema(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


STRING = {"type": "string"}
NUMBER = {"type": "integer"}

TOOLS = [
    {"name": "echo", "description": "Says it again", "inputSchema": schema(text=STRING)},
    {"name": "add", "description": "Adds", "inputSchema": schema(a=NUMBER, b=NUMBER)},
    {"name": "big", "description": "Many bytes", "inputSchema": schema(bytes=NUMBER)},
    {"name": "fail", "description": "Fails", "inputSchema": schema()},
    {"name": "refuse", "description": "A protocol error", "inputSchema": schema()},
    {"name": "parts", "description": "All kinds of content", "inputSchema": schema()},
    {"name": "structured", "description": "No text", "inputSchema": schema()},
    {"name": "hang", "description": "Never answers", "inputSchema": schema()},
    {"name": "die", "description": "Ends the server", "inputSchema": schema()},
    {"name": "change", "description": "Changes the list of tools", "inputSchema": schema()},
    {"name": "ask", "description": "Asks a person", "inputSchema": schema()},
    {"name": "environment", "description": "Names of variables", "inputSchema": schema()},
    {"name": "variable", "description": "The value of one", "inputSchema": schema(name=STRING)},
    {"name": "shout", "description": "Many notes", "inputSchema": schema(lines=NUMBER)},
    {"name": "pester", "description": "Asks, and takes it back", "inputSchema": schema(times=NUMBER)},
    {"name": "where", "description": "Its directory and pid", "inputSchema": schema()},
    {"name": "word", "description": "One of its words", "inputSchema": schema(name=STRING)},
    {"name": "note", "description": "A line for the log", "inputSchema": schema(name=STRING)},
    {"name": "a.name with spaces", "description": "An odd name", "inputSchema": schema()},
]

RESOURCES = {
    "test://one": {"name": "one", "mimeType": "text/plain", "text": "the first resource"},
    "test://two": {"name": "two", "mimeType": "image/png", "blob": "AAECAwQF"},
}

QUESTION = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Which colour?",
        "requestedSchema": {"type": "object", "properties": {"colour": STRING}},
    },
}


class Failure(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.body = {"code": code, "message": message}
        if data is not None:
            self.body["data"] = data


class Server:
    """What is the same over stdio and HTTP. `send` takes messages that are no answers."""

    def __init__(self, options):
        self.options = options
        self.tools = [t for t in TOOLS if t["name"] not in options.without]
        self.tools += [{"name": name, "description": name, "inputSchema": {"type": "object"}}
                       for name in options.tool]
        if options.describe:
            self.tools[0] = dict(self.tools[0], description=options.describe)
        self.words = {}
        if options.words:
            with open(options.words, encoding="utf-8") as f:
                self.words = json.load(f)
            self.tools = [dict(t, **self.words.get("tools", {}).get(t["name"], {}))
                          for t in self.tools] + self.words.get("more_tools", [])
        self.send = lambda message: None
        self.listeners = []
        self.lock = threading.Lock()

    def log(self, message):
        if self.options.log:
            with self.lock, open(self.options.log, "a", encoding="utf-8") as f:
                f.write(json.dumps(message) + "\n")

    def capabilities(self):
        all = {"tools": {"listChanged": True}}
        if not self.options.no_resources:
            all["resources"] = {}
        return all

    def handle(self, message):
        """The answer, or None."""
        method, params = message.get("method"), message.get("params") or {}
        if method is None or "id" not in message:
            return None
        modern = "io.modelcontextprotocol/protocolVersion" in (params.get("_meta") or {})
        try:
            if modern and self.options.era == "legacy":
                if self.options.ignore_unknown:
                    return None
                raise Failure(-32601, "Method not found")
            if not modern and self.options.era == "modern":
                raise Failure(-32602, "only " + MODERN + " is spoken")
            if modern:
                asked = params["_meta"]["io.modelcontextprotocol/protocolVersion"]
                if asked != MODERN:
                    raise Failure(-32022, "Unsupported protocol version",
                                  {"supported": [MODERN], "requested": asked})
            result = self.result(method, params, modern, message["id"])
        except Failure as e:
            return {"jsonrpc": "2.0", "id": message["id"], "error": e.body}
        if result is None:
            return None
        if modern:
            result.setdefault("resultType", "complete")
            result.setdefault("_meta", {})["io.modelcontextprotocol/serverInfo"] = INFO
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def result(self, method, params, modern, number):
        if method == "server/discover" and modern:
            return {"supportedVersions": [MODERN], "capabilities": self.capabilities()}
        if method == "initialize" and not modern:
            asked = params.get("protocolVersion")
            version = self.options.version or (asked if asked in LEGACY else LEGACY[0])
            return {"protocolVersion": version, "capabilities": self.capabilities(),
                    "serverInfo": INFO}
        if method == "ping":
            return {}
        if method == "tools/list":
            return self.page(params)
        if method == "tools/call":
            return self.call(params, modern, number)
        if method == "resources/list":
            return {"resources": [dict(uri=uri, name=r["name"], mimeType=r["mimeType"])
                                  for uri, r in RESOURCES.items()]}
        if method == "resources/read":
            found = RESOURCES.get(params.get("uri"))
            if found is not None and "resource" in self.words:
                found = dict(found, text=self.words["resource"])
            if found is None:
                raise Failure(-32602, "no such resource")
            return {"contents": [dict(found, uri=params["uri"])]}
        if method == "subscriptions/listen" and modern:
            self.listeners.append(number)
            self.send({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                       "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": number},
                                  "notifications": {"toolsListChanged": True}}})
            return None
        raise Failure(-32601, "Method not found")

    def question(self):
        return dict(QUESTION, params=json.loads(self.options.question)) if self.options.question \
            else dict(QUESTION, params=self.words.get("question", QUESTION["params"]))

    def page(self, params):
        begin = int(params.get("cursor") or 0)
        end = begin + self.options.page
        out = {"tools": self.tools[begin:end], "ttlMs": 300000, "cacheScope": "private"}
        if end < len(self.tools):
            out["nextCursor"] = str(end)
        return out

    def call(self, params, modern, number):
        name, a = params.get("name"), params.get("arguments") or {}
        if name not in [t["name"] for t in self.tools]:
            raise Failure(-32602, "Unknown tool: " + str(name))
        if name == "echo":
            return text(a["text"])
        if name == "add":
            return text(str(a["a"] + a["b"]))
        if name == "big":
            return text("x" * (a["bytes"] - 3) + "end")
        if name == "fail":
            return dict(text(self.words.get("fail", "it did not work")), isError=True)
        if name == "refuse":
            raise Failure(-32000, self.words.get(a.get("words", "refuse"), "not today"))
        if name == "parts":
            return {"content": [
                {"type": "text", "text": "first"},
                {"type": "image", "data": "AAECAwQF", "mimeType": "image/png"},
                {"type": "resource_link", "uri": "test://one", "name": "one"},
                {"type": "resource", "resource": {"uri": "test://two", "text": "inside"}},
            ]}
        if name == "structured":
            return {"content": [], "structuredContent": {"answer": self.words.get("structured", 42)}}
        if name == "hang":
            return None
        if name == "die":
            print("about to die", file=sys.stderr, flush=True)
            os._exit(3)
        if name == "change":
            self.tools = self.tools + [{"name": "new_one", "description": "New",
                                        "inputSchema": schema()}]
            note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            if modern:
                for listener in self.listeners:
                    self.send(dict(note, params={"_meta": {
                        "io.modelcontextprotocol/subscriptionId": listener}}))
            else:
                self.send(note)
            return text("changed")
        if name == "ask":
            if not modern:
                self.send(dict(self.question(), jsonrpc="2.0", id="question-1"))
                self.waiting = number
                return None
            if "inputResponses" not in params:
                return {"resultType": "input_required", "inputRequests": {"colour": self.question()},
                        "requestState": "state of " + str(len(a))}
            if params.get("requestState") != "state of 0":
                raise Failure(-32602, "the state is not what was given")
            return text(json.dumps(params["inputResponses"]["colour"], sort_keys=True))
        if name == "environment":
            return text(" ".join(sorted(os.environ)))
        if name == "variable":
            return text(os.environ.get(a["name"], ""))
        if name == "shout":
            for i in range(a["lines"]):
                self.send({"jsonrpc": "2.0", "method": "notifications/message",
                           "params": {"level": "info", "data": "A" * 100 + str(i)}})
            return text("shouted")
        if name == "pester":
            for i in range(a["times"]):
                asked = "pester-%d" % i
                self.send(dict(self.question(), jsonrpc="2.0", id=asked))
                self.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                           "params": {"requestId": asked}})
            return text("pestered")
        if name == "word":
            return text(self.words[a["name"]])
        if name == "note":
            self.send({"jsonrpc": "2.0", "method": "notifications/message",
                       "params": {"level": "warning", "data": self.words[a["name"]]}})
            return text("noted")
        if name == "where":
            return text(os.getcwd() + " " + str(os.getpid()))
        return text("called " + name)

    def answered(self, message):
        """A client's answer to a question of ours (handshake era)."""
        if message.get("id") != "question-1":
            return None
        return {"jsonrpc": "2.0", "id": self.waiting,
                "result": text(json.dumps(message.get("result"), sort_keys=True))}


def serve_stdio(server):
    def send(message):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    server.send = send
    if server.options.garbage:
        print("this is no message", flush=True)
    print(server.words.get("stderr", "ready on stderr"), file=sys.stderr, flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        server.log(message)
        answer = server.answered(message) if "method" not in message else server.handle(message)
        if answer is not None:
            send(answer)
    if server.options.stubborn:
        threading.Event().wait()


def serve_http(server):
    sessions = set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def reply(self, status, body=b"", kind="application/json", more=()):
            self.send_response(status)
            for name, value in more:
                self.send_header(name, value)
            if body:
                self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.reply(405)

        def do_DELETE(self):
            sessions.discard(self.headers.get("Mcp-Session-Id"))
            server.log({"http": "DELETE"})
            self.reply(200)

        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            kept = {k: v for k, v in self.headers.items() if k.lower().startswith("mcp-")
                    or k.lower() == "authorization"}
            server.log(dict(message, headers=kept))
            if server.options.key and self.headers.get("Authorization") != server.options.key:
                return self.reply(401)
            modern = "_meta" in (message.get("params") or {})
            if not modern and message.get("method") != "initialize" and sessions:
                if self.headers.get("Mcp-Session-Id") not in sessions:
                    return self.reply(404)
            if "id" not in message or "method" not in message:
                return self.reply(202)
            answer = server.handle(message)
            if answer is None:
                return self.reply(202)
            more = []
            status = 200
            if message["method"] == "initialize" and "result" in answer:
                sessions.add("session-%d" % (len(sessions) + 1))
                more = [("Mcp-Session-Id", "session-%d" % len(sessions))]
            if modern and "error" in answer:
                status = 404 if answer["error"]["code"] == -32601 else 400
            if server.options.forget and message["method"] == "tools/call":
                server.options.forget = False
                sessions.clear()
                sessions.add("another")
                if server.options.redescribe:
                    server.tools[0] = dict(server.tools[0], description=server.options.redescribe)
                return self.reply(404)
            body = json.dumps(answer).encode()
            if server.options.sse and status == 200:
                note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message",
                                   "params": {"level": "info", "data": "on its way"}})
                stream = "event: message\ndata: %s\n\ndata: %s\n\n" % (note, body.decode())
                return self.reply(200, stream.encode(), "text/event-stream", more)
            self.reply(status, body, more=more)

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    temporary = server.options.http + ".new"
    with open(temporary, "w", encoding="utf-8") as f:
        f.write(str(http.server_address[1]))
    os.rename(temporary, server.options.http)
    http.serve_forever()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--era", choices=["modern", "legacy", "both"], default="both")
    p.add_argument("--http", metavar="FILE", help="over HTTP; the port is written to FILE")
    p.add_argument("--sse", action="store_true", help="answers are streams of events")
    p.add_argument("--version", help="what the handshake agrees on")
    p.add_argument("--page", type=int, default=4, help="tools on a page")
    p.add_argument("--log", metavar="FILE")
    p.add_argument("--key", help="what Authorization must say")
    p.add_argument("--garbage", action="store_true", help="begins with a line that is no message")
    p.add_argument("--ignore-unknown", action="store_true", help="says nothing to what it does not know")
    p.add_argument("--no-resources", action="store_true")
    p.add_argument("--stubborn", action="store_true", help="stays when its input is closed")
    p.add_argument("--forget", action="store_true", help="forgets the session at the first call")
    p.add_argument("--redescribe", help="with --forget: the first tool's description from then on")
    p.add_argument("--describe", help="another description of the first tool")
    p.add_argument("--tool", action="append", default=[], metavar="TOOL", help="one more")
    p.add_argument("--without", action="append", default=[], metavar="TOOL")
    p.add_argument("--question", metavar="JSON", help="what `ask` asks")
    p.add_argument("--words", metavar="FILE", help="JSON: what it says instead, by tool")
    p.add_argument("--pid", metavar="FILE", help="where its process id goes")
    server = Server(p.parse_args())
    if server.options.pid:
        with open(server.options.pid, "w", encoding="utf-8") as f:
            f.write(str(os.getpid()) + "\n")
    if server.options.http:
        serve_http(server)
    else:
        serve_stdio(server)


if __name__ == "__main__":
    main()
