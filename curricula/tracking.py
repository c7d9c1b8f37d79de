"""Trackers: where metrics go besides the trainer's own logs. Found by entry point, so the core imports no host."""

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from importlib.metadata import EntryPoint, entry_points
from typing import Literal, Protocol

from curricula.errors import ConfigError

GROUP = "curricula.trackers"
_LONGEST = 200
_UNSAFE = re.compile(r"[^\w.\- :/]")


class Tracker(Protocol):
    """Takes metrics to an experiment tracker. No method raises for a failure of the tracker itself.

    Attributes:
        name: The host's name, as in the trainer's `report_to`: what the trainer reports there itself need
            not be logged again.
    """

    name: str

    def start(self, resolved: str, step: int) -> bool:
        """Joins the run that is active now and records the resolved mix.

        Args:
            resolved: The resolved mix, as YAML text.
            step: The trainer's step.

        Returns:
            Whether there was a run to join. If not, the tracker is not used.
        """
        ...

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Logs metrics under the names given, made safe; values that are not finite are left out."""
        ...

    def finish(self) -> None:
        """Waits, for a bounded time, until everything has been written."""
        ...


def load_trackers(choice: Literal["auto"] | Sequence[str] = "auto") -> list[Tracker]:
    """Loads trackers by name; `start` says which of them has a run to join.

    Args:
        choice: Names of entry points in the group `curricula.trackers`, or "auto" for each one whose host
            has been imported already: entry points carry their host's name, and a host that was never
            imported cannot have an active run.

    Raises:
        ConfigError: A name that no installed package offers.
        MissingExtraError: A named tracker whose host is not installed.

    Example:
        >>> load_trackers(["no_such_tracker"])
        Traceback (most recent call last):
        ...
        curricula.errors.ConfigError: monitor.trackers: expected one of mlflow; got 'no_such_tracker'
    """
    offered = _offered()
    names = [name for name in sorted(offered) if name in sys.modules] if choice == "auto" else list(choice)
    for name in names:
        if name not in offered:
            known = ", ".join(sorted(offered)) or "none (install curricula-rl)"
            raise ConfigError(f"monitor.trackers: expected one of {known}; got {name!r}")
    return [offered[name].load()() for name in names]


def tracker_names() -> list[str]:
    """Names that `monitor.trackers` may have: those that installed packages offer. No host is imported.

    Example:
        >>> tracker_names()
        ['mlflow']
    """
    return sorted(_offered())


def metric_name(text: str, longest: int = _LONGEST) -> str:
    """A name that every tracker takes, made from any text.

    Letters and digits of any script stay, as do `_ . - :`, spaces and single slashes. A name that is too
    long is cut before its last segment and gets a digest there. 200 characters leave room for a prefix and
    a suffix within MLflow's 250.

    Example:
        >>> metric_name("maths/level 2"), metric_name("//a//..//b/"), metric_name("naïve ☃")
        ('maths/level 2', 'a/_/b', 'naïve _')
        >>> metric_name("x" * 300 + "/success_drawn", longest=40)
        'xxxxxxxxxxxxxxxxx-b12499e1/success_drawn'
    """
    safe = _UNSAFE.sub("_", unicodedata.normalize("NFC", text))
    # As paths, "." and ".." would resolve to other names.
    parts = [re.sub(r"^(\.$|\.\.+)", "_", part.strip()) for part in safe.split("/")]
    name = "/".join(part for part in parts if part) or "_"
    if len(name) <= longest:
        return name
    whole, slash, last = text.rpartition("/")
    segment = name.rpartition("/")[2]
    if not slash or not last.strip() or len(segment) > longest // 2:
        return _cut(name, text, longest)
    return f"{_cut(name[: -len(segment) - 1], whole, longest - len(segment) - 1)}/{segment}"


def metric_names(texts: Iterable[str]) -> dict[str, str]:
    """`metric_name` of each text; names that would collide get a digest of their text.

    Collisions are looked for as the narrowest tracker sees the names: TRL's way to MLflow puts `_` for
    everything outside ASCII, and some databases do not tell upper from lower case.

    Example:
        >>> metric_names(["a?", "a!", "b"])
        {'a?': 'a_-71f63a45', 'a!': 'a_-1f755ab4', 'b': 'b'}
    """
    names = {text: metric_name(text) for text in texts}
    uses = Counter(_narrow(name) for name in names.values())
    return {text: name if uses[_narrow(name)] == 1 else _cut(name, text, _LONGEST) for text, name in names.items()}


def _offered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _narrow(name: str) -> str:
    return re.sub(r"[^\x20-\x7e]", "_", name).lower()


def _cut(name: str, text: str, longest: int) -> str:
    return f"{name[: longest - 9].rstrip('/ ')}-{_digest(text)}"


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
