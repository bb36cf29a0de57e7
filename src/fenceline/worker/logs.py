"""What worker processes log: as their settings say."""

import logging

from fenceline.context.log_output import configure_logging
from fenceline.model.worker_settings import WorkerSettings


def configure_worker_logging(settings: WorkerSettings, worker: int | None = None) -> None:
    """As the settings of a worker or runner say. Libraries are not to be debugged: they speak from info on."""
    wanted = logging.getLevelNamesMapping()[(settings.log_level or "info").upper()]
    configure_logging(
        settings.log_format,
        level=max(wanted, logging.INFO),
        worker=worker,
        all_tracebacks=wanted <= logging.DEBUG,
    )
    logging.getLogger("fenceline").setLevel(wanted)
    logging.getLogger("fenceline.jobs").setLevel(logging.WARNING if settings.log_level is None else wanted)
    logging.getLogger("fenceline.job_log").setLevel(logging.DEBUG if settings.log_jobs else logging.CRITICAL + 1)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it tells of every request
