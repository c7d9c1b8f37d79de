"""A real vLLM server on a CPU: TRL's server mode with a curriculum, rows with limits of their own, and its end."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))

import host
from needs import needs_vllm
from vllm_host import disagreement, enlarge, loaded, off_grid, saved, texts

from curricula import CurriculaRuntimeError, CurriculaValueError

needs_vllm()
pytestmark = pytest.mark.slow

SECONDS = 4.0


def served(folder: Path, url: str, **changes: Any) -> Any:
    return host.trainer(
        folder / "out",
        model=changes.pop("model", None) or loaded(folder / "model", changes.pop("dtype", "float32")),
        use_vllm=True,
        vllm_mode="server",
        vllm_server_base_url=url,
        vllm_server_timeout=SECONDS,
        max_completion_length=8,
        **{"learning_rate": 0.05, "save_strategy": "steps", "save_steps": 1, **changes},
    )


def test_training_by_a_server_until_it_is_killed(tmp_path: Path) -> None:
    from curricula_trl import CurriculumSampler
    from curricula_vllm import Server, complete, sampling, use_cpu, watch

    use_cpu()
    folder = saved(tmp_path / "model")
    with Server(folder, "--dtype", "float32", "--max-model-len", "64", log=tmp_path / "log") as server:
        assert server.process is not None
        deadly = {"at": 3}

        def reward(completions: list[str], environment: list[str], **others: Any) -> list[float]:
            if trainer.state.global_step >= deadly["at"]:
                server.kill()
            return host.reward(completions, environment, **others)

        trainer = served(tmp_path, server.url, reward_funcs=reward, max_steps=8)
        sampler = CurriculumSampler()
        sampler.attach(trainer)
        generation = trainer.vllm_generation
        watch(generation.vllm_client, SECONDS)  # a run waits a minute at the least

        # Before training: the server has the weights of the folder; then others are sent.
        def look() -> float:
            done = complete(generation.vllm_client, texts(), [3, 8, 8, 1], {**sampling(generation), "seed": 3})
            assert [len(row.token_ids) <= limit for row, limit in zip(done, [3, 8, 8, 1], strict=True)] == [True] * 4
            assert done[1].token_ids != done[2].token_ids
            return disagreement(trainer.model, texts(), done)

        assert look() < 1e-4
        with torch.no_grad():
            for weight in trainer.model.parameters():
                weight.add_(0.1 * torch.randn_like(weight))
        assert look() > 1e-2
        generation.sync_weights()
        assert look() < 1e-4

        # Stopped, it accepts and is silent.
        os.killpg(server.process.pid, signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(CurriculaRuntimeError, match=rf"no sign of life for {SECONDS:g} s"):
            look()
        assert time.monotonic() - began < 4 * SECONDS
        os.killpg(server.process.pid, signal.SIGCONT)
        assert look() < 1e-4

        with pytest.raises(
            CurriculaRuntimeError, match=r"is gone, asked for .* resume from the last checkpoint"
        ) as caught:
            trainer.train()
        assert "\n" not in str(caught.value)
        differences = [entry["sampling/sampling_logp_difference/max"] for entry in trainer.state.log_history]
        assert len(differences) == 4
        assert max(differences) < 1e-4

    # What was saved is whole: another run goes on from it, without a server.
    resumed = host.trainer(
        tmp_path / "out",
        model=loaded(folder),
        max_steps=6,
        save_strategy="no",
        learning_rate=0.05,
        max_completion_length=8,
    )
    CurriculumSampler().attach(resumed)
    resumed.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-4"))
    assert resumed.state.global_step == 6


def test_the_head_of_a_server_is_fp32(tmp_path: Path) -> None:
    import requests

    from curricula_trl import CurriculumSampler
    from curricula_vllm import Server, complete, sampling, use_cpu
    from curricula_vllm.head import head_dtype

    use_cpu()
    folder = saved(tmp_path / "model", "bfloat16", tied=True)
    with Server(folder, "--max-model-len", "64", fp32_head=True, log=tmp_path / "log") as server:
        trainer = served(tmp_path, server.url, dtype="bfloat16", max_steps=1, save_strategy="no")
        trainer.train()
        assert trainer.state.log_history[0]["sampling/sampling_logp_difference/max"] < 0.2
        enlarge(trainer.model)
        trainer.vllm_generation.sync_weights()
        client = trainer.vllm_generation.vllm_client
        other = served(tmp_path, server.url, model=host.model(hidden_size=96), max_steps=1, save_strategy="no")
        with pytest.raises(CurriculaValueError, match=r"\(hidden_size 96\); got .*model \(hidden_size 64\)"):
            CurriculumSampler().attach(other)
        assert head_dtype(trainer.vllm_generation) == "float32"
        # The fewest tokens give way to a row's own limit.
        params = {**sampling(trainer.vllm_generation), "min_tokens": 5}
        done = complete(client, texts(), [3, 8, 6, 1], params)
        assert [len(row.token_ids) for row in done] == [3, len(done[1].token_ids), len(done[2].token_ids), 1]
        assert all(len(row.token_ids) >= 5 for row in done[1:3])
        asked = {"model": client.model, "prompt": texts(), "max_tokens": 4, "logprobs": 5, "temperature": 1.0}
        answer = requests.post(f"{server.url}/v1/completions", json={**asked, "return_tokens_as_token_ids": True})
        top = [at for choice in answer.json()["choices"] for at in choice["logprobs"]["top_logprobs"]]
        assert off_grid(top) > 0.1
        # Without a curriculum the update itself is what fails.
        with pytest.raises(CurriculaRuntimeError, match="if it serves another model than is trained, start it with"):
            other.train()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    from curricula_vllm import Server

    said = r"vllm serve: ended with 2 before it was ready \(.*nothing"
    with pytest.raises(CurriculaRuntimeError, match=said) as caught:
        Server(tmp_path / "nothing", log=tmp_path / "log").start()
    assert "\n" not in str(caught.value)
