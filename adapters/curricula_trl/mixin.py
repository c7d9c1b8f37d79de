"""The seam to TRL: methods of a trainer, each calling TRL's own.

Only hooks that have been stable from TRL 0.24 to 1.16 are used, but for three: the generation of one turn serves
interruptions alone, and has its signature checked for them; the log-probabilities of a batch are passed on as they
are, and looked at for `monitor.clipping` alone; and so are whole rollouts, of which the mask of tools' tokens is read
where it is one. The mixin comes first in the class, so that a
user's own subclass keeps all of its overrides.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from curricula import CurriculaRuntimeError
from curricula.tracking import metric_names
from curricula_trl.binding import Binding

PREFIX = "curriculum/"
_SELDOM = {
    "repeats",
    "expired",
    "duplicates",
    "single",
    "overlong",
    "no_signal",
    "unscorable",
    "stale",
    "cancelled",
    "left_out",
}


class CurriculumMixin:
    """Methods that a trainer gains by `attach`; without a binding each is TRL's."""

    _curricula: Binding | None = None

    def _generate_and_score_completions(self, inputs: Sequence[Any]) -> dict[str, Any]:
        if self._curricula is None or not self.model.training:
            return super()._generate_and_score_completions(inputs)
        try:
            return self._curricula.step(self, len(inputs), super()._generate_and_score_completions)
        except BaseException:
            self._curricula.cancel()
            raise

    def _generate_single_turn(
        self, prompt_ids: Any, images: Any, multimodal_fields: Any, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        turn, binding = super()._generate_single_turn, self._curricula
        if binding is None or binding.interruption is None or not self.model.training:
            return turn(prompt_ids, images, multimodal_fields, *args, **kwargs)
        return binding.interruption.generate(
            self, lambda prompts, fields: turn(prompts, images, fields, *args, **kwargs), prompt_ids, multimodal_fields
        )

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        found = super()._generate(*args, **kwargs)
        if self._curricula is not None and self.model.training:
            self._curricula.generated(found)
        return found

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Any:
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        if self._curricula is not None and self.model.training:
            rewards = self._curricula.capture(inputs, rewards, completion_ids_list)
        return rewards

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        binding = self._curricula
        if binding is not None and self.model.training and not binding.has_drawn:
            raise CurriculaRuntimeError(
                f"{type(self).__name__} is about to train on rollouts that the curriculum did not draw: it generates "
                "without TRL's _generate_and_score_completions. Call TRL's method in your subclass, or detach()"
            )
        if binding is None or not self.model.training:
            return super().compute_loss(model, inputs, *args, **kwargs)
        with binding.clipping.watching(self, inputs):
            loss = super().compute_loss(model, inputs, *args, **kwargs)
        binding.ask_ahead(self)
        return loss

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        found = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        if self._curricula is not None:
            self._curricula.clipping.keep(found)
        return found

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        # Added at the moment of logging: TRL averages its own metrics, and a counter's average means nothing.
        if self._curricula is not None and self.model.training and "loss" in logs:
            self._curricula.clipping.close_window()
            logs.update(prefixed(self._curricula.metrics()))
        super().log(logs, *args, **kwargs)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        if self._curricula is not None:
            folder = Path(self._get_output_dir(trial=trial)) / f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
            self._curricula.save(self, folder)
        super()._save_checkpoint(model, trial)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if self._curricula is not None and checkpoint is not None:
            self._curricula.load(self, Path(checkpoint))


def prefixed(metrics: Mapping[str, float]) -> dict[str, float]:
    """Metrics under names that every tracker takes; counts of what went wrong only once there are any."""
    names = _safe_names(tuple(metrics))
    return {
        names[name]: value for name, value in metrics.items() if value != 0 or name.rpartition("/")[2] not in _SELDOM
    }


@lru_cache(maxsize=8)
def _safe_names(names: tuple[str, ...]) -> dict[str, str]:
    # By environment, not by whole name: an environment's figures stay together, and keep their name as others appear.
    parts = {name: name.rpartition("/") for name in names}
    safe = metric_names(dict.fromkeys(environment for environment, _, _ in parts.values() if environment))
    return {
        name: f"{PREFIX}{safe[environment]}/{figure}" if environment else PREFIX + name
        for name, (environment, _, figure) in parts.items()
    }
