"""Lanes and schedules."""

from fenceline.errors.base import RefusedError


class UnknownLane(RefusedError):
    """The lane does not exist."""

    code = "unknown_lane"


class InvalidLane(RefusedError):
    """A lane's setting breaks a rule, or the lane exists already."""

    code = "invalid_lane"


class LaneInUse(RefusedError):
    """The lane still has unfinished jobs, or is the default one."""

    code = "lane_in_use"


class LaneExists(InvalidLane):
    """A lane of that name is there already."""

    code = "lane_exists"


class UnknownSchedule(RefusedError):
    """The schedule does not exist."""

    code = "unknown_schedule"


class InvalidSchedule(RefusedError):
    """A schedule's setting breaks a rule, or the schedule exists already."""

    code = "invalid_schedule"
