"""Schedules: what enqueues jobs by the clock. What is said here is stronger than what stands in the code."""

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import ConfigDict, Field, JsonValue, StrictBool, StrictInt, StrictStr

from fenceline.client.schedule_decorator import ScheduleSettings, encode_settings
from fenceline.database import calls
from fenceline.database.call import page_of, texts_of
from fenceline.model.identity import Identity
from fenceline.model.schedule import Schedule, Tick
from fenceline.server.filters import Cursor, Limit, read_skipped
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest, json_response, list_response, operation, router
from fenceline.server.schemas import AT, ID, Body, JobOptionsBody, JobView, with_role
from fenceline.server.views import View, examples, list_of, shows

routes = router("schedules")

_WITH_BODY = ("too_large", "unsupported_media_type", "invalid")
_SCHEDULE: dict[str, JsonValue] = {
    "name": "report", "kind": "report", "args": {}, "options": {"tenant": "default"}, "cron": "0 3 * * *",
    "every": None, "timezone": "Europe/Berlin", "misfire": "once", "misfire_limit": 10, "windows": [],
    "paused": False, "tenant": "default", "source": "operator", "overrides": {"cron": "0 3 * * *"}, "next_at": AT,
    "last_at": None, "last_job": None, "error": None, "created_at": AT, "changed_at": AT, "changed_by": "ann",
    "declared_at": None,
}  # fmt: skip


class WindowBody(Body):
    """When it does not fire: on these days, from one time to another in the schedule's zone."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"days": "mon-fri", "from": "22:00", "to": "04:00"}]}, populate_by_name=False
    )

    days: StrictStr | None = None
    from_: Annotated[StrictStr, Field(alias="from")]
    to: StrictStr


class ScheduleBody(Body):
    """Either `cron`, five fields in `timezone`, or `every` so many seconds. What is left out stays as it is; null takes
    back what was said here.
    """

    model_config = examples({"cron": "0 4 * * *", "paused": False})

    kind: StrictStr | None = None
    args: dict[str, Any] | None = None
    options: JobOptionsBody | None = None
    cron: StrictStr | None = None
    every: StrictInt | None = None
    timezone: StrictStr | None = None
    misfire: Literal["skip", "once", "all"] | None = None
    misfire_limit: StrictInt | None = None
    windows: list[WindowBody] | None = None
    paused: StrictBool | None = None

    def settings(self, identity: Identity) -> dict[str, Any]:
        """As set_schedule takes them. Raises InvalidSchedule."""
        values = self.model_dump(exclude_unset=True, by_alias=True, exclude={"name"})
        if values.get("windows") is not None:
            values["windows"] = [
                {key: value for key, value in window.items() if value is not None} for window in values["windows"]
            ]
        options = values.pop("options", ...)
        settings = encode_settings(ScheduleSettings(**values))  # type: ignore[typeddict-item]  # names are the body's
        if options is not ...:
            settings["options"] = with_role(options, identity)
        return settings


class NewScheduleBody(ScheduleBody):
    model_config = examples({"name": "report", "kind": "report", "cron": "0 3 * * *", "timezone": "Europe/Berlin"})

    name: StrictStr


@shows(Schedule, without=("revision", "settled_at", "now"))
class ScheduleView(View):
    model_config = examples(_SCHEDULE, title="Schedule")


ScheduleList = list_of(ScheduleView, has_pages=True)


@shows(Tick)
class TickView(View):
    model_config = examples(
        {"tick_at": AT, "outcome": "fired", "decided_at": AT, "from_at": None, "job": ID, "error": None},
        title="Tick",
    )


TickList = list_of(TickView)


@routes.get("/v1/schedules", **operation("schedules:manage", model=ScheduleList))
async def list_schedules(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Schedules that you may see, by name. A page has at most about 4 MiB."""
    call = calls.schedules.schedules_in_reach(request.identity)
    found, following = await request.database.call(page_of(call, read_skipped(cursor)))
    return list_response(found, following)


@routes.post("/v1/schedules", **operation("schedules:manage", "conflict", *_WITH_BODY, status=201, model=ScheduleView))
async def create_schedule(request: ApiRequest, body: NewScheduleBody) -> Response:
    """Create a schedule; it and its jobs belong to your tenant."""
    made = await request.database.call(
        calls.schedules.act_on_schedule(body.name, "create", request.identity, body.settings(request.identity))
    )
    return json_response(made, 201, {"Location": f"/v1/schedules/{body.name}"})


@routes.get("/v1/schedules/{name}", **operation("schedules:manage", "not_found", "invalid", model=ScheduleView))
async def get_schedule(request: ApiRequest, name: str) -> Response:
    """One schedule."""
    return json_response(await _schedule(request, name))


@routes.patch("/v1/schedules/{name}", **operation("schedules:manage", "not_found", *_WITH_BODY, model=ScheduleView))
async def change_schedule(request: ApiRequest, name: str, body: ScheduleBody) -> Response:
    """Change a schedule; `paused` pauses and resumes it."""
    changed = await request.database.call(
        calls.schedules.act_on_schedule(name, "change", request.identity, body.settings(request.identity))
    )
    return json_response(changed)


@routes.delete("/v1/schedules/{name}", **operation("schedules:manage", "not_found", "invalid", status=204))
async def delete_schedule(request: ApiRequest, name: str) -> Response:
    """Delete a schedule; one that is declared in code returns when its worker starts."""
    await request.database.call(calls.schedules.act_on_schedule(name, "delete", request.identity))
    return Response(status_code=204)


@routes.post(
    "/v1/schedules/{name}/run",
    **operation("schedules:manage", "not_found", "resource_locked", "invalid", status=202, model=JobView),
)
async def run_schedule(request: ApiRequest, name: str) -> Response:
    """Enqueue its job now, regardless of ticks, windows and pauses."""
    job = await request.database.call(calls.schedules.act_on_schedule(name, "run", request.identity))
    return json_response(job, 202)


@routes.get("/v1/schedules/{name}/ticks", **operation("schedules:manage", "not_found", "invalid", model=TickList))
async def list_ticks(request: ApiRequest, name: str, limit: Limit = 50) -> Response:
    """What happened to its ticks, newest first."""
    await _schedule(request, name)
    found = await request.database.call(texts_of(calls.schedules.ticks_in_reach(request.identity, name, limit)))
    return list_response(found)


async def _schedule(request: ApiRequest, name: str) -> str:
    found = await request.database.call(calls.schedules.schedules_in_reach(request.identity, name))
    if not found:
        raise Problem("not_found", f"schedule {name[:80]!r} does not exist")
    return found[0]
