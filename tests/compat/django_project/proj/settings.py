import os
from urllib.parse import parse_qs, urlsplit

CELERY_BROKER_URL = os.environ["DATABASE_URL"]
CELERY_RESULT_BACKEND = "django-db"
CELERY_TASK_TIME_LIMIT = 600
CELERY_TIMEZONE = "Europe/Berlin"

address = urlsplit(CELERY_BROKER_URL)
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": address.path.removeprefix("/"),
        "HOST": parse_qs(address.query).get("host", [address.hostname])[0],
        "PORT": address.port or "",
        "USER": address.username,
        "PASSWORD": address.password,
        "CONN_MAX_AGE": None,
    }
}
INSTALLED_APPS = ["django.contrib.contenttypes", "shop"]
SECRET_KEY = "for tests"  # noqa: S105 - of nothing
USE_TZ = True
