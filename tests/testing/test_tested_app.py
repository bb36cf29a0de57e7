"""The app under test is the app itself: with what its own class adds, and as it was when the test has ended."""

from fenceline import Fenceline
from fenceline.compat.celery import Celery
from fenceline.testing import TestedApp
from fenceline.testing.tested_app import under_test


def test_a_class_of_its_own_stays(dsn: str) -> None:
    app = Celery("shop")

    @app.task(name="add")
    def add(x: int, y: int) -> int:
        return x + y

    with under_test(app, dsn) as tested:
        assert isinstance(tested, TestedApp)
        result = app.send_task("add", (1, 2))
        assert tested.sync.drain() == 1
        assert add.delay(3, 4).state == "PENDING"
        assert app.AsyncResult(result.id).get(10) == 3
    assert type(app) is Celery


def test_a_plain_one_is_plain_again(dsn: str) -> None:
    app = Fenceline("postgresql://elsewhere/shop")
    with under_test(app, dsn):
        assert app.sync.dsn() == dsn
    assert type(app) is Fenceline
    assert app.sync.dsn() == "postgresql://elsewhere/shop"
