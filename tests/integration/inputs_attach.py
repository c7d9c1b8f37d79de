"""Cases of tests/INPUTS.md: the trainer that a curriculum is attached to, and its data set."""

from pathlib import Path
from typing import Any

from datasets import Dataset
from host import dataset, length, model, reward, trainer
from transformers import Trainer, TrainingArguments
from trl import GRPOTrainer, RLOOTrainer
from trl.experimental.gmpo import GMPOTrainer

from curricula import GroupOutcome
from curricula.config import resolved
from curricula_trl import CurriculumSampler, detach


def attach(folder: Path, mix: dict[str, Any] | None = None, **settings: Any) -> CurriculumSampler:
    return CurriculumSampler(mix).attach(trainer(folder, **settings))


def predictor(kind: str, **settings: Any) -> dict[str, Any]:
    return {"curriculum": {"predictor": {"type": kind, **settings}}}


def empty_mix(folder: Path) -> None:
    assert attach(folder).curriculum.pool.environments == ("easy", "frontier", "hard", "never")


def one_environment(folder: Path) -> None:
    sampler = attach(folder, train_dataset=dataset().remove_columns("environment"))
    assert len(sampler.curriculum.pool.environments) == 1
    assert len(sampler.curriculum.pool) == len(dataset())


def resolved_mix(folder: Path) -> None:
    rows = dataset().remove_columns("environment")
    first = attach(folder, {"success": {"threshold": 0.5}}, train_dataset=rows)
    saved = folder / "saved.yaml"
    saved.write_text(resolved(first.config, first.curriculum.pool.environments), encoding="utf-8")
    again = CurriculumSampler.from_yaml(saved).attach(trainer(folder, train_dataset=rows))
    assert again.config.success.threshold == 0.5
    assert again.curriculum.pool.environments == first.curriculum.pool.environments


def duplicates(folder: Path) -> None:
    rows = Dataset.from_list([{"prompt": "1=", "environment": "easy"}] * 20)
    pool = attach(folder, train_dataset=rows).curriculum.pool
    assert len({pool.key(index) for index in range(20)}) == 20


