"""The steps of a storm, drawn by chance (see open_machine.py)."""

from collections.abc import Sequence
from random import Random
from typing import Any, LiteralString, TypeAlias

#: One user for a single transaction, one that takes its time, one who never leaves anything open.
AROUND, PATIENT, QUICK = USERS = range(3)

Step: TypeAlias = tuple[Any, ...]  # the name of a method, and its arguments

LANES = ("default", "narrow", "side")
ISOLATIONS = ("read committed", "read committed", "repeatable read", "serializable")
OUTCOMES = ("succeeded", "failed", "snoozed", "released", "cancelled")
OPTIONS: dict[str, Sequence[Any]] = {
    "lane": LANES,
    "priority": (-1, 0, 2),
    "run_in": (5, 20),
    "expires_in": (5, 60),
    "dedupe_key": ("d0", "d1"),
    "resource_lock": ("r0", "r1"),
    "key": ("k0", "k1"),
    "key_limit": (1, 2),
    "needs_approval": (True,),
    "after": range(100),
}

UNCLAIMED = ["queued", "scheduled", "waiting", "awaiting_approval"]
FINISHED = ["succeeded", "failed", "cancelled"]
#: What is done to one job, and the statuses that it is meant for.
VERBS: dict[str, tuple[LiteralString, list[str]]] = {
    "cancel": ("select fenceline.cancel_job(%s)", [*UNCLAIMED, "claimed"]),
    "kill": ("select fenceline.cancel_job(%s, p_force => true)", ["claimed"]),
    "approve": ("select fenceline.approve_job(%s)", ["awaiting_approval"]),
    "reject": ("select fenceline.reject_job(%s)", ["awaiting_approval"]),
    "reprioritise": ("select fenceline.reprioritise_job(%s, 3)", UNCLAIMED),
    "move": ("select fenceline.move_job(%s, 'narrow')", UNCLAIMED),
    "run_now": ("select fenceline.run_job_now(%s)", ["scheduled"]),
    "signal": ("select fenceline.signal_job(%s, 'news')", [*UNCLAIMED, "claimed"]),
    "erase": ("select fenceline.erase_args(%s)", FINISHED),
    "retry": ("select job_id from fenceline.retry_job(%s)", FINISHED),
    "delete": ("select fenceline.delete_job(%s)", FINISHED),
}
#: A job for verbs that would seldom find one.
MADE_FOR: dict[str, dict[str, Any]] = {
    "approve": {"needs_approval": True},
    "reject": {"needs_approval": True},
    "run_now": {"run_in": 20},
    "move": {},
}
CHANGES: list[dict[str, Any]] = [
    *({"slots": slots} for slots in (1, 3, None)),
    *({"enabled": enabled} for enabled in (True, True, False)),
    *({"fair": fair} for fair in (True, False)),
    *({"ageing_seconds": seconds} for seconds in (60, None)),
]


def draw_enqueue(chance: Random, lane: str) -> Step:
    options = {name: chance.choice(OPTIONS[name]) for name in chance.sample(list(OPTIONS), chance.randrange(4))}
    return chance.choice(
        (
            ("enqueue", chance.choice(("work", "other")), options),
            ("enqueue", chance.choice(("work", "other")), options | {"lane": lane}),
            ("enqueue_many", chance.randrange(1, 4)),
        )
    )


def draw_lane_verb(chance: Random, lane: str) -> Step:
    kinds = chance.choice(([], ["work"], ["other"], ["work", "other"]))
    return chance.choice(
        (
            ("set_lane", chance.choice((lane, *LANES)), {"kinds": kinds}),
            ("set_lane", chance.choice((lane, *LANES)), chance.choice(CHANGES)),
            ("delete_lane", lane),
        )
    )


def draw_verb(chance: Random, lane: str) -> Step:
    """What a user may do."""
    pick = chance.randrange(10**6)
    drawn = (
        draw_enqueue(chance, lane),
        draw_lane_verb(chance, lane),
        ("change", chance.choice(list(VERBS)), pick, chance.random() < 0.8),
        ("finish_in_transaction", pick, chance.choice(OUTCOMES)),
        ("claim_in_transaction", chance.choice(LANES), chance.randrange(1, 4)),
        ("drain_system", chance.random() < 0.3),
    )
    return chance.choices(drawn, (6, 6, 10, 4, 3, 1))[0]


def draw_step(chance: Random) -> Step:
    """What may happen."""
    isolation, ends_well = chance.choice(ISOLATIONS), chance.random() < 0.7
    new = f"lane{chance.randrange(10**6)}"
    steps: list[Step] = [
        ("begin", PATIENT, isolation, chance.random() < 0.5),
        ("do", PATIENT, draw_verb(chance, "side")),
        ("end", PATIENT, ends_well),
        ("do", QUICK, draw_verb(chance, "side")),
        ("do_around", isolation, *(draw_verb(chance, "side") for _ in range(3)), ends_well),
        ("do_around_lane", new, isolation, *(draw_lane_verb(chance, new) for _ in range(2)), ends_well),
        ("claim", chance.choice(LANES), chance.randrange(1, 5)),
        ("finish", chance.randrange(10**6), chance.choice(OUTCOMES)),
        ("maintain", chance.random() < 0.7),
        ("restore_lanes",),
        ("pass_time", chance.choice((1, 5, 20, 40))),
        ("set_clock", chance.choice((-3600, -30, 30, 3600))),
    ]
    return chance.choices(steps, (2, 3, 2, 2, 6, 3, 5, 2, 3, 1, 2, 1))[0]
