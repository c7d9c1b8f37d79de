"""The store that runs are read from: opened, or refused in one line, and never waited for long."""

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import mlflow

from curricula.errors import CurriculaValueError, described

# A command is not a run: about 20 seconds, where the user says nothing else.
PATIENCE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "9", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}


@contextmanager
def patience() -> Generator[None]:
    """A server that is away or silent is not asked for minutes; the environment is as before afterwards."""
    ours = [name for name in PATIENCE if name not in os.environ]
    os.environ.update({name: PATIENCE[name] for name in ours})
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


def shown(text: str) -> str:
    """Text without the names, passwords and tokens that addresses in it may have.

    >>> shown("https://me:secret@host/a?token=secret is away"), shown("sqlite:///runs.db")
    ('https://host/a is away', 'sqlite:///runs.db')
    """
    return re.sub(r"(?<=://)(\S*?)\?\S*", r"\1", re.sub(r"(?<=://)\S*@", "", text))


def opened(uri: str, given: bool) -> mlflow.MlflowClient:
    """A client of a store that is there: MLflow would make one on disk that is not.

    Raises:
        CurriculaValueError: No store, or none that MLflow opens.
    """
    how = "check --tracking-uri" if given else "set MLFLOW_TRACKING_URI, or --tracking-uri"
    try:
        path = _on_disk(uri)
        if path is None or path.exists():
            return mlflow.MlflowClient(uri)
    except Exception as error:  # drivers, schemes and databases fail with classes of their own
        text = shown(described(error))[:200]
        raise CurriculaValueError(f"MLflow: expected a store that opens; got {shown(uri)} ({text}); {how}") from error
    raise CurriculaValueError(f"MLflow: expected a store with runs; got {shown(uri)}, which is not there; {how}")


def _on_disk(uri: str) -> Path | None:
    parts = urlsplit(uri)
    if parts.scheme == "sqlite":
        return Path(uri.removeprefix("sqlite:///"))
    return Path(parts.path or uri) if parts.scheme in ("", "file") else None
