"""The folder of a model that a mix names, looked for without a host: importing one takes longer than all the rest."""

from pathlib import Path

from curricula.config.explain import config_error
from curricula.config.schema import CurriculumConfig
from curricula.config.section import shown


def check_folder(config: CurriculumConfig) -> None:
    """Checks that a model given by a path is a folder.

    Raises:
        ConfigError: It is not.
    """
    model = config.model
    if model is not None and model.startswith((".", "/", "~")) and not Path(model).expanduser().is_dir():
        message = f"expected the folder of a model; got {shown(model)}; check the path"
        raise config_error(config.origin, ("model",), message)
