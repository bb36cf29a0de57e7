"""What is wrong with a schedule, as SQL that must be refused: (SQLSTATE, SQL, what the message says)."""


def setting(text: str, *says: str, sqlstate: str = "FL031") -> tuple[str, str, tuple[str, ...]]:
    """A new schedule of kind `work`, by the hour unless it says otherwise."""
    return sqlstate, f"""select fenceline.set_schedule('s', '{{{{"kind": "work", {text}}}}}')""", says


HOURLY = '"every": 3600, '

SCHEDULE_REFUSALS = [
    ("FL030", "select fenceline.set_schedule('nobody', '{{}}', null, false)", ("schedule 'nobody' does not exist",)),
    ("FL030", "select fenceline.delete_schedule('nobody')", ("schedule 'nobody' does not exist",)),
    ("FL030", "select fenceline.run_schedule('nobody')", ("schedule 'nobody' does not exist",)),
    ("FL031", "select fenceline.set_schedule('there', '{{}}', null, true)", ("schedule 'there' exists already",)),
    ("FL031", "select fenceline.set_schedule('s', '[]')", ("changes of schedule 's' must be a JSON object",)),
    ("FL031", "select fenceline.set_schedule('s', null)", ("changes of schedule 's' must be a JSON object",)),
    ("FL031", """select fenceline.set_schedule('s', '{{"every": 60}}')""", ("'s' is new and needs a kind",)),
    ("FL002", "select fenceline.set_schedule('No', '{{}}')", ("schedule 'No' is not a valid name",)),
    ("FL002", """select fenceline.set_schedule('s', '{{"kind": "No"}}')""", ("kind 'No' is not a valid name",)),
    ("FL031", "select fenceline.declare_schedules('[]')", ("schedules must be a JSON object of objects",)),
    ("FL031", """select fenceline.declare_schedules('{{"s": 5}}')""", ("schedules must be a JSON object of objects",)),
    (
        "FL031",
        """select fenceline.declare_schedules('{{"a": {{"kind": "work", "every": 60}}, "s": {{"kind": "work"}}}}')""",
        ("schedule 's' needs either cron or every, and has neither",),
    ),
    setting(HOURLY + '"colour": "red"', "schedule 's' has no setting colour"),
    setting('"misfire": "once"', "schedule 's' needs either cron or every, and has neither"),
    setting('"cron": "0 3 * * *", "every": 60', "both, cron '0 3 * * *' and every 60"),
    *[
        setting(f'"cron": "{cron}"', f"cron '{cron}' of schedule 's' is not valid")
        for cron in ("", "daily", "* * * *", "* * * * * *", "? * * * *", "0 3 * * *; drop")
    ],
    *[
        setting(f'"every": {every}', f"every {every} is out of range")
        for every in ("0", "-1", "1.5", '"60"', "99999999")
    ],
    *[
        setting(f'{HOURLY}"timezone": "{zone}"', f"timezone '{zone}' of schedule 's' is unknown")
        for zone in ("Mars/Olympus", "CEST", "", "UTC+3")
    ],
    setting(HOURLY + '"misfire": "twice"', "misfire 'twice' of schedule 's' is unknown: use skip, once or all"),
    *[
        setting(f'{HOURLY}"misfire_limit": {limit}', f"misfire_limit {limit} is out of range")
        for limit in ("0", "1001", '"1"')
    ],
    setting(HOURLY + '"paused": "yes"', "paused \"yes\" of schedule 's' is not a boolean"),
    setting(HOURLY + '"windows": {{}}', "windows of schedule 's' must be a list"),
    *[
        setting(f'{HOURLY}"windows": [{window}]', "window ", "of schedule 's' is not valid")
        for window in (
            "5",
            "{{}}",
            '{{"from": "22:00"}}',
            '{{"from": "22:00", "to": "25:00"}}',
            '{{"from": "22:00", "to": "22:00"}}',
            '{{"from": "24:00", "to": "22:00"}}',
            '{{"from": "22:00", "to": "23:00", "day": "mon"}}',
            '{{"from": "22:00", "to": "23:00", "days": "monday"}}',
            '{{"from": "22:00", "to": "23:00", "days": "mon,"}}',
        )
    ],
    setting(HOURLY + '"args": []', "args and options of schedule 's' must be JSON objects"),
    setting(HOURLY + '"options": 5', "args and options of schedule 's' must be JSON objects"),
    setting(HOURLY + '"options": {{"priority": 99999}}', "priority 99999", sqlstate="FL003"),
    setting(HOURLY + '"options": {{"colour": 1}}', "unknown option colour", sqlstate="FL007"),
    *[
        setting(f'{HOURLY}"options": {{{{"{option}": "x"}}}}', f"option {option} of schedule 's' is about one job")
        for option in ("run_at", "run_in", "expires_at", "after", "idempotency_key", "parent")
    ],
]
