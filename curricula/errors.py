"""Errors of this package: one line each, saying what was expected, what was given, where, and what to do.

Every error derives from `CurriculaError`, and from the standard exception that a caller would otherwise
expect, so both `except CurriculaError` and `except ValueError` work.
"""


class CurriculaError(Exception):
    """Base of every error that this package raises on purpose."""


class CurriculaValueError(CurriculaError, ValueError):
    """A value that cannot be used: the message names the expected and the given one."""


class CurriculaRuntimeError(CurriculaError, RuntimeError):
    """An operation that cannot go on in the present state."""


class ConfigError(CurriculaValueError):
    """A mix that cannot be read or does not hold together: the message names file and key."""


class CheckpointError(CurriculaValueError):
    """Saved state that is missing, damaged, or of another pool."""


class MissingExtraError(CurriculaError, ImportError):
    """A host library is absent or too old: the message names the extra to install."""


def described(error: BaseException) -> str:
    """What others' code raised, in one line.

    >>> described(KeyError("a"))
    "KeyError: 'a'"
    """
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
