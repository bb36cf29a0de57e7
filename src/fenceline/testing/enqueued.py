"""Whether a job was enqueued, and if not, what was."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fenceline.model.job import JobRecord

#: How many jobs a message shows.
MAX_SHOWN = 20


def matching(records: Sequence[JobRecord], args: Mapping[str, Any], facts: Mapping[str, Any]) -> list[JobRecord]:
    """The jobs whose args contain these and that have these facts. Raises TypeError for a fact that no job has."""
    unknown = sorted(facts.keys() - set(JobRecord.__dataclass_fields__))
    if unknown:
        raise TypeError(f"a job has no {' and no '.join(unknown)}: use the names of the job's record")
    return [record for record in records if _has(record.args, args) and _has_facts(record, facts)]


def _has(args: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(name in args and args[name] == value for name, value in wanted.items())


def _has_facts(record: JobRecord, facts: Mapping[str, Any]) -> bool:
    return all(getattr(record, name) == value for name, value in facts.items())


def explain_miss(
    kind: str,
    args: Mapping[str, Any],
    facts: Mapping[str, Any],
    *,
    count: int | None,
    found: Sequence[JobRecord],
    others: Sequence[JobRecord],
) -> str:
    """The message of a failed assertion."""
    wanted = "at least one" if count is None else "no" if count == 0 else f"exactly {count}"
    lines = [f"expected {wanted} job {_described(kind, args, facts)}, found {len(found)}"]
    if not others:
        return "\n".join([*lines, "nothing was enqueued at all"])
    lines.append("what was enqueued:" if found else "what was enqueued instead:")
    lines += [f"  {_shown(record, facts)}" for record in others[:MAX_SHOWN]]
    if len(others) > MAX_SHOWN:
        lines.append(f"  … and {len(others) - MAX_SHOWN} more")
    return "\n".join(lines)


def _described(kind: str, args: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    values = [f"{name}={value!r}" for name, value in facts.items()]
    return " ".join([kind, *([f"with args {_json(args)}"] if args else []), *values])


def _shown(record: JobRecord, facts: Mapping[str, Any]) -> str:
    values = [f"{name}={getattr(record, name)!r}" for name in facts]
    return " ".join([record.kind, _json(record.args), f"({record.status})", *values])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
