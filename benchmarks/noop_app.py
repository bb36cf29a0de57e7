"""The application that measured workers run."""

from fenceline import Fenceline

app = Fenceline()


@app.job()
async def noop(path: str, number: int) -> None:
    pass
