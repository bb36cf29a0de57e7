"""Writes docs/openapi.json, the HTTP contract as a file: for whoever generates a client and has no server at hand.

python scripts/write_openapi.py          write it
python scripts/write_openapi.py --check  fail where it is not what the code says
"""

import json
import sys
from pathlib import Path

from fenceline import Fenceline
from fenceline.server.asgi_app import create_app
from fenceline.server.openapi import openapi
from fenceline.server.server_settings import ServerSettings

FILE = Path(__file__).parents[1] / "docs" / "openapi.json"


def document_text() -> str:
    """Needs no database: it is made from the code."""
    document = openapi(create_app(ServerSettings(), Fenceline("postgresql://nowhere")))
    return json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> None:
    text = document_text()
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text, "utf-8")
    elif FILE.read_text("utf-8") != text:
        sys.exit("docs/openapi.json is not what the code says: run python scripts/write_openapi.py")


if __name__ == "__main__":
    main()
