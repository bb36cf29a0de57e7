"""Pages of the admin that show the queue, read-only. Users need the permission to view."""

from typing import Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import QuerySet

from fenceline.django import app
from fenceline.django.models import Job, LaneDepth
from fenceline.errors import InvalidId
from fenceline.model.public_id import parse_id
from fenceline.model.status import Status

#: Counting all jobs of a large queue takes too long for a page.
MAX_COUNT = 10_000


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

    def _nobody(self, _request: Any, _obj: Any = None) -> bool:
        return False

    has_add_permission = has_change_permission = has_delete_permission = _nobody


class StatusFilter(admin.SimpleListFilter):
    """Lists every status there can be: to find those that occur, Django would read every job."""

    title = "status"
    parameter_name = "status"

    def lookups(self, _request: Any, _model_admin: Any) -> list[tuple[str, str]]:
        return [(status.value, status.replace("_", " ")) for status in Status]

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
