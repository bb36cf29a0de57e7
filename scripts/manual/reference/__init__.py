"""The pages of the reference, made from the code when the manual is built: none of them can be out of date.

Each module makes one page, or several of one sort. A page is Markdown; `PAGES` says what makes it.
"""

from collections.abc import Callable

from scripts.manual.reference import command_line, errors, http, metrics, options, python, settings, sql

#: Page → what makes it.
PAGES: dict[str, Callable[[], str]] = {
    **python.PAGES,
    "reference/options.md": options.page,
    "reference/command_line.md": command_line.page,
    "reference/http_api.md": http.page,
    "reference/sql_functions.md": sql.page,
    "reference/settings.md": settings.page,
    "reference/errors.md": errors.page,
    "reference/metrics.md": metrics.page,
}
