"""Chains, groups and chords are jobs that wait for jobs, enqueued together or not at all."""

from typing import Any

import pytest
from tests.compat.conftest import Drain
from tests.support.patience import seconds_left

from fenceline import Unsupported
from fenceline.compat.celery import Celery, Signature, chain, chord, group


@pytest.fixture
def tasks(celery: Celery) -> dict[str, Any]:
    @celery.task(name="add")
    def add(x: int, y: int) -> int:
        return x + y

    @celery.task(name="total")
    def total(numbers: list[int], more: int = 0) -> int:
        return sum(numbers) + more

    @celery.task(name="word")
    def word() -> str:
        return "word"

    return {"add": add, "total": total, "word": word}


def test_chords_in_chains_and_chains_in_chords(celery: Celery, tasks: dict[str, Any], drain: Drain) -> None:
    add, total, word = tasks["add"], tasks["total"], tasks["word"]
    header = [add.s(1, 1) | add.s(10), add.s(2, 2), chord([add.s(1, 2), add.s(3, 4)], total.s())]
    body = total.s(more=1000) | add.s(1)
    nested = chord(header)(body)
    twice = (group(add.s(1, 1), add.s(2, 2)) | group(total.s(), total.s(more=1)) | total.s()).delay()
    immutable = chain(add.s(1, 1), word.si(), group(word.si())).delay()
    empty = chord([], total.s(7)).apply_async()
    nothing_first = (group([]) | total.s(8)).delay()
    partial = chain([add.s(1), add.s(2)]).delay(10)
    drain()
    assert nested.get(seconds_left()) == (12 + 4 + 10) + 1000 + 1
    assert twice.get(seconds_left()) == 6 + 7
    assert immutable.get(seconds_left()) == ["word"]
    assert (empty.get(seconds_left()), nothing_first.get(seconds_left()), partial.get(seconds_left())) == (7, 8, 13)


def test_a_group_is_seen_as_a_whole(celery: Celery, tasks: dict[str, Any], drain: Drain) -> None:
    together = group(tasks["add"].s(number) for number in range(3))(100)
    assert (len(together), together.ready(), together.waiting(), together.completed_count()) == (3, False, True, 0)
    assert {result.job.get().group for result in together} == {together.id}
    drain()
    assert together.join(seconds_left()) == [100, 101, 102]
    assert (together.successful(), together.failed(), together.completed_count()) == (True, False, 3)
    assert together[1].get(seconds_left()) == 101
    assert list(group([]).delay()) == []
    revoked = group(tasks["add"].s(1, 1).set(countdown=600)).delay()
    revoked.revoke()
    assert revoked[0].state == "REVOKED"


def test_results_come_in_the_order_of_the_header_whatever_ends_first(
    celery: Celery, tasks: dict[str, Any], drain: Drain
) -> None:
    @celery.task(name="listed")
    def listed(results: list[int]) -> list[int]:
        return results

    add = tasks["add"]
    # The chains make the jobs of later header tasks older than the ends of earlier ones.
    header = [add.s(1, 0) | add.s(0) | add.s(0), add.s(2, 0), add.s(3, 0) | add.s(0), add.s(4, 0).set(priority=5)]
    result = chord(header)(listed.s())
    drain()
    assert result.get(seconds_left()) == [1, 2, 3, 4]


def test_all_of_a_canvas_is_enqueued_or_nothing(celery: Celery, tasks: dict[str, Any]) -> None:
    add = tasks["add"]
    with pytest.raises(TypeError, match="arguments of add do not fit"):
        (add.s(1, 1) | add.s(1, 1)).delay()  # with the result before it, that is one too many
    with pytest.raises(Unsupported, match="a group in a group"):
        group(group(add.s(1, 1)), add.s(1, 1)).delay()
    with pytest.raises(Unsupported, match="a chord takes no options"):
        chord([add.s(1, 1)], add.s(1)).apply_async(countdown=3)
    with pytest.raises(TypeError, match="the chord has no body"):
        chord([add.s(1, 1)])()
    with pytest.raises(TypeError, match="3 is not a signature"):
        chain(add.s(1, 1), 3)
    assert celery.sync.jobs.list().items == []


def test_a_signature_shows_what_it_is_and_can_be_changed(celery: Celery, tasks: dict[str, Any]) -> None:
    signature: Signature = tasks["add"].s(1, y=2).set(countdown=60, immutable=True)
    assert repr(signature) == "add(1, y=2)"
    assert signature.clone((5,)).args == (1,)
    record = signature.delay(7).job.get()
    assert (record.args, record.status) == ({"args": [1], "kwargs": {"y": 2}}, "scheduled")
