"""Libraries that are not needed by all: imported where they are used, and missed by name."""

import importlib
from typing import Any

from curricula.errors import MissingExtraError

_EXTRAS = {"scikit-learn": "predictors", "river": "river"}


def need(module: str, distribution: str) -> Any:
    """A module of a library that may be absent.

    Raises:
        MissingExtraError: It is, with the extra to install.

    >>> need("river_that_is_not", "river")
    Traceback (most recent call last):
    curricula.errors.MissingExtraError: expected river to be installed; ...; pip install 'curricula-rl[river]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"expected {distribution} to be installed; importing {module} failed ({error}); "
            f"pip install 'curricula-rl[{_EXTRAS[distribution]}]'"
        ) from error
