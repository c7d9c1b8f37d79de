"""pyarrow, imported when a log is first used, and untyped: it brings no types of its own."""

from typing import Any


def arrow() -> Any:
    """The module `pyarrow`."""
    import pyarrow  # pyright: ignore[reportMissingTypeStubs]

    return pyarrow


def compute() -> Any:
    """The module `pyarrow.compute`."""
    import pyarrow.compute  # pyright: ignore[reportMissingTypeStubs]

    return pyarrow.compute


def parquet() -> Any:
    """The module `pyarrow.parquet`."""
    import pyarrow.parquet  # pyright: ignore[reportMissingTypeStubs]

    return pyarrow.parquet
