"""Open a file with a typo in cute-lsp, as an editor does, and print what it says."""

import json
import subprocess
import sys

server = subprocess.Popen(["cute-lsp", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def send(method, params, **number):
    """Send a message; ``id=``: a request, which is answered."""
    body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **number}).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    server.stdin.flush()


def wait(wanted):
    """Return the first message for which ``wanted`` is true."""
    while True:
        lines = iter(server.stdout.readline, b"\r\n")
        size = next(int(line.split(b":")[1]) for line in list(lines) if line.lower().startswith(b"content-length"))
        said = json.loads(server.stdout.read(size))
        if wanted(said):
            return said


send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, id=1)
assert wait(lambda m: m.get("id") == 1)["result"]["capabilities"]["textDocumentSync"]
send("initialized", {})
text = '%a = cute.statik : !cute.shape<"(4,8)">\n'
document = {"uri": "file:///a.mlir", "languageId": "mlir", "version": 1, "text": text}
send("textDocument/didOpen", {"textDocument": document})
said = wait(lambda m: m.get("method") == "textDocument/publishDiagnostics" and m["params"]["diagnostics"])
(found,) = said["params"]["diagnostics"]
assert found["range"]["start"]["line"] == 0 and "cute.static" in found["message"], found
print(found["message"])
send("shutdown", None, id=2)
wait(lambda m: m.get("id") == 2)
send("exit", None)
sys.exit(server.wait())
