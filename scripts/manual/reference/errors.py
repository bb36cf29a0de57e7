"""Every error code: what it means, and what to do about it."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path

from scripts.manual.reference.markdown import code, table

from fenceline import errors
from fenceline.errors.sqlstates import SQLSTATES
from fenceline.server.problems import PROBLEMS

CURES: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("cures.toml").read_text("utf-8"))

#: What became of a job or an attempt: `error.code`.
ENDS = {
    "error": "The handler raised an exception.",
    "timeout": "An attempt took longer than its `timeout`.",
    "lost": "Its worker stopped reporting until the lease expired, and no attempts were left.",
    "crashed": "The process that ran it died.",
    "quarantined": "It killed its process three times while it ran alone.",
    "stale": "It showed no activity for longer than its lane's `stale_timeout_seconds`.",
    "memory_limit": "An isolated handler used more memory than `memory_limit_mb`.",
    "shutdown": "Its worker had to stop before the handler ended.",
    "cancelled": "It was cancelled, by a person or by its handler.",
    "rejected": "Somebody rejected it instead of approving it.",
    "expired": "It had not started by its `expires_at`.",
    "dependency_failed": "A job that it waited for did not succeed.",
    "plan_hash_mismatch": "Its snapshot is not the one that `requires_hash` names, or its configuration has changed.",
    "superseded": "A newer version of the resource it guards already exists.",
    "credentials": "The provider returned no credentials for its identity.",
    "circuit_open": "A webhook delivery: its receiver has failed repeatedly and is not called for a while.",
    "http_status": "A webhook delivery: its receiver answered with an error.",
}
#: Ends that have the code of an exception: refused args, steps, sizes.
SHARED = ("invalid_args", "step_mismatch", "too_large", "invalid_json", "lock_cycle")
#: In code, after the word `code`: what an end is called.
SAID = re.compile(r"""(?:\bcode(?:: str)?["']?\s*[,:=]\s*|CANCELLED, )["']([a-z_]+)["']""")


def codes_in_source() -> set[str]:
    """What ends are called where they are made."""
    source = Path(str(files("fenceline")))
    places = ("context", "engine", "worker", "sql/functions", "server/webhook_delivery.py")
    paths = [
        path for place in places for path in ((source / place).rglob("*.*") if "." not in place else [source / place])
    ]
    text = "\n".join(path.read_text("utf-8") for path in paths if path.suffix in {".py", ".sql"})
    return set(SAID.findall(text)) - {"message"}  # names of members, one after the other


def refusals() -> dict[str, tuple[str, type[errors.RefusedError]]]:
    """Code → SQLSTATE and exception."""
    return {"refused": ("", errors.RefusedError)} | {kind.code: (state, kind) for state, kind in SQLSTATES.items()}


def cause(kind: type[BaseException]) -> str:
    return " ".join((kind.__doc__ or "").split())


def all_exceptions() -> list[type[errors.FencelineError]]:
    found = [kind for _name, kind in sorted(vars(errors).items()) if isinstance(kind, type)]
    return [kind for kind in found if issubclass(kind, errors.FencelineError)]


def exceptions() -> list[type[errors.FencelineError]]:
    """Those with a code that are no refusals."""
    return [k for k in all_exceptions() if hasattr(k, "code") and not issubclass(k, errors.RefusedError)]


def without_code() -> list[type[errors.FencelineError]]:
    return [kind for kind in all_exceptions() if not hasattr(kind, "code")]


def stacked(*names: str) -> str:
    """Names of one thing, one above the other."""
    return "<br>".join(code(name) for name in names if name)


def http_cure(name: str) -> str:
    return CURES["http"].get(name) or CURES["refusals"].get(name, "")


def page() -> str:
    refused = [
        [stacked(name, kind.__name__, state), cause(kind), CURES["refusals"].get(name, "")]
        for name, (state, kind) in refusals().items()
    ]
    coded = [
        [
            stacked(getattr(kind, "code", ""), kind.__name__),
            cause(kind),
            CURES["exceptions"].get(getattr(kind, "code", ""), ""),
        ]
        for kind in exceptions()
    ]
    ends = [[code(name), text, CURES["jobs"].get(name, "")] for name, text in ENDS.items()]
    answers = [[str(status), code(name), text, http_cure(name)] for name, (status, text) in PROBLEMS.items()]
    return f"""# Errors

Every error has a code, the same in Python, SQL, HTTP and on the command line. The message names the offending value and what to do; this page explains more.

## Refusals

The state machine refused a call, and nothing was changed. You see this as an exception from `fenceline.errors` (a `RefusedError`) in Python, as a SQLSTATE in SQL, and as `code` or
`reason` over HTTP.

{table(["code, exception, SQLSTATE", "cause", "cure"], refused)}
## Other exceptions

{table(["code, exception", "cause", "cure"], coded)}
These have no code. They mean that the database could not be asked at all, or report how a job ended:

{table(["exception", "cause"], [[code(kind.__name__), cause(kind)] for kind in without_code()])}
## How a job ended

`error.code` of a failed or cancelled job, and of its attempts. A job whose handler raised one of the refusals above has that code, for example
{", ".join(map(code, SHARED))}.

{table(["code", "cause", "cure"], ends)}
## Over HTTP

`application/problem+json` with a `code`. None of them has a side effect.

{table(["status", "code", "cause", "cure"], answers)}
"""