def conversational(folder: Path) -> None:
    seen: list[dict[str, Any]] = []

    def judge(completions: list[Any], **columns: Any) -> list[float]:
        seen.append(columns)
        return [0.0, 1.0] * (len(completions) // 2)

    rows = [
        {"prompt": [{"role": "user", "content": f"{n}="}], "environment": "a", "meta": {"n": n, "tags": ["x"]}}
        for n in range(16)
    ]
    host = trainer(folder, train_dataset=Dataset.from_list(rows), reward_funcs=judge, max_steps=1)
    host.processing_class.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    CurriculumSampler().attach(host)
    host.train()
    for prompt, meta in zip(seen[0]["prompts"], seen[0]["meta"], strict=True):
        assert prompt == [{"role": "user", "content": f"{meta['n']}="}]
        assert meta["tags"] == ["x"]


def rloo(folder: Path) -> None:
    host = trainer(folder, RLOOTrainer, max_steps=1, beta=0.0)
    sampler = CurriculumSampler().attach(host)
    host.train()
    assert sampler.metrics()["told"] > 0


def after_detach(folder: Path) -> None:
    host = trainer(folder)
    sampler = CurriculumSampler().attach(host)
    sampler.curriculum.cancel([draw.ticket for draw in sampler.curriculum.ask(2, group_size=4)])
    sampler.detach()
    assert sampler.attach(host).curriculum.metrics()["draws"] == 2
    detach(host)
    assert CurriculumSampler().attach(host).curriculum.metrics()["draws"] == 0


def changed_data(folder: Path) -> None:
    sampler = CurriculumSampler({"key": "prompt"})
    told = sampler.attach(trainer(folder)).curriculum
    told.tell([GroupOutcome(draw.ticket, [0, 1]) for draw in told.ask(20, group_size=2)])
    sampler.detach()
    later = sampler.attach(trainer(folder, train_dataset=dataset().shuffle(seed=1).select(range(78)))).curriculum
    assert 18 <= round(later.metrics()["coverage"] * 78) <= 20


def other_data(folder: Path) -> None:
    sampler = CurriculumSampler().attach(trainer(folder))
    sampler.curriculum.cancel([draw.ticket for draw in sampler.curriculum.ask(2, group_size=4)])
    sampler.curriculum.tell([GroupOutcome(None, [0, 1], index=3)])
    sampler.detach()
    sampler.attach(trainer(folder, train_dataset=dataset({"other": 30})))


def nan_reward(folder: Path) -> None:
    host = trainer(
        folder, max_steps=1, reward_funcs=lambda completions, **_: [None, float("nan")] * (len(completions) // 2)
    )
    sampler = CurriculumSampler().attach(host)
    host.train()
    metrics = sampler.metrics()
    assert sum(metrics[f"{name}/unscorable"] for name in sampler.curriculum.pool.environments) == metrics["told"] > 0
    assert sum(metrics[f"{name}/zero_variance"] for name in sampler.curriculum.pool.environments) == 0


def no_token(folder: Path) -> None:
    host = trainer(folder, max_steps=1, mask_truncated_completions=True, max_completion_length=1)
    sampler = CurriculumSampler().attach(host)
    host.train()
    metrics = sampler.metrics()
    assert sum(metrics[f"{name}/no_signal"] for name in sampler.curriculum.pool.environments) > 0


def refill(folder: Path) -> None:
    host = trainer(folder, max_steps=2, per_device_train_batch_size=16)
    sampler = CurriculumSampler({"refill": {"rounds": 2}}).attach(host)
    host.train()
    assert sampler.metrics()["told"] > 8


def twice(folder: Path) -> None:
    CurriculumSampler().attach(attach(folder).trainer)


def sampler_twice(folder: Path) -> None:
    attach(folder).attach(trainer(folder))


def other_trainer(folder: Path) -> None:
    arguments = TrainingArguments(output_dir=str(folder), use_cpu=True, report_to=[])
    CurriculumSampler().attach(Trainer(model=model(), args=arguments, train_dataset=dataset()))


def no_data(folder: Path) -> None:
    host = trainer(folder)
    host.train_dataset = None
    CurriculumSampler().attach(host)


def replaced_data(folder: Path) -> None:
    host = trainer(folder)
    CurriculumSampler().attach(host)
    host.train_dataset = dataset({"easy": 30})
    host.train()


def empty_environment(folder: Path) -> None:
    rows = [{"prompt": f"{number}=", "environment": None if number == 5 else "a"} for number in range(8)]
    attach(folder, train_dataset=Dataset.from_list(rows))


class Reorders(GRPOTrainer):
    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)
        return {name: value.flip(0) if getattr(value, "ndim", 0) else value for name, value in output.items()}


def moves_rows(folder: Path) -> None:
    host = trainer(folder, Reorders)
    CurriculumSampler().attach(host)
    host.train()


CASES = {
    "attach-empty-mix": empty_mix,
    "attach-one-environment": one_environment,
    "attach-resolved-mix": resolved_mix,
    "attach-duplicates": duplicates,
    "attach-conversational": conversational,
    "attach-rloo": rloo,
    "attach-clipping-of-no-clip": lambda folder: CurriculumSampler({"monitor": {"clipping": True}}).attach(
        trainer(folder, loss_type="sapo")
    ),
    "attach-clipping-of-another-loss": lambda folder: CurriculumSampler({"monitor": {"clipping": True}}).attach(
        trainer(folder, GMPOTrainer)
    ),
    "attach-after-detach": after_detach,
    "attach-nan-reward": nan_reward,
    "attach-no-token": no_token,
    "attach-refill": refill,
    "attach-refill-normalised": lambda folder: CurriculumSampler({"refill": {"rounds": 1}}).attach(
        trainer(folder, RLOOTrainer, normalize_advantages=True)
    ),
    "attach-twice": twice,
    "attach-sampler-twice": sampler_twice,
    "attach-other-trainer": other_trainer,
    "attach-stream": lambda folder: attach(folder, train_dataset=dataset().to_iterable_dataset()),
    "attach-no-data": no_data,
    "attach-too-small": lambda folder: attach(folder, steps_per_generation=4, train_dataset=dataset({"easy": 7})),
    "attach-replaced-data": replaced_data,
    "attach-unknown-environment": lambda folder: attach(folder, {"environments": {"esy": {}}}),
    "attach-no-column": lambda folder: attach(folder, {"environment_column": "env"}),
    "attach-no-key": lambda folder: attach(folder, {"key": "uid"}),
    "attach-empty-environment": empty_environment,
    "attach-changed-data": changed_data,
    "attach-other-data": other_data,
    "attach-no-reward": lambda folder: attach(folder, {"success": {"reward": "exact"}}, reward_funcs=reward),
    "attach-same-name": lambda folder: attach(folder, {"success": {"reward": "reward"}}, reward_funcs=[reward, reward]),
    "attach-no-scale": lambda folder: attach(
        folder, reward_funcs=[reward, length], multi_objective_aggregation="normalize_then_sum"
    ),
    "attach-names-without-column": lambda folder: attach(
        folder, {"environments": {"a": {}, "b": {}}}, train_dataset=dataset().remove_columns("environment")
    ),
    "attach-levels-without-column": lambda folder: attach(folder, {"environments": {"easy": {"levels": [0, 1]}}}),
    "attach-moves-rows": moves_rows,
    "attach-predictor-params": lambda folder: attach(folder, predictor("hashed_text", params={"memry": 9})),
    "attach-predictor-model": lambda folder: attach(folder, predictor("frozen_encoder")),
    "attach-no-features": lambda folder: attach(folder, predictor("features")),
    "attach-no-estimator": lambda folder: attach(folder, predictor("sklearn.linear_model:SGDRegresor")),
    "attach-wrong-estimator": lambda folder: attach(folder, predictor("sklearn.svm:SVC")),
}
