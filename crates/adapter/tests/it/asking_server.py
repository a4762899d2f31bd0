# An MCP server on stdio: `echo` answers, `form` asks the user by an elicitation first, `address` to open one.
import json
import os
import sys

waiting = {}


def tell(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(call, said):
    tell({"id": call, "result": {"content": [{"type": "text", "text": said}]}})


FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "description": "Your name"},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "ok": {"type": "boolean"},
    },
    "required": ["name"],
}
TOOLS = [
    {"name": "echo", "description": "Echo", "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}}},
    {"name": "form", "description": "Asks", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "address", "description": "Asks to open", "inputSchema": {"type": "object", "properties": {}}},
]

for line in sys.stdin:
    message = json.loads(line)
    call, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method == "initialize":
        server = {"name": "tiny", "version": "1"}
        tell({"id": call, "result": {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}})
    elif method == "tools/list":
        tell({"id": call, "result": {"tools": TOOLS}})
    elif method == "tools/call" and params["name"] == "form":
        waiting["ask"] = call
        tell({"id": "ask", "method": "elicitation/create", "params": {"message": "Who are you?", "requestedSchema": FORM}})
    elif method == "tools/call" and params["name"] == "address":
        waiting["open"] = call
        address = {"mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": "e1"}
        tell({"id": "open", "method": "elicitation/create", "params": address})
    elif method == "tools/call":
        text(call, "echo: " + str(params.get("arguments", {}).get("message")) + os.environ.get("SUFFIX", ""))
    elif method is None and call in waiting:
        text(waiting.pop(call), "got " + json.dumps(message.get("result")))
    elif method is not None and call is not None:
        tell({"id": call, "error": {"code": -32601, "message": "no such method"}})
