"""The curriculum inside TRL's trainers: two lines in a script that exists.

`from curricula_trl import CurriculumSampler` and `CurriculumSampler.from_yaml("mix.yaml").attach(trainer)`.
"""

from curricula.versions import require

require("trl")

from curricula_trl.recipes import recipe  # noqa: E402  hosts are checked before they are imported
from curricula_trl.sampler import CurriculumSampler, detach  # noqa: E402
from curricula_trl.trainer import CurriculumGRPOTrainer  # noqa: E402

__all__ = ["CurriculumGRPOTrainer", "CurriculumSampler", "detach", "recipe"]
