"""A remote agent: takes a question, answers later by posting to the callback that came with it.

`python -m agent_gateway.agents NAME PORT SECONDS`. It knows nothing of the queue.
"""

import contextlib
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx


class Agent(ThreadingHTTPServer):
    def __init__(self, name: str, port: int, seconds: float) -> None:
        super().__init__(("127.0.0.1", port), Requests)
        self.name, self.seconds = name, seconds

    def answer(self, task: dict[str, str]) -> None:
        """After a while; again while nobody is there to hear it, until it is heard or refused."""
        time.sleep(self.seconds)
        said = {"answer": f"{self.name} says: {task['question'][::-1]}"}
        for _ in range(60):
            with contextlib.suppress(httpx.TransportError):
                httpx.post(task["callback"], json=said)
                return
            time.sleep(1.0)


class Requests(BaseHTTPRequestHandler):
    server: Agent

    def do_POST(self) -> None:
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        threading.Thread(target=self.server.answer, args=[task], daemon=True).start()
        self._send(202, {"accepted": True})

    def do_GET(self) -> None:
        self._send(200, [f"{self.server.name}-small", f"{self.server.name}-large"])

    def _send(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None: ...


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        Agent(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])).serve_forever()
