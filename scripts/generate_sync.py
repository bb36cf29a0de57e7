"""Writes the blocking twin of the client's verbs, so that nobody has to keep two copies alike.

    python scripts/generate_sync.py           # write src/fenceline/client/sync_verbs.py
    python scripts/generate_sync.py --check   # exit 1 when it is not what it should be

The twin is the async source with `async` and `await` taken out and a few names replaced.
"""

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parent.parent / "src" / "fenceline" / "client"
SOURCE = CLIENT / "verbs.py"
TWIN = CLIENT / "sync_verbs.py"

HEADER = '''"""What can be done with jobs and lanes, from blocking code.

Generated from verbs.py by scripts/generate_sync.py: change that file, not this one.
"""
'''

REPLACEMENTS = [
    (r'\A""".*?"""\n', HEADER.replace("\\", "\\\\")),
    (r"\basync def\b", "def"),
    (r"\bawait ", ""),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"client\.caller import CallerOf", "client.sync_caller import SyncCallerOf"),
    (r"(?<!Sync)\bCallerOf\b", "SyncCallerOf"),
    (r"\b(Job|Jobs|Lanes|System|Enqueuer)\b(?=[\[(\",:])(?!\")", r"Sync\1"),
    (r"isinstance\(other, Job\)", "isinstance(other, SyncJob)"),
]


def generate() -> str:
    text = SOURCE.read_text()
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text, flags=re.DOTALL if pattern.startswith(r"\A") else 0)
    formatter = [sys.executable, "-m", "ruff", "--quiet"]
    for command in (
        ["check", "--select", "I", "--fix-only", "--stdin-filename", str(TWIN), "-"],
        ["format", "--stdin-filename", str(TWIN), "-"],
    ):
        text = subprocess.run([*formatter[:3], *command], input=text, capture_output=True, text=True, check=True).stdout
    return text


def main() -> int:
    wanted = generate()
    if "--check" in sys.argv[1:]:
        if TWIN.read_text() == wanted:
            return 0
        sys.stderr.write(f"{TWIN} is not up to date: run python scripts/generate_sync.py\n")
        return 1
    TWIN.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
