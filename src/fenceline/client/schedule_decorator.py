"""The settings of schedules, and those that an app declares in its code."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, get_args

from fenceline.client.arguments import encode_plain
from fenceline.client.enqueue_options import EnqueueOptions, encode_options
from fenceline.client.handler_parts import HandlerParts, handler_parts
from fenceline.database import calls
from fenceline.errors import InvalidSchedule
from fenceline.model.cron import read_timing, read_zone
from fenceline.model.schedule import Misfire
from fenceline.model.window import read_windows

if TYPE_CHECKING:
    from fenceline.client.app_parts import AppParts
    from fenceline.client.handler import Handler
    from fenceline.database.call import RunCall


class ScheduleSettings(TypedDict, total=False):
    """Every setting of a schedule. None undoes an operator's setting: then that in the code counts, or the default."""

    kind: str | None
    """The kind of job that the schedule enqueues."""
    args: Mapping[str, Any] | None
    """Args of the jobs that the schedule enqueues."""
    options: EnqueueOptions | None
    """Enqueue options of these jobs, such as `lane` or `key`."""
    cron: str | None
    """Five fields, in the schedule's timezone. Either this or `every`."""
    every: int | None
    """Seconds between ticks, which fall on whole multiples since 1970."""
    timezone: str | None
    """The time zone of `cron` and `windows`. Default: UTC."""
    misfire: Misfire | None
    """What to do about missed ticks: "skip" them, run "once" for all (the default), or run "all"."""
    misfire_limit: int | None
    """With "all": how many of the latest ticks to run at most. Default: 10."""
    windows: Sequence[Mapping[str, str]] | None
    """Times at which it does not fire: `{"days": "mon-fri", "from": "22:00", "to": "04:00"}`."""
    paused: bool | None
    """It does not fire until it is resumed."""


def encode_settings(settings: ScheduleSettings) -> dict[str, Any]:
    """The settings as JSON values. Raises InvalidSchedule for any that is wrong in itself."""
    try:
        cron, every, timezone = settings.get("cron"), settings.get("every"), settings.get("timezone")
        if cron is not None or every is not None:
            read_timing(cron, every, timezone or "UTC")
        elif timezone is not None:
            read_zone(timezone)
        if settings.get("windows") is not None:
            read_windows(settings["windows"])
    except ValueError as error:
        raise InvalidSchedule(str(error)) from error
    if settings.get("misfire") not in (None, *get_args(Misfire)):
        raise InvalidSchedule(f"misfire {settings.get('misfire')!r} is unknown: use {', '.join(get_args(Misfire))}")
    encoded: dict[str, Any] = dict(settings)
    if (args := settings.get("args")) is not None:
        encoded["args"] = json.loads(encode_plain(settings.get("kind") or "of the schedule", args))
    if (options := settings.get("options")) is not None:
        if not options.keys().isdisjoint({"connection", "actor"}):
            raise InvalidSchedule(
                "connection= and actor= cannot be used with a schedule: its jobs are made by workers and servers"
            )
        encoded["options"] = json.loads(encode_options(options))
    if (windows := settings.get("windows")) is not None:
        encoded["windows"] = [dict(window) for window in windows]
    return encoded


class Declarations:
    """The schedules in an app's code, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, ScheduleSettings] = {}

    def add(self, name: str, settings: ScheduleSettings) -> None:
        """Raises InvalidSchedule."""
        if name in self._by_name:
            raise InvalidSchedule(f"schedule {name!r} is declared twice: give one of them another name=")
        self._by_name[name] = settings

    def encoded(self, handlers: "Mapping[str, Handler[..., Any]]") -> dict[str, dict[str, Any]]:
        """For the database. Args are checked against the handlers, all known by now. Raises InvalidArgs."""
        return {name: self._encode(settings, handlers) for name, settings in self._by_name.items()}

    @staticmethod
    def _encode(settings: ScheduleSettings, handlers: "Mapping[str, Handler[..., Any]]") -> dict[str, Any]:
        handler = handlers.get(settings.get("kind") or "")
        if handler is None:
            return encode_settings(settings)
        args = json.loads(handler_parts(handler).arguments.encode(settings.get("args") or {}))
        return encode_settings({**settings, "args": args})


HandlerT = TypeVar("HandlerT", bound="Handler[..., Any]")


class ScheduleDecorator:
    """`@app.schedule(...)`."""

    def __init__(self, declarations: Declarations, name: str | None, settings: ScheduleSettings) -> None:
        """Raises InvalidSchedule, so that a mistake is found when the program is loaded."""
        if settings.get("cron") is None and settings.get("every") is None:
            raise InvalidSchedule("a schedule needs either a cron expression or every=")
        encode_settings({**settings, "args": None})  # args are checked when the handler is known
        self._declarations = declarations
        self._name = name
        self._settings = settings

    def __call__(self, handler: HandlerT) -> HandlerT:
        if not isinstance(getattr(handler, "_parts", None), HandlerParts):
            raise TypeError(f"@app.schedule(...) stands above @app.job, which makes a handler of {handler!r}")
        self._declarations.add(self._name or handler.kind, {**self._settings, "kind": handler.kind})
        return handler


async def declare_schedules(parts: "AppParts", call: "RunCall | None" = None) -> None:
    """Register the schedules in an app's code with its database; `call` sends it, instead of the app itself. Raises
    InvalidSchedule, InvalidArgs.
    """
    declared = parts.declared_schedules.encoded(parts.handlers)
    if declared:
        await (call or parts.database().call)(calls.schedules.declare_schedules(declared))
