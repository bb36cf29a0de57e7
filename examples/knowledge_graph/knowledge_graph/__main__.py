"""`make up`: the embedded database of this folder with the graph's tables, a server and a worker, until Ctrl-C."""

import contextlib
import subprocess
import sys

from knowledge_graph.application import app, set_up

PORT = "8360"
FENCELINE = (sys.executable, "-m", "fenceline")
APP = "knowledge_graph.jobs:app"

GREETING = f"""
dashboard  http://127.0.0.1:{PORT}/
token      fenceline token create --role fleet_operator --name olga (or producer, operator, viewer)
ingest     fenceline enqueue ingestion --args '{{"source": "note", "text": "graphs have nodes and edges"}}'
approve    fenceline approval --by-anybody; fenceline jobs approve …
operate    fenceline top; fenceline lanes drain maintenance; fenceline lanes set interactive --slots 1
"""


def main() -> None:
    set_up()
    print(GREETING, flush=True)
    programs = [
        subprocess.Popen([*FENCELINE, "worker", APP, "--grace", "5"]),
        subprocess.Popen([*FENCELINE, "server", APP, "--port", PORT]),
    ]
    with contextlib.suppress(KeyboardInterrupt):  # the terminal tells all three
        programs[0].wait()
    for program in programs:
        program.terminate()
        program.wait()
    app.sync.close()


if __name__ == "__main__":
    main()
