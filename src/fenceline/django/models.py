"""Models of Fenceline's views, which the admin shows. Django neither creates nor changes them."""

from typing import ClassVar

from django.db import models


class ReadOnly(Exception):
    """Jobs are changed by the methods of the app, not by the ORM."""


class Job(models.Model):
    """A row of the view `fenceline.jobs`, for queries; `app.sync.jobs` changes jobs."""

    job_id = models.BigIntegerField(primary_key=True)
    public_id = models.TextField("id", db_column="id")
    kind = models.TextField()
    status = models.TextField()
    waiting_for = models.TextField(null=True)
    lane = models.TextField()
    priority = models.SmallIntegerField()
    tenant = models.TextField()
    args = models.JSONField()
    labels = models.JSONField(null=True)
    attempt = models.SmallIntegerField()
    max_attempts = models.SmallIntegerField()
    created_at = models.DateTimeField()
    created_by = models.TextField(null=True)
    run_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    worker = models.TextField(null=True)
    phase = models.TextField(null=True)
    progress = models.JSONField(null=True)
    result = models.JSONField(null=True)
    error = models.JSONField(null=True)

    class Meta:
        managed = False
        db_table = '"fenceline"."jobs"'
        ordering: ClassVar[list[str]] = ["-job_id"]
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.kind} {self.public_id}"

    def save(self, *_args: object, **_kwargs: object) -> None:
        raise ReadOnly("a job cannot be saved: use the verbs of the app, as app.sync.jobs.handle(id).cancel()")

    def delete(self, *_args: object, **_kwargs: object) -> tuple[int, dict[str, int]]:
        raise ReadOnly("a job cannot be deleted here: use the verbs of the app, as app.sync.jobs.handle(id).delete()")


class LaneDepth(models.Model):
    """A row of the view `fenceline.lane_depth`."""

    lane = models.TextField(primary_key=True)
    depth = models.BigIntegerField()
    running = models.BigIntegerField()
    slots = models.IntegerField(null=True)
    enabled = models.BooleanField()

    class Meta:
        managed = False
        db_table = '"fenceline"."lane_depth"'
        ordering: ClassVar[list[str]] = ["lane"]
        default_permissions = ("view",)
        verbose_name_plural = "lane depths"

    def __str__(self) -> str:
        return str(self.lane)
