"""Pages of the admin: what the queue holds, to look at. Whoever may see them needs the permission to view."""

from typing import Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import QuerySet

from fenceline.django import app
from fenceline.django.models import Job, LaneDepth
from fenceline.errors import InvalidId
from fenceline.model.public_id import parse_id

#: Counting all jobs of a large queue takes longer than anybody waits for a page.
MAX_COUNT = 10_000
STATUSES = (
    "awaiting_approval", "waiting", "scheduled", "queued", "claimed", "running",
    "succeeded", "succeeded_with_errors", "failed", "cancelled",
)  # fmt: skip


class BoundedPaginator(Paginator):
    """Counts no further than `MAX_COUNT`."""

    @property
    def count(self) -> int:
        return len(self.object_list.values_list("pk")[:MAX_COUNT])


class ReadOnlyAdmin(admin.ModelAdmin):
    actions = None
    show_full_result_count = False
    paginator = BoundedPaginator

    def get_queryset(self, request: Any) -> "QuerySet[Any]":
        return super().get_queryset(request).using(app.settings.database)

    def has_add_permission(self, request: Any) -> bool:  # noqa: ARG002 - nobody has it
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:  # noqa: ARG002 - as above
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:  # noqa: ARG002 - as above
        return False


class StatusFilter(admin.SimpleListFilter):
    """By name: to ask which there are would read every job."""

    title = "status"
    parameter_name = "status"

    def lookups(self, _request: Any, _model_admin: Any) -> list[tuple[str, str]]:
        return [(status, status.replace("_", " ")) for status in STATUSES]

    def queryset(self, _request: Any, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        return queryset.filter(status=self.value()) if self.value() else queryset


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = ("public_id", "kind", "status", "lane", "priority", "attempt", "created_at", "finished_at")
    list_filter = (StatusFilter,)
    search_fields = ("=kind", "=lane", "=tenant")
    search_help_text = "A kind, a lane, a tenant or an id, in full"
    sortable_by = ()
    list_per_page = 50

    def get_search_results(
        self, request: Any, queryset: "QuerySet[Any]", search_term: str
    ) -> "tuple[QuerySet[Any], bool]":
        try:
            return queryset.filter(job_id=parse_id(search_term.strip())), False
        except InvalidId:
            found: tuple[QuerySet[Any], bool] = super().get_search_results(request, queryset, search_term)
            return found


@admin.register(LaneDepth)
class LaneDepthAdmin(ReadOnlyAdmin):
    list_display = ("lane", "depth", "running", "slots", "enabled")
