#!/usr/bin/env python3
"""The client of the official conformance suite (@modelcontextprotocol/conformance): makes a
throw-away home whose configuration names the server that the suite gives, and lets the binary look
at it and call its tools. scripts/mcp-conformance runs it.

The suite says by variables which scenario it is and what is to be called.
"""

import json
import os
import subprocess
import sys
import tempfile

CONFIGURATION = """version: 1
mcpServers:
  suite: {url: %s, call_timeout: 20s, start_timeout: 10s}
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents: []
"""

# What scenarios want called; others have their first tool called.
CALLS = {
    "tools_call": [("add_numbers", {"a": 5, "b": 3})],
    "sse-retry": [("test_reconnection", {})],
    "sep-2322-client-request-state": [
        ("test_mrtr_echo_state", {}),
        ("test_mrtr_unrelated", {}),
        ("test_mrtr_no_state", {}),
        ("test_mrtr_no_result_type", {}),
    ],
}
LOOK_ONLY = ["initialize", "request-metadata", "json-schema-ref-no-deref"]


def main():
    url = sys.argv[-1]
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    home = tempfile.mkdtemp(prefix="boyd-conformance-")
    configuration = os.path.join(home, "from.yaml")
    with open(configuration, "w", encoding="utf-8") as f:
        f.write(CONFIGURATION % url)
    boyd = [os.environ.get("BOYD_BINARY", "boyd"), "--home", os.path.join(home, "home")]
    subprocess.run(boyd + ["init", "--from", configuration], check=True,
                   stdout=subprocess.DEVNULL)

    def run(*words):
        print("$ boyd " + " ".join(words), flush=True)
        done = subprocess.run(boyd + list(words), stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout, flush=True)
        return done.stdout

    shown = json.loads(run("tools", "show", "suite", "--json") or "{}")
    items = shown.get("items") or [{}]
    tools = items[0].get("tools") or []
    calls = CALLS.get(scenario)
    if context.get("toolCalls"):
        calls = [(c["name"], c["arguments"]) for c in context["toolCalls"]]
    if scenario == "json-schema-2020-12-preservation":
        seen = [t for t in tools if t["name"].endswith("__json_schema_2020_12_tool")]
        calls = [("json_schema_echo", {"schema": seen[0]["parameters"]})] if seen else []
    if scenario == "http-invalid-tool-headers":
        calls = [(t["name"].split("__", 2)[2], {"region": "eu"}) for t in tools]
    if calls is None and scenario not in LOOK_ONLY:
        calls = [(t["name"].split("__", 2)[2], {}) for t in tools if "__list_resources" not in t["name"]
                 and "__read_resource" not in t["name"]][:1]
    for name, arguments in calls or []:
        run("tools", "call", "mcp__suite__" + name, json.dumps(arguments))
    if scenario == "http-standard-headers":
        run("tools", "call", "mcp__suite__list_resources")
        run("tools", "call", "mcp__suite__read_resource", '{"uri": "file:///path/to/file%20name.txt"}')


if __name__ == "__main__":
    main()
