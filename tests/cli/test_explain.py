"""`fenceline jobs explain`, and what `jobs show` says of a job that has not ended."""

from tests.cli.program import Hands, Program


def test_why_it_waits_and_what_to_type(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue("mail")
    hands.value("select fenceline.set_lane('default', '{\"enabled\": false}', 'ann')")
    lines = fenceline("jobs", "explain", job).out.splitlines()
    assert lines[0].split() == [job, "queued"]
    assert lines[1].startswith("Lane default is drained, by ann: nothing in it is started. (for ")
    assert lines[2] == "    do: fenceline lanes resume default"
    told = fenceline("jobs", "explain", job, "--json").json
    assert (told["code"], told["commands"]) == ("lane_drained", ["fenceline lanes resume default"])


def test_show_explains_what_has_not_ended(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue("mail", needs_approval=True)
    assert f"    do: fenceline jobs approve {job}" in fenceline("jobs", "show", job).out.splitlines()
    assert fenceline("jobs", "show", job, "--json").json["explain"]["code"] == "approval"
    done = hands.finished()
    assert "do:" not in fenceline("jobs", "show", done).out
    assert fenceline("jobs", "show", done, "--json").json["explain"] is None


def test_a_job_that_is_not_there(fenceline: Program, hands: Hands) -> None:
    job = hands.finished()
    hands.value("select fenceline.delete_job(fenceline.parse_public_id(%s))", job)
    assert f"job {job} does not exist" in fenceline("jobs", "explain", job).error
