"""What in a mix is for `curricula train` alone: a script builds its own trainer over its own data."""

from curricula.config.explain import dotted
from curricula.config.schema import CurriculumConfig


def launcher_keys(config: CurriculumConfig) -> list[str]:
    """Keys of the mix that are set and that only `curricula train` reads, so that a host can say what it leaves out.

    >>> launcher_keys(CurriculumConfig(model="m", environments={"a": {"source": {"type": "dataset"}}}))
    ['model', 'environments.a.source']
    """
    keys: list[tuple[str, ...]] = [("model",)] if config.model is not None else []
    keys += [("trainer",)] if config.trainer else []
    for name, environment in config.environments.items():
        for key in ("source", "reward"):
            if getattr(environment, key) is not None:
                keys.append(("environments", name, key))
    return [dotted(key) for key in keys]
