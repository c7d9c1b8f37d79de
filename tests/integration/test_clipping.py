"""Tokens clipped away, against the gradients of TRL's own losses: batch by batch in 64 bits, and in real runs."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from clipping_host import play
from host import trainer
from launched import launch
from trl import GRPOTrainer

from curricula import CheckpointError
from curricula_trl import CurriculumSampler
from curricula_trl.clipping import CELLS, Clipping, by_decile, clipped_away, counted, figures, truncated
from curricula_trl.ranks import Ranks

ROWS, WIDTH = 8, 24


class Given(GRPOTrainer):
    """Computes TRL's loss from log-probabilities that it is handed."""

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        return self.logps, torch.rand(ROWS, WIDTH), None


def batch(seed: int, spread: float, by_token: bool = False) -> tuple[torch.Tensor, dict[str, Any]]:
    """Log-probabilities whose ratios lie within exp(spread) of one, padded rows, forced tokens, rows without worth."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    logps = -draw(ROWS, WIDTH).abs() - 0.1
    lengths = torch.randint(2, WIDTH + 1, (ROWS, 1), generator=generator)
    advantages = draw(ROWS, WIDTH) if by_token else draw(ROWS)
    advantages[3] = 0.0
    inputs = {
        "prompt_ids": torch.ones(ROWS, 2, dtype=torch.long),
        "prompt_mask": torch.ones(ROWS, 2, dtype=torch.long),
        "completion_ids": torch.ones(ROWS, WIDTH, dtype=torch.long),
        "completion_mask": (torch.arange(WIDTH)[None] < lengths).long(),
        "tool_mask": (torch.rand(ROWS, WIDTH, generator=generator) > 0.1).long(),
        "advantages": advantages,
        "old_per_token_logps": logps + spread * draw(ROWS, WIDTH),
        "num_items_in_batch": torch.tensor(100.0),
    }
    return logps.requires_grad_(), inputs


def gradient(host: Any, logps: torch.Tensor, inputs: dict[str, Any]) -> torch.Tensor:
    host.logps = logps
    host.current_gradient_accumulation_steps = 1
    host.model.train()
    (found,) = torch.autograd.grad(host._compute_loss(host.model, inputs), logps)
    return found


LOSSES: dict[str, tuple[dict[str, Any], float]] = {
    "grpo": ({"loss_type": "grpo", "epsilon": 0.2}, 0.3),
    "grpo, two-sided": ({"loss_type": "grpo", "epsilon": 0.2, "delta": 1.5}, 0.5),
    "grpo, delta below": ({"loss_type": "grpo", "epsilon": 0.2, "delta": 1.1}, 0.5),
    "dapo": ({"loss_type": "dapo", "epsilon": 0.2, "epsilon_high": 0.28}, 0.3),
    "bnpo": ({"loss_type": "bnpo"}, 0.3),
    "dr_grpo": ({"loss_type": "dr_grpo"}, 0.3),
    "gspo": (
        {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4},
        1e-3,
    ),
    "luspo": ({"loss_type": "luspo", "importance_sampling_level": "sequence", "epsilon": 2e-3}, 0.01),
    "cispo": ({"loss_type": "cispo", "epsilon_high": 5.0}, 2.0),
    "sapo": ({"loss_type": "sapo"}, 0.5),
    "vespo": ({"loss_type": "vespo"}, 0.1),
}
SOFT = ("cispo", "sapo", "vespo")


# By token, one ratio a sequence would sum the terms of all tokens in the gradient of each.
@pytest.mark.parametrize(
    ("name", "by_token"),
    [(name, False) for name in LOSSES] + [(name, True) for name in LOSSES if name not in ("gspo", "luspo")],
)
def test_clipped_away_is_where_the_gradient_is_zero(tmp_path: Path, name: str, by_token: bool) -> None:
    arguments, spread = LOSSES[name]
    host = trainer(tmp_path, Given, **arguments)
    seen: list[bool] = []
    for seed in range(5):
        logps, inputs = batch(seed, spread, by_token)
        advantages = inputs["advantages"] if by_token else inputs["advantages"][:, None]
        pool = (inputs["completion_mask"] * inputs["tool_mask"] != 0) & (advantages != 0)
        found = gradient(host, logps, inputs)
        assert (found[~pool] == 0).all()
        claimed = clipped_away(host, inputs, logps.detach())
        assert claimed.shape == logps.shape
        assert torch.equal(claimed[pool], found[pool] == 0), name
        seen += claimed[pool].tolist()
    assert any(seen) == (name not in SOFT)
    assert not all(seen)


def test_truncated_is_where_the_weight_was_cut(tmp_path: Path) -> None:
    host = trainer(tmp_path, Given, loss_type="cispo", epsilon_high=5.0)
    logps, inputs = batch(0, 2.0)
    pool = (inputs["completion_mask"] * inputs["tool_mask"] != 0) & (inputs["advantages"] != 0)[:, None]
    cut = gradient(host, logps, inputs)
    host.epsilon_high = 1e9
    whole = gradient(host, logps, inputs)
    host.epsilon_high = 5.0
    claimed = truncated(host, inputs, logps.detach())
    assert torch.equal(claimed[pool], cut[pool] != whole[pool])
    assert 0 < int(claimed[pool].sum()) < int(pool.sum())
    host.loss_type = "dapo"
    assert not truncated(host, inputs, logps.detach()).any()


@pytest.mark.parametrize("name", LOSSES)
def test_nothing_is_clipped_before_an_update(tmp_path: Path, name: str) -> None:
    host = trainer(tmp_path, Given, **LOSSES[name][0])
    logps, inputs = batch(0, 0.5)
    del inputs["old_per_token_logps"]
    assert not clipped_away(host, inputs, logps.detach()).any()
    assert not truncated(host, inputs, logps.detach()).any()


def deciles(entropies: Any, clipped: Any) -> np.ndarray:
    """By sorting all of them."""
    order = np.argsort(entropies, kind="stable")
    return np.array([part.mean() for part in np.array_split(np.asarray(clipped, dtype=float)[order], 10)])


def test_deciles_are_those_of_sorted_tokens() -> None:
    generator = np.random.default_rng(0)
    entropies = np.exp(generator.normal(-2.0, 3.0, 100_000))
    clipped = generator.random(100_000) < np.minimum(0.5, entropies)
    cells = counted(torch.tensor(entropies), torch.ones(100_000, dtype=torch.bool), torch.tensor(clipped)).numpy()
    assert cells.shape == (2, CELLS)
    assert cells.sum(axis=1).tolist() == [100_000, clipped.sum()]
    np.testing.assert_allclose(by_decile(*cells), deciles(entropies, clipped), atol=2e-3)


def test_entropies_at_the_ends_and_of_no_number() -> None:
    given = torch.tensor([[0.0, 1e-9, 100.0, torch.nan, torch.inf, 1.0]])
    pool = torch.tensor([[True, True, True, True, True, False]])
    cells = counted(given, pool, pool)
    assert cells.sum(dim=1).tolist() == [3, 3]
    assert cells[0, 0] == 2
    assert cells[0, -1] == 1
    assert figures(np.zeros((3, CELLS), dtype=np.int64), "grpo") == {}


RUNS: dict[str, dict[str, Any]] = {
    "grpo": {"loss_type": "grpo", "epsilon": 0.05},
    "gspo": {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 3e-3, "epsilon_high": 4e-3},
    "cispo": {"loss_type": "cispo", "epsilon_high": 1.01},
}


def compare(found: dict[str, Any], name: str) -> None:
    (entry,) = found["log"]
    entropies, clipped = map(np.array, zip(*found["tokens"], strict=True))
    assert clipped.any() == (name not in SOFT)
    if name == "cispo":  # clips none away: no figures of it, but of the weights that it cuts
        assert [key for key in entry if "/clipping/" in key] == ["curriculum/clipping/truncated"]
        assert entry["curriculum/clipping/truncated"] > 0
        return
    assert "curriculum/clipping/truncated" not in entry
    assert entry["curriculum/clipping/clipped"] == pytest.approx(clipped.mean(), abs=1e-12)
    shown = np.array([entry[f"curriculum/clipping/decile_{number}"] for number in range(10)])
    assert shown.mean() == pytest.approx(clipped.mean(), abs=1e-9)
    assert np.quantile(entropies, 0.9) > 2 * np.quantile(entropies, 0.1)
    # A cell may hold a few tokens of two deciles.
    np.testing.assert_allclose(shown, deciles(entropies, clipped), atol=2.5 / (len(clipped) / 10))


SIZES = {"steps_per_generation": 4, "gradient_accumulation_steps": 2, "max_steps": 6, "logging_steps": 6}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_logs_what_its_gradients_were(tmp_path: Path, name: str) -> None:
    compare(play(tmp_path, {"arguments": {**SIZES, **RUNS[name], "max_completion_length": 12}}), name)


@pytest.mark.slow
def test_two_ranks_log_what_all_gradients_were(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    arguments = {**SIZES, **RUNS["grpo"], "max_completion_length": 12}
    script = Path(__file__).with_name("clipping_host.py")
    code, text = launch(out, 2, script=script, output=str(tmp_path), arguments=arguments)
    assert code == 0, text[-4000:]
    compare(json.loads(out.read_text(encoding="utf-8")), "grpo")


def test_figures_are_of_the_steps_since_the_last_log(tmp_path: Path) -> None:
    found = play(tmp_path, {"arguments": {**SIZES, **RUNS["grpo"], "logging_steps": 2, "num_iterations": 1}})
    shares = [entry["curriculum/clipping/clipped"] for entry in found["log"]]
    assert len(shares) == 3
    assert len(set(shares)) > 1


def test_off_by_default(tmp_path: Path) -> None:
    host = trainer(tmp_path, max_steps=1)
    CurriculumSampler().attach(host)
    host.train()
    assert not [name for entry in host.state.log_history for name in entry if "clipping" in name]


def test_a_micro_batch_waits_for_no_value(tmp_path: Path) -> None:
    """On the meta device there are none: whatever asks for one, or for a shape that depends on one, fails."""
    host = trainer(tmp_path, Given, loss_type="grpo", epsilon=0.2)
    logps, inputs = batch(0, 0.5)
    given = {name: value.to("meta") for name, value in inputs.items()}
    host.accelerator = SimpleNamespace(sync_gradients=True)
    watching = Clipping(Ranks(Accelerator(cpu=True)), True, "grpo")
    for _ in range(2):
        with watching.watching(host, given):
            watching.keep((logps.detach().to("meta"), torch.rand(ROWS, WIDTH, device="meta")))
    assert watching._since is not None
    assert watching._since.is_meta
    with pytest.raises(NotImplementedError):
        watching.close_window()


def test_counts_of_a_checkpoint_are_checked(tmp_path: Path) -> None:
    kept = Clipping(Ranks(Accelerator(cpu=True)), True, "grpo")
    window = np.ones((3, CELLS), dtype=np.int64)
    kept.load({"window": window, "shown": {"clipping/clipped": 0.5}})
    assert kept.metrics() == {"clipping/clipped": 0.5}
    assert kept.state()["window"].sum() == window.sum()
    off = Clipping(Ranks(Accelerator(cpu=True)), False, "grpo")
    off.load(kept.state())
    assert off.metrics() == off.state() == {}
    kept.load(off.state())
    assert kept.state()["window"].sum() == 0
    for wrong in ([1], {"window": window[:2], "shown": {}}, {"window": -window, "shown": {}}, {"window": window}):
        with pytest.raises(CheckpointError, match="clipping: expected its saved counts"):
            kept.load(wrong)
