"""`ctx.guard_newer`: versions as the database compares them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from fenceline.errors import InvalidOption, Superseded

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def must_be_newest(resource: str, version: object, *, is_newest: bool) -> bool:
    if not is_newest:
        raise Superseded(f"a newer version of {resource!r} than {version} was announced before")
    return True


def version_text(version: float | Decimal | datetime) -> str:
    """A version as the exact text of a number, which may be larger than numbers of JSON. Raises InvalidOption."""
    if isinstance(version, datetime):
        if version.utcoffset() is None:
            raise InvalidOption(f"version {version!r} is not a moment: use a datetime with a timezone")
        return str(Decimal((version - EPOCH) // timedelta(microseconds=1)) / 1_000_000)
    if isinstance(version, bool) or not isinstance(version, int | float | Decimal):
        raise InvalidOption(f"version {version!r:.80} cannot be compared: use a number or a datetime")
    return str(version)
