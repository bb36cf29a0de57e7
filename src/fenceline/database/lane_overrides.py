"""Lane settings from the environment, for the first start of a database.

`FENCELINE_LANES='{"interactive": {"slots": 4}, "reports": {"slots": 1, "kinds": ["report"]}}'` is read once, when the
schema is installed. From then on the lanes in the database are the truth, and operators change them there.
"""

import json
import os

from fenceline.database.definitions import Connection
from fenceline.errors import FencelineError
from fenceline.errors.sqlstates import refusal

VARIABLE = "FENCELINE_LANES"


async def apply_lane_overrides(connection: Connection) -> None:
    """Set up lanes as the environment says. Raises FencelineError when it cannot be read, InvalidLane and the like."""
    text = os.environ.get(VARIABLE)
    if not text:
        return
    try:
        lanes = json.loads(text)
        changes = {name: json.dumps(settings) for name, settings in lanes.items()}
    except (ValueError, AttributeError) as error:
        raise FencelineError(f"${VARIABLE} is not a JSON object of lanes and their settings: {error}") from error
    for name, settings in changes.items():
        try:
            await connection.execute(
                "select fenceline.set_lane(p_name => $1, p_changes => $2::jsonb, p_actor => $3)",
                name,
                settings,
                f"${VARIABLE}",
            )
        except Exception as error:
            raise refusal(error) or error from error
