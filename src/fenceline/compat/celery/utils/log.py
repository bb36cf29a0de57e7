"""`celery.utils.log`."""

import logging


def get_task_logger(name: str) -> logging.Logger:
    """The logger of that name."""
    return logging.getLogger(name)
