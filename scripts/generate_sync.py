"""Writes the blocking twin of the client's verbs, so that nobody has to keep two copies alike.

    python scripts/generate_sync.py           # write src/fenceline/client/sync_*.py
    python scripts/generate_sync.py --check   # exit 1 when it is not what it should be

The twin is the async source with `async` and `await` taken out and a few names replaced.
"""

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parent.parent / "src" / "fenceline" / "client"
#: Async source → blocking twin.
TWINS = {
    "app_verbs.py": "sync_app_verbs.py",
    "enqueuer.py": "sync_enqueuer.py",
    "groups.py": "sync_groups.py",
    "job.py": "sync_job.py",
    "jobs.py": "sync_jobs.py",
    "lanes.py": "sync_lanes.py",
    "schedules.py": "sync_schedules.py",
    "stats.py": "sync_stats.py",
    "system.py": "sync_system.py",
    "verbs.py": "sync_verbs.py",
    "watching.py": "sync_watching.py",
}

HEADER = '''"""The blocking twin of {source}.

Generated from {source} by scripts/generate_sync.py: change that file, not this one.
"""
'''

REPLACEMENTS = [
    (r"\basync def\b", "def"),
    (r"\bawait ", ""),
    (r"\basync with\b", "with"),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (
        r"client\.(enqueuer|groups|job|jobs|lanes|schedules|stats|system) import ([A-Z]\w+)",
        r"client.sync_\1 import Sync\2",
    ),
    (r"\bparts\.database\b", "parts.sync_database"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"runtime\.database import GetDatabase", "client.sync_database import GetSyncDatabase"),
    (r"\basync for\b", "for"),
    (r"client\.(enqueuer|watching|verbs) import", r"client.sync_\1 import"),
    (r"\bGetDatabase\b", "GetSyncDatabase"),
    (r"\b(AppVerbs|Job|Jobs|Lanes|System|Enqueuer|Group|Schedules|Statistics)\b(?=[\[(\",:])(?!\")", r"Sync\1"),
    (r"isinstance\(other, Job\)", "isinstance(other, SyncJob)"),
]


def generate(source: str) -> str:
    text = (CLIENT / source).read_text()
    text = re.sub(r'\A""".*?"""\n', HEADER.format(source=source), text, flags=re.DOTALL)
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    twin = str(CLIENT / TWINS[source])
    formatter = [sys.executable, "-m", "ruff", "--quiet"]
    for command in (
        ["check", "--select", "I", "--fix-only", "--stdin-filename", twin, "-"],
        ["format", "--stdin-filename", twin, "-"],
    ):
        text = subprocess.run([*formatter[:3], *command], input=text, capture_output=True, text=True, check=True).stdout
    return text


def main() -> int:
    status = 0
    for source, twin in TWINS.items():
        wanted = generate(source)
        if "--check" not in sys.argv[1:]:
            (CLIENT / twin).write_text(wanted)
        elif (CLIENT / twin).read_text() != wanted:
            sys.stderr.write(f"{twin} is not up to date: run python scripts/generate_sync.py\n")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
