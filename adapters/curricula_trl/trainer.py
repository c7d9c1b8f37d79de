"""`CurriculumGRPOTrainer`, for those who prefer a class to `attach`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trl import GRPOTrainer

from curricula import CurriculumConfig
from curricula_trl.mixin import CurriculumMixin
from curricula_trl.sampler import CurriculumSampler


class CurriculumGRPOTrainer(CurriculumMixin, GRPOTrainer):
    """TRL's `GRPOTrainer` with a curriculum.

    Args:
        curriculum: A mix: path of a YAML file, `CurriculumConfig`, mapping, or None for the defaults.
        *args: As for `GRPOTrainer`.
        **kwargs: As for `GRPOTrainer`.
    """

    def __init__(
        self, *args: Any, curriculum: str | Path | CurriculumConfig | Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        if isinstance(curriculum, (str, Path)):
            sampler = CurriculumSampler.from_yaml(curriculum)
        else:
            sampler = CurriculumSampler(curriculum)
        self.curriculum_sampler = sampler.attach(self)
