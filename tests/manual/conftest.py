"""The pages of the reference are made by scripts, which are no package: they are found from the root."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
