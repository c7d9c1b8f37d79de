"""Names of trackers, which are known only where the packages that offer them are installed."""

import difflib

from curricula.config.explain import config_error
from curricula.config.schema import CurriculumConfig, shown
from curricula.tracking import tracker_names


def check_trackers(config: CurriculumConfig) -> None:
    """Check that each tracker which the mix names is offered by an installed package.

    Raises:
        ConfigError: One that is not.
    """
    if config.monitor.trackers == "auto":
        return
    known = tracker_names()
    for place, name in enumerate(config.monitor.trackers):
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else "install the package that offers it"
            message = f"expected one of {', '.join(known) or 'none (install curricula-rl)'}; got {shown(name)}; {hint}"
            raise config_error(config.origin, ("monitor", "trackers", place), message)
