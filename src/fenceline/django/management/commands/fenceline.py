"""`manage.py fenceline worker|migrate|doctor`: commands of `fenceline` for the project's app and database."""

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

APP = "fenceline.django.worker_app:app"


class Command(BaseCommand):
    help = "Run a worker, bring Fenceline's schema up to date, or look for problems; `-- --help` shows the options."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["worker", "migrate", "doctor"])
        parser.add_argument("options", nargs="*", help="Options of the command, after `--`: -- --processes 2")

    def handle(self, *_args: Any, action: str, options: list[str], **_more: Any) -> None:
        from fenceline.cli import main  # noqa: PLC0415 - for this command only
        from fenceline.django import app  # noqa: PLC0415 - as above
        from fenceline.django.database import dsn_of_alias  # noqa: PLC0415 - as above

        # In the environment, not among the arguments: it may contain a password.
        os.environ["FENCELINE_DSN"] = dsn_of_alias(app.settings.database)
        main.main([action, *([APP] if action == "worker" else []), *options], prog_name="manage.py fenceline")
