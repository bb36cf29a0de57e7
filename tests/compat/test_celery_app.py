"""An app's configuration: what is read, what need not be said, and what is refused."""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.compat.conftest import Drain
from tests.support.patience import seconds_left

from fenceline import Unsupported
from fenceline.client.app_parts import app_parts
from fenceline.client.application import AppNotFound, load_app
from fenceline.compat.celery import Celery
from fenceline.compat.celery.schedules import crontab


def test_settings_that_matter_are_read_and_others_need_not_be_said(celery: Celery) -> None:
    celery.conf.update(result_expires=3600, task_acks_late=True, worker_prefetch_multiplier=1, task_always_eager=False)
    celery.conf["task_serializer"] = "json"
    for name, value, says in [
        ("task_serializer", "pickle", "args and results are JSON"),
        ("task_always_eager", True, "FENCELINE_DELIVERY=inline"),
        ("task_default_rate_limit", "1/s", "a rate belongs to a lane"),
        ("task_flavour", 1, "is not a known setting"),
    ]:
        with pytest.raises(Unsupported, match=says):
            celery.conf[name] = value
    celery.conf.task_routes = [print]
    with pytest.raises(Unsupported, match="task_routes must be a dict"):
        celery.send_task("anything")


def test_settings_of_django_are_read_when_they_are_there(
    celery: Celery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    celery.config_from_object("shop_settings:settings", namespace="CELERY")
    (tmp_path / "shop_settings.py").write_text(
        "class settings:\n"
        "    CELERY_TASK_ROUTES = {'a': 'mail'}\n"
        "    CELERY_TIMEZONE = 'Asia/Tokyo'\n"
        "    DEBUG = True\n"
    )
    assert celery.send_task("a").job.get().lane == "mail"
    assert str(celery.conf.zone) == "Asia/Tokyo"
    sys.modules.pop("shop_settings")


def test_a_broker_of_the_settings_is_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCELINE_DSN", "postgresql://elsewhere/queue")
    given = {"broker_url": "postgres://settings/queue"}
    assert Celery("settings", config_source=given).sync.dsn() == "postgres://settings/queue"
    said = Celery("said", broker="postgresql://said/queue", config_source=given)
    assert said.sync.dsn() == "postgresql://said/queue"
    other = Celery("other", broker="redis://localhost/0")
    assert other.sync.dsn() == "postgresql://elsewhere/queue"
    for app in (said, other):
        app.sync.close()


def test_results_are_not_kept_where_the_app_says_so(celery: Celery, drain: Drain) -> None:
    celery.conf.task_ignore_result = True

    @celery.task(name="kept", ignore_result=False)
    def kept() -> int:
        return 1

    @celery.task(name="lost")
    def lost() -> int:
        return 1

    results = [kept.delay(), lost.delay()]
    drain()
    assert [result.get(seconds_left()) for result in results] == [1, None]


def test_a_worker_imports_what_the_app_names(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "proj"
    (project / "inner").mkdir(parents=True)
    (project / "inner" / "__init__.py").touch()
    (project / "__init__.py").write_text(
        "from fenceline.compat.celery import Celery\n"
        f"app = Celery('proj', broker={database!r}, include=['proj.tasks'])\n"
        "app.autodiscover_tasks(['proj.inner', 'proj'])\n"
        "app.conf.beat_schedule = {\n"
        "    'often': {'task': 'proj.tasks.first', 'schedule': 30.0, 'args': (1,)},\n"
        "}\n"
    )
    (project / "tasks.py").write_text("from proj import app\n\n@app.task\ndef first(number):\n    return number\n")
    (project / "inner" / "tasks.py").write_text(
        "from fenceline.compat.celery import shared_task\n\n@shared_task\ndef second():\n    return 2\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    app = load_app("proj:app")
    assert {"proj.tasks.first", "proj.inner.tasks.second"} <= app_parts(app).handlers.keys()
    declared: dict[str, Any] = app_parts(app).declared_schedules.encoded(app_parts(app).handlers)
    assert (declared["often"]["every"], declared["often"]["args"]) == (30, {"args": [1], "kwargs": {}})
    (project / "tasks.py").write_text("import nowhere\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == "proj"]:
        del sys.modules[name]
    with pytest.raises(AppNotFound, match="the handlers of proj cannot be imported: ModuleNotFoundError"):
        load_app("proj:app")


def test_schedules_are_those_of_cron(celery: Celery) -> None:
    celery.conf.timezone = "Europe/Berlin"
    celery.conf.beat_schedule = {
        "morning": {
            "task": "a",
            "schedule": crontab(hour=[8, 7], minute=30, day_of_week="mon-fri"),
            "kwargs": {"x": 1},
        },
        "hourly": {"task": "b", "schedule": timedelta(hours=1), "options": {"queue": "mail", "priority": 3}},
    }
    app_parts(celery).import_handlers()
    app_parts(celery).import_handlers()  # whoever loads an app twice declares them once
    declared = app_parts(celery).declared_schedules.encoded(app_parts(celery).handlers)
    assert (declared["morning"]["cron"], declared["morning"]["timezone"]) == ("30 7,8 * * mon-fri", "Europe/Berlin")
    assert declared["morning"]["args"] == {"args": [], "kwargs": {"x": 1}}
    assert (declared["hourly"]["every"], declared["hourly"]["options"]) == (3600, {"lane": "mail", "priority": 3})

    async def start() -> list[str]:
        for hook in app_parts(celery).startup_hooks:
            await hook()
        names = [lane.name for lane in await celery.lanes.list()]
        await celery.close()
        return names

    assert "mail" in asyncio.run(start())  # the schedule's jobs have somewhere to go


@pytest.mark.parametrize(
    "entry, says",
    [
        ({"schedule": 0.5}, "use whole seconds"),
        ({"schedule": 60, "options": {"expires": 30}}, "cannot take expires: it would be the same for all"),
        ({"schedule": 60, "task": "fleeting"}, "cannot take expires: it would be the same for all"),
    ],
)
def test_schedules_that_cannot_be_kept_are_refused(celery: Celery, entry: dict[str, Any], says: str) -> None:
    @celery.task(name="fleeting", expires=30)
    def fleeting() -> None: ...

    celery.conf.beat_schedule = {"wrong": {"task": "a", **entry}}
    with pytest.raises(Unsupported, match=says):
        app_parts(celery).import_handlers()
    with pytest.raises(Unsupported, match="Celery wants both to fit"):
        crontab(day_of_month=1, day_of_week=1)
