"""Writes the blocking twin of the client's verbs, so that nobody has to keep two copies alike.

    python scripts/generate_sync.py           # write src/fenceline/client/sync_*verbs.py
    python scripts/generate_sync.py --check   # exit 1 when one is not what it should be

The twin is the async source with `async` and `await` taken out and a few names replaced.
"""

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parent.parent / "src" / "fenceline" / "client"
SOURCES = [CLIENT / "verbs.py", CLIENT / "schedule_verbs.py"]

HEADER = '''"""What can be done with {subject}, from blocking code.

Generated from {source} by scripts/generate_sync.py: change that file, not this one.
"""
'''

REPLACEMENTS = [
    (r"\basync def\b", "def"),
    (r"\bawait ", ""),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"client\.verbs import Job\b", "client.sync_verbs import SyncJob"),
    (r"client\.caller import CallerOf", "client.sync_caller import SyncCallerOf"),
    (r"(?<!Sync)\bCallerOf\b", "SyncCallerOf"),
    (r"\b(Job|Jobs|Lanes|System|Enqueuer|Schedules)\b(?=[\[(\",:])(?!\")", r"Sync\1"),
    (r"isinstance\(other, Job\)", "isinstance(other, SyncJob)"),
]


def twin_of(source: Path) -> Path:
    return source.with_name(f"sync_{source.name}")


def generate(source: Path) -> str:
    docstring, text = re.fullmatch(r'"""(.*?)"""\n(.*)', source.read_text(), flags=re.DOTALL).groups()
    subject = re.match(r"What can be done with (.*), asynchronously\.", docstring)[1]
    text = HEADER.format(subject=subject, source=source.name) + text
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    twin = str(twin_of(source))
    for command in (
        ["check", "--select", "I", "--fix-only", "--stdin-filename", twin, "-"],
        ["format", "--stdin-filename", twin, "-"],
    ):
        text = subprocess.run(
            [sys.executable, "-m", "ruff", *command], input=text, capture_output=True, text=True, check=True
        ).stdout
    return text


def main() -> int:
    for source in SOURCES:
        twin, wanted = twin_of(source), generate(source)
        if "--check" not in sys.argv[1:]:
            twin.write_text(wanted)
        elif twin.read_text() != wanted:
            sys.stderr.write(f"{twin} is not up to date: run python scripts/generate_sync.py\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
