"""What `attach` and the start of a run refuse: one clear line each, and before any weight has changed."""

from pathlib import Path
from typing import Any

import pytest
from datasets import ClassLabel, Dataset
from host import dataset, model, reward, tokenizer, trainer, weights_digest
from transformers import Trainer, TrainingArguments
from trl import GRPOTrainer

from curricula import CurriculaError
from curricula_trl import CurriculumSampler, detach


def refused(pattern: str) -> Any:
    return pytest.raises(CurriculaError, match=pattern)


def test_twice(tmp_path: Path) -> None:
    host = trainer(tmp_path)
    sampler = CurriculumSampler().attach(host)
    with refused("this sampler is attached to a trainer already"):
        sampler.attach(trainer(tmp_path))
    with refused("has a curriculum already.*notebook"):
        CurriculumSampler().attach(host)


def test_detach_of_nothing(tmp_path: Path) -> None:
    with refused("not attached"):
        CurriculumSampler().detach()
    with refused("has no curriculum"):
        detach(trainer(tmp_path))


def test_stream(tmp_path: Path) -> None:
    host = trainer(tmp_path, train_dataset=dataset().to_iterable_dataset())
    with refused("IterableDataset is a stream, and a curriculum picks prompts by row"):
        CurriculumSampler().attach(host)


def test_other_trainers(tmp_path: Path) -> None:
    arguments = TrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to=[])
    with refused("expected a trl.GRPOTrainer or trl.RLOOTrainer.*got Trainer"):
        CurriculumSampler().attach(Trainer(model=model(), args=arguments, train_dataset=dataset()))
    with refused("got NoneType"):
        CurriculumSampler().attach(None)


def test_no_data_set(tmp_path: Path) -> None:
    host = trainer(tmp_path)
    host.train_dataset = None
    with refused("no train_dataset"):
        CurriculumSampler().attach(host)


def test_smaller_than_a_generation_batch(tmp_path: Path) -> None:
    host = trainer(tmp_path, steps_per_generation=4, train_dataset=dataset({"easy": 7}))
    with refused("has 7 prompts.*holds 8 groups.*at least 8"):
        CurriculumSampler().attach(host)


def test_environment_that_the_data_lacks(tmp_path: Path) -> None:
    with refused("environments.esy.*easy"):
        CurriculumSampler({"environments": {"esy": {}}}).attach(trainer(tmp_path))


def test_column_that_the_data_lacks(tmp_path: Path) -> None:
    with refused("environment_column.*'env'.*prompt, environment, answer"):
        CurriculumSampler({"environment_column": "env"}).attach(trainer(tmp_path))
    with refused("key.*'uid'.*prompt, environment, answer"):
        CurriculumSampler({"key": "uid"}).attach(trainer(tmp_path))


def test_empty_environment_and_key(tmp_path: Path) -> None:
    rows = [
        {"prompt": str(number), "environment": None if number == 5 else "a", "uid": str(number)} for number in range(8)
    ]
    with refused("row 5: column 'environment'"):
        CurriculumSampler().attach(trainer(tmp_path, train_dataset=Dataset.from_list(rows)))
    rows = [{"prompt": str(number), "uid": None if number == 3 else str(number)} for number in range(8)]
    with refused("row 3: key column 'uid' is empty"):
        CurriculumSampler({"key": "uid"}).attach(trainer(tmp_path, train_dataset=Dataset.from_list(rows)))


def test_reward_that_is_not_there(tmp_path: Path) -> None:
    with refused("success.reward.*'exact'.*there are reward"):
        CurriculumSampler({"success": {"reward": "exact"}}).attach(trainer(tmp_path))


def test_data_set_replaced_after_attach(tmp_path: Path) -> None:
    host = trainer(tmp_path)
    CurriculumSampler().attach(host)
    host.train_dataset = dataset({"easy": 30})
    with refused("replaced after attach"):
        host.train()


def test_method_replaced_on_the_instance(tmp_path: Path) -> None:
    host = trainer(tmp_path)
    host._generate_and_score_completions = lambda inputs: inputs
    with refused("replaced on the instance"):
        CurriculumSampler().attach(host)


class Stubborn(GRPOTrainer):
    """Generates on its own way, past TRL's method."""

    def _prepare_inputs(self, inputs: Any) -> Any:
        return GRPOTrainer._generate_and_score_completions(self, inputs) if self.model.training else inputs


def test_trainer_that_would_not_draw_from_us(tmp_path: Path) -> None:
    host = trainer(tmp_path, Stubborn)
    before = weights_digest(host)
    CurriculumSampler().attach(host)
    with refused("Stubborn.*did not draw"):
        host.train()
    assert weights_digest(host) == before


