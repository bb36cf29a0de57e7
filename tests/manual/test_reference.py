"""The reference explains every public name, option, setting, metric, command and error code.

What is made from the code is looked at as it is made; the Python pages as they are built, for mkdocstrings makes their
text.
"""

import inspect
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest
from scripts.manual.reference import command_line, errors, http, metrics, options, python, settings, sql

import fenceline
import fenceline.credentials
import fenceline.testing
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.job_decorator import JobSettings
from fenceline.client.schedule_decorator import ScheduleSettings
from fenceline.errors.sqlstates import SQLSTATES
from fenceline.server.problems import PROBLEMS

ROOT = Path(__file__).parents[2]


#: Between processes of ours, and in an example of the code.
INTERNAL = {"FENCELINE_TEST_RUN", "FENCELINE_DEMO_LEDGER", "FENCELINE_IDENTITY_DEPLOYER__TOKEN"}


def rows(page: str) -> dict[str, list[str]]:
    """The rows of the tables of a page, by the code in their first cell; more of the same name are joined."""
    found: dict[str, list[str]] = {}
    for line in page.splitlines():
        if cells := re.findall(r"(?<=\| )((?:`[^`]*`|[^|`\\]|\\.)*?)(?= \|)", line):
            for name in re.findall(r"`([^`]+)`", cells[0]):
                found.setdefault(name, []).append(cells[-1].strip())
    return found


def unexplained(page: str, names: Iterable[str]) -> list[str]:
    explained = rows(page)
    return [name for name in names if not any(len(text) > 5 for text in explained.get(name, []))]


#: Words that explain nothing.
SMALL = re.compile(
    r"(a|an|and|as|at|be|by|for|from|has|have|in|is|it|its|no|not|of|on|one|or|such|that|the|there|this|to|with)"
)


def words(text: str) -> set[str]:
    return {word.lower().rstrip("s") for word in re.findall(r"[A-Za-z]+", text) if not SMALL.fullmatch(word.lower())}


def says_nothing_new(name: str, text: str) -> bool:
    """Whether an explanation has fewer than three words that its name has not."""
    in_name = re.sub(r"([a-z])([A-Z])", r"\1 \2", name).replace("_", " ")
    return len(words(text) - words(in_name)) < 3


def test_an_explanation_that_repeats_the_name_is_noticed() -> None:
    assert says_nothing_new("max_delay", "The max delay of it.")
    assert not says_nothing_new("max_delay", "The longest wait between two attempts.")


@pytest.mark.parametrize("page", [options, settings, metrics, errors], ids=lambda page: page.__name__)
def test_no_explanation_only_repeats_the_name(page: ModuleType) -> None:
    found = rows(page.page())
    assert [name for name, texts in found.items() if says_nothing_new(name, max(texts, key=len))] == []


def test_rows_are_read() -> None:
    lines = ["| option | what |", "| --- | --- |", "| `a` | `x | y` is long |", "| `b` |  |", "| `c`, `d` | a letter |"]
    assert unexplained("\n".join(lines), ["a", "b", "c", "d", "e"]) == ["b", "e"]


def section(page: str, heading: str) -> str:
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    "heading, of",
    [("`@app.job(…)`", JobSettings), ("An enqueue", EnqueueOptions), ("`@app.schedule(…)`", ScheduleSettings)],
)
def test_every_option_is_explained(heading: str, of: type) -> None:
    names = of.__annotations__
    assert len(names) >= 10
    assert unexplained(section(options.page(), heading), names) == []


def test_every_setting_of_a_lane_and_of_a_retry_is_explained() -> None:
    lane = section(options.page(), "A lane")
    assert unexplained(lane, ["slots", "rate_per_second", "burst", "fair", "ageing_seconds", "delivery", "kinds"]) == []
    retry = section(options.page(), "`Retry(…)`")
    assert unexplained(retry, [field.name for field in options.attributes(fenceline.Retry)]) == []


