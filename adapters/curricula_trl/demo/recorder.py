"""What the demo measures, in the same way for every arm: rewards as they come, and held-out prompts."""

from collections import Counter
from typing import Any

from datasets import Dataset
from transformers import PreTrainedTokenizerFast, Qwen2ForCausalLM, TrainerCallback

from curricula.cli.demo.plan import GROUP_SIZE
from curricula_trl.demo.model import complete


class ExactMatch:
    """The reward: 1 for the answer and nothing else, 0 otherwise. It keeps count of the groups it scored.

    Attributes:
        rounds: Per round of generation: groups drawn, and groups whose rewards differ, by environment.
    """

    __name__ = "exact_match"

    def __init__(self) -> None:
        self.rounds: list[dict[str, dict[str, int]]] = []

    def __call__(
        self, completions: list[str], answer: list[str], environment: list[str], **columns: Any
    ) -> list[float | None]:
        """Scores a batch; TRL hands over the rows' columns, the rollouts of a group adjacent."""
        rewards = [float(given == right) for given, right in zip(completions, answer, strict=True)]
        drawn: Counter[str] = Counter()
        informative: Counter[str] = Counter()
        solved: Counter[str] = Counter()
        for start in range(0, len(rewards), GROUP_SIZE):
            group = rewards[start : start + GROUP_SIZE]
            drawn[environment[start]] += 1
            informative[environment[start]] += max(group) > min(group)
            solved[environment[start]] += int(sum(group))
        self.rounds.append({"drawn": dict(drawn), "informative": dict(informative), "solved": dict(solved)})
        return [*rewards]


def held_out_accuracy(
    model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerFast, held_out: Dataset
) -> dict[str, float]:
    """Greedy exact-match accuracy per environment on prompts that are never trained on."""
    given = complete(model, tokenizer, list(held_out["prompt"]))
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for completion, answer, environment in zip(given, held_out["answer"], held_out["environment"], strict=True):
        asked[environment] += 1
        right[environment] += completion == answer
    return {environment: right[environment] / asked[environment] for environment in asked}


class Examiner(TrainerCallback):
    """Examines the policy on held-out prompts at the start, every `every` steps and at the end.

    Where no sampler does, it logs the rollouts spent as well, so that all runs can be compared by them.

    Args:
        trainer: Whose policy it is.
        tokenizer: Its tokenizer.
        held_out: The prompts.
        every: So many steps.
        counted: Whether a `CurriculumSampler` logs what is spent.

    Attributes:
        evaluations: Rollouts spent so far, and accuracy per environment.
    """

    def __init__(
        self,
        trainer: Any,
        tokenizer: PreTrainedTokenizerFast,
        held_out: Dataset,
        every: int = 25,
        *,
        counted: bool = False,
    ) -> None:
        self.evaluations: list[dict[str, Any]] = []
        self._trainer = trainer
        self._tokenizer = tokenizer
        self._held_out = held_out
        self._every = every
        self._counted = counted

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Examines the policy as it came."""
        self._examine(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Examines the policy when it is time, and after the last step."""
        if state.global_step % self._every == 0 or state.global_step == state.max_steps:
            self._examine(state.global_step)

    def _examine(self, step: int) -> None:
        accuracy = held_out_accuracy(self._trainer.model, self._tokenizer, self._held_out)
        rollouts = step * self._trainer.args.generation_batch_size
        self.evaluations.append({"rollouts": rollouts, "accuracy": accuracy})
        figures = {f"held_out/{environment}": value for environment, value in accuracy.items()}
        if not self._counted:
            figures["curriculum/rollouts"] = float(rollouts)
        self._trainer.log(figures)