class Deaf(GRPOTrainer):
    """Scores on its own way."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        self._calculate_rewards = lambda *_: __import__("torch").ones(len(inputs), 1)
        try:
            return super()._generate_and_score_completions(inputs)
        finally:
            del self._calculate_rewards


def test_trainer_that_never_scores(tmp_path: Path) -> None:
    host = trainer(tmp_path, Deaf)
    before = weights_digest(host)
    CurriculumSampler().attach(host)
    with refused("without calling _calculate_rewards"):
        host.train()
    assert weights_digest(host) == before


def test_reward_that_raises_ends_the_run_and_returns_the_prompts(tmp_path: Path) -> None:
    calls = []

    def fragile(completions: list[str], environment: list[str], **_: Any) -> list[float]:
        calls.append(1)
        if len(calls) == 3:
            raise KeyError("planted")
        return reward(completions, environment)

    host = trainer(tmp_path, reward_funcs=fragile, save_strategy="steps", save_steps=1)
    sampler = CurriculumSampler().attach(host)
    with pytest.raises(KeyError, match="planted"):
        host.train()
    assert sampler.metrics()["in_flight"] == 0
    assert sampler.metrics()["told"] == 4
    host.train(resume_from_checkpoint=True)
    assert host.state.global_step == 4
    assert sampler.metrics()["told"] == 8


def test_mix_with_two_environments_needs_their_column(tmp_path: Path) -> None:
    data = Dataset.from_list([{"prompt": str(number)} for number in range(8)])
    with refused("environments"):
        CurriculumSampler({"environments": {"a": {}, "b": {}}}).attach(trainer(tmp_path, train_dataset=data))


def test_tokenizer_is_the_alphabet() -> None:
    assert tokenizer().decode(tokenizer()("12+a")["input_ids"]).replace(" ", "") == "12+a"


def test_rewards_without_a_common_scale_need_a_success(tmp_path: Path) -> None:
    def length(completions: list[str], **_: Any) -> list[float]:
        return [-0.1 * len(text) for text in completions]

    settings = {"reward_funcs": [reward, length], "multi_objective_aggregation": "normalize_then_sum"}
    with refused(r"normalize_then_sum.*no common scale.*success: \{reward: NAME\}, of reward, length"):
        CurriculumSampler().attach(trainer(tmp_path, **settings))
    host = trainer(tmp_path, **settings)
    CurriculumSampler({"success": {"reward": "reward"}}).attach(host)
    host.train()


def test_two_rewards_of_one_name(tmp_path: Path) -> None:
    with refused("success.reward: 2 reward functions are called 'reward'"):
        CurriculumSampler({"success": {"reward": "reward"}}).attach(trainer(tmp_path, reward_funcs=[reward, reward]))


class Reorders(GRPOTrainer):
    """Gives rows back in another order."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)
        return {name: value.flip(0) if getattr(value, "ndim", 0) else value for name, value in output.items()}


def test_trainer_that_moves_rows(tmp_path: Path) -> None:
    host = trainer(tmp_path, Reorders)
    before = weights_digest(host)
    CurriculumSampler().attach(host)
    with refused("Reorders._generate_and_score_completions returns other rows"):
        host.train()
    assert weights_digest(host) == before


class Swaps(GRPOTrainer):
    """Generates for prompts of its own choice."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        return super()._generate_and_score_completions([dict(self.train_dataset[0]) for _ in inputs])


def test_trainer_that_swaps_prompts(tmp_path: Path) -> None:
    host = trainer(tmp_path, Swaps)
    before = weights_digest(host)
    CurriculumSampler().attach(host)
    with refused("Swaps.*other prompts than the curriculum drew"):
        host.train()
    assert weights_digest(host) == before


def test_environments_that_a_transform_makes(tmp_path: Path) -> None:
    data = dataset().remove_columns("environment")
    data.set_transform(lambda batch: {**batch, "environment": ["a"] * len(batch["prompt"])})
    with refused("environment_column: 'environment' is made by a transform.*dataset.map"):
        CurriculumSampler().attach(trainer(tmp_path, train_dataset=data))


def test_labels_that_were_never_given(tmp_path: Path) -> None:
    data = Dataset.from_dict({"prompt": ["1", "2", "3", "4"], "environment": [0, 1, -1, 0]})
    data = data.cast_column("environment", ClassLabel(names=["a", "b"]))
    with refused("row 2: column 'environment' names no environment"):
        CurriculumSampler().attach(trainer(tmp_path, train_dataset=data))