def test_every_setting_is_explained() -> None:
    keys = [setting.key for setting in settings.settings()]
    assert len(keys) > 40
    assert unexplained(settings.page(), keys) == []


def test_every_variable_is_explained() -> None:
    """Whatever the programs read from the environment is a setting, or in the second table."""
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r"FENCELINE_[A-Z][A-Z_]*[A-Z]", source)) - INTERNAL
    page = settings.page()
    assert [name for name in sorted(read) if name not in page] == []


def test_every_extra_is_explained() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    page = (ROOT / "docs" / "start" / "install.md").read_text("utf-8")
    assert unexplained(page, extras.keys() - {"dev", "docs"}) == []


def test_every_command_is_explained() -> None:
    found = dict(command_line.commands())
    assert len(found) > 50
    page = command_line.page()
    for typed, command in found.items():
        text = page.partition(f"### `{typed}`\n\n")[2].partition("\n\n```")[0]
        assert len(text) > 10, typed
        for option in command.params:
            if getattr(option, "help", None) and not getattr(option, "hidden", False):
                assert option.opts[0] in page.partition(f"### `{typed}`\n")[2].partition("\n### ")[0], (
                    typed,
                    option.opts,
                )


def test_every_metric_and_alert_is_explained() -> None:
    page = metrics.page()
    names = [metrics.shown_name(metric) for metric in (*metrics.of_server(), *metrics.of_worker())]
    assert len(names) > 20
    assert unexplained(page, names) == []
    for rule in metrics.alerts():
        assert f"| `{rule['alert']}` |" in page


def test_every_label_of_a_metric_is_named() -> None:
    for metric in (*metrics.of_server(), *metrics.of_worker()):
        [line] = [
            line for line in metrics.page().splitlines() if line.startswith(f"| `{metrics.shown_name(metric)}` |")
        ]
        assert all(f"`{label}`" in line for label in metrics.labels(metric)), metric.name


def test_every_error_has_a_cause_and_a_cure() -> None:
    page = errors.page()
    refused = {kind.code for kind in SQLSTATES.values()}
    assert len(refused) > 40
    for heading, codes in (
        ("Refusals", refused),
        ("Other exceptions", {str(vars(kind)["code"]) for kind in errors.exceptions()}),
        ("How a job ended", set(errors.ENDS)),
    ):
        assert unexplained(section(page, heading), codes) == [], heading
    answers = section(page, "Over HTTP")
    for code, (status, cause) in PROBLEMS.items():
        [line] = [line for line in answers.splitlines() if line.startswith(f"| {status} | `{code}` |")]
        assert cause in line
        assert len(line.split(" | ")[-1]) > 12, code


def test_every_end_of_a_job_is_known_to_the_reference() -> None:
    known = set(errors.ENDS) | set(errors.SHARED) | set(errors.refusals())
    assert len(errors.codes_in_source()) > 12
    assert errors.codes_in_source() - known == set()
    assert set(errors.ENDS) - errors.codes_in_source() == set(), "ends that no code makes"


def test_every_cure_is_of_a_code_that_exists() -> None:
    known = {
        "refusals": set(errors.refusals()),
        "exceptions": {str(vars(kind)["code"]) for kind in errors.exceptions()},
        "jobs": set(errors.ENDS),
        "http": set(PROBLEMS),
    }
    assert errors.CURES.keys() == known.keys()
    for heading, cures in errors.CURES.items():
        assert set(cures) - known[heading] == set(), heading


def test_every_sql_function_with_a_role_is_explained() -> None:
    page = sql.page()
    found = sql.routines()
    assert len(found) > 150
    for routine in found:
        assert f"### `{routine.name}`\n" in page
        assert len(sql.summary(routine)) > 10, routine.name
    assert "### `jobs`" in page
    assert "### `lane_depth`" in page


