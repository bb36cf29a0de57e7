"""What import-linter cannot say: no module imports itself in a roundabout way, and the model stands alone."""

import sys
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """As they are when the program runs, also those within functions."""
    return grimp.build_graph("fenceline", include_external_packages=True, exclude_type_checking_imports=True)


def test_no_module_imports_itself_in_a_roundabout_way(imports: grimp.ImportGraph) -> None:
    order = TopologicalSorter({module: imports.find_modules_directly_imported_by(module) for module in imports.modules})
    try:
        order.prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_the_model_needs_the_standard_library_only(imports: grimp.ImportGraph) -> None:
    needed = {
        name
        for module in imports.modules
        if module.startswith("fenceline.model")
        for name in imports.find_modules_directly_imported_by(module)
        if not name.startswith("fenceline.")
    }
    # Ticks of cron expressions are computed; defaults of type variables come with Python 3.13.
    assert needed - sys.stdlib_module_names == {"cronsim", "typing_extensions"}