def test_every_route_is_explained() -> None:
    page = http.page()
    found = list(http.operations())
    assert len(found) > 80
    for method, path, operation in found:
        text = page.partition(f"### {method} `{path}`\n\n")[2].partition("\n\n")[0]
        assert len(text) > 5, (method, path)
        for parameter in operation.get("parameters", ()):
            assert f"| `{parameter['name']}` |" in page


# Python ---------------------------------------------------------------------------------------------------------------


class Explained(HTMLParser):
    """The text below each heading of a page that mkdocstrings made, by the heading's id."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self._heading = ""
        self._paragraph = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in {"h2", "h3", "h4"} and given.get("id"):
            self._heading = str(given["id"])
            self.texts[self._heading] = ""
        self._paragraph = tag in {"p", "li"} or (self._paragraph and tag in {"code", "a", "em", "strong"})

    def handle_endtag(self, tag: str) -> None:
        self._paragraph = self._paragraph and tag not in {"p", "li"}

    def handle_data(self, data: str) -> None:
        if self._paragraph and self._heading:
            self.texts[self._heading] += data


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Heading → text, of the Python pages."""
    site = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )
    texts: dict[str, str] = {}
    for page in python.documented():
        texts |= Explained((site / page).with_suffix(".html").read_text("utf-8")).texts
    return texts


def public_names() -> Iterator[tuple[str, str]]:
    """Where mkdocstrings puts it, and what to call it in a message."""
    for names in python.documented().values():
        for path in names:
            module, _, name = path.rpartition(".")
            yield path, path
            owner = getattr(sys.modules[module], name)
            if inspect.isclass(owner) and not issubclass(owner, BaseException):
                yield from ((f"{path}.{member}", f"{name}.{member}") for member in public_members(owner))


def public_members(owner: type) -> list[str]:
    """Verbs and properties that Fenceline defines, here or in a base."""
    ours = [base for base in owner.__mro__ if base.__module__.startswith("fenceline")]
    found = {name: value for base in reversed(ours) for name, value in vars(base).items() if not name.startswith("_")}
    kinds = (property, classmethod, staticmethod)
    return [name for name, value in found.items() if inspect.isfunction(value) or isinstance(value, kinds)]


#: Explained once: on the page on jobs, for all verbs, and by `CredentialProvider`.
SAID_OF_ALL = {"actor", "reason", "limit", "cursor", "tenant", "kind"}


def unexplained_parameters() -> Iterator[str]:
    """Of verbs, given by name only; blocking twins refer to the async ones."""
    for path in {path for names in python.documented().values() for path in names}:
        module, _, name = path.rpartition(".")
        owner = getattr(sys.modules[module], name)
        if not inspect.isclass(owner) or issubclass(owner, BaseException) or name.startswith("Sync"):
            continue
        for member in public_members(owner):
            function = inspect.getattr_static(owner, member)
            if inspect.isfunction(function):
                text = function.__doc__ or ""
                for parameter in inspect.signature(function).parameters.values():
                    is_said = parameter.name in SAID_OF_ALL or re.search(rf"\b{parameter.name}\b", text)
                    if parameter.kind is parameter.KEYWORD_ONLY and not is_said:
                        yield f"{name}.{member}({parameter.name}=)"


def test_every_parameter_of_a_verb_is_explained() -> None:
    assert sorted(set(unexplained_parameters())) == []


def test_every_public_name_is_on_a_page() -> None:
    placed = {path.rpartition(".")[2] for names in python.documented().values() for path in names}
    assert set(fenceline.__all__) - placed == set()
    assert set(fenceline.testing.__all__) - placed == set()
    assert set(fenceline.credentials.__all__) - placed == set()


@pytest.mark.timeout(1800)  # builds the manual
def test_every_public_name_is_explained(built: dict[str, str]) -> None:
    names = dict(public_names())
    assert len(names) > 250
    wrong = [called for path, called in names.items() if path not in built or len(built[path].strip()) < 10]
    assert not wrong, ", ".join(wrong)
