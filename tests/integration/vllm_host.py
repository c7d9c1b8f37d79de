"""vLLM in tests: a tiny model on disk for it, and a run in which it generates beside the trainer.

Run as a script it trains with TRL's colocate mode: `vllm_host.py OUT.json '{"…": …}'`. A process of its own, for vLLM
takes the process it runs in: threads, process group, random numbers.
"""

import json
import sys
from pathlib import Path
from typing import Any

import host
import torch
from transformers import AutoModelForCausalLM, Gemma2Config, Gemma2ForCausalLM

# What vLLM's heads are large enough for: 32 is the smallest size that its CPU kernels know.
WIDTH = 64
# Logits of at least 16 in size, in bf16, differ by multiples of this.
GRID = 2.0**-3
_COUNTS = ("num_hidden_layers", "num_attention_heads", "num_key_value_heads")


def saved(folder: Path, dtype: str = "float32", tied: bool = False, family: str = "qwen2") -> Path:
    """A random model and its tokenizer in a folder, as `from_pretrained` and vLLM read them."""
    model = host.model(hidden_size=WIDTH, initializer_range=0.1, tie_word_embeddings=tied)
    if family == "gemma2":  # in vLLM it has no head but its embeddings
        own = model.config
        same = {name: getattr(own, name) for name in ("vocab_size", "hidden_size", "intermediate_size", *_COUNTS)}
        model = Gemma2ForCausalLM(Gemma2Config(**same, head_dim=32, pad_token_id=0, eos_token_id=1, bos_token_id=1))
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    host.tokenizer().save_pretrained(folder)
    return folder


def loaded(folder: Path, dtype: str = "float32") -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)


def texts() -> list[list[int]]:
    """Prompts of different lengths, two of them the same."""
    return host.tokenizer()(["easy:1=", "hard:22=", "hard:22=", "never:7="])["input_ids"]


def disagreement(model: Any, prompts: list[list[int]], completions: list[Any]) -> float:
    """Largest difference between the log-probabilities given with sampled tokens and the model's own."""
    worst = 0.0
    for prompt, done in zip(prompts, completions, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([prompt + done.token_ids])).logits[0].float()
        own = logits.log_softmax(-1)[len(prompt) - 1 : -1].gather(1, torch.tensor(done.token_ids)[:, None])[:, 0]
        worst = max(worst, float((own - torch.tensor(done.logprobs)).abs().max()))
    return worst


def off_grid(top: list[dict[int, float]]) -> float:
    """How far the differences of large logits lie from what bf16 can hold, in its steps: 0 for a bf16 head.

    Args:
        top: Log-probabilities of the likeliest tokens at each position.
    """
    farthest = 0.0
    for values in top:
        best = max(values.values())
        steps = torch.tensor([(best - value) / GRID for value in values.values()], dtype=torch.float64)
        farthest = max(farthest, float((steps - steps.round()).abs().max()))
    return farthest


def enlarge(model: Any) -> None:
    """Makes logits so large that bf16 would show."""
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(64.0)


def main(out: str, spec: str) -> None:
    """Trains, and looks at the generator before and after an update; rank 0 writes what it saw."""
    from peft import LoraConfig

    from curricula_trl import CurriculumSampler
    from curricula_vllm import complete, sampling, use_cpu

    options = json.loads(spec)
    folder, dtype = Path(options["folder"]), options.get("dtype", "float32")
    model = loaded(folder / "model", dtype)
    further = {"trainer": {"peft_config": LoraConfig(r=4, target_modules="all-linear")}} if options.get("lora") else {}
    result: dict[str, Any] = {"used": [use_cpu(), use_cpu()]}
    trainer = host.trainer(
        folder / "out",
        model=model,
        use_vllm=True,
        vllm_mode="colocate",
        vllm_max_model_length=64,
        max_completion_length=8,
        learning_rate=0.05,
        max_steps=3,
        generation_kwargs={"stop": options["stop"]} if "stop" in options else None,
        **further,
    )
    assert trainer.accelerator.num_processes == options.get("world_size", 1)
    sampler = CurriculumSampler()
    sampler.attach(trainer)
    told: list[Any] = []
    if trainer.accelerator.is_main_process:
        tell = sampler.curriculum.tell
        sampler.curriculum.tell = lambda outcomes: told.extend(outcomes) or tell(outcomes)
    trainer.train()
    generation = trainer.vllm_generation

    def look(limits: tuple[int, ...] = (3, 8, 8, 1)) -> tuple[float, list[Any]]:
        done = complete(generation.llm, texts(), limits, {**sampling(generation), "seed": 3})
        return disagreement(trainer.model, texts(), done), done

    result["steps"] = [entry["sampling/sampling_logp_difference/max"] for entry in trainer.state.log_history[:-1]]
    result["clipped"] = [entry["completions/clipped_ratio"] for entry in trainer.state.log_history[:-1]]
    result["told"] = [
        (int(length), bool(cut))
        for outcome in told
        for length, cut in zip(outcome.tokens, outcome.truncated, strict=True)
    ]
    result["before"], _ = look()
    generation.sync_weights()
    result["after"], done = look()
    result["again"] = look()[1] == done
    result["completions"] = [[len(row.token_ids), row.finish] for row in done]
    result["twins"] = done[1].token_ids != done[2].token_ids
    if options.get("enlarge"):
        enlarge(trainer.model)
        generation.sync_weights()
        from vllm import SamplingParams

        def seen() -> float:
            asked = SamplingParams(logprobs=5, max_tokens=4, temperature=1.0, seed=0)
            answers = generation.llm.generate(
                [{"prompt_token_ids": ids} for ids in texts()], sampling_params=asked, use_tqdm=False
            )
            return off_grid(
                [
                    {token: item.logprob for token, item in at.items()}
                    for row in answers
                    for at in row.outputs[0].logprobs
                ]
            )

        result["off grid"] = seen()
        processor = generation.llm.llm_engine.model_executor.driver_worker.model_runner.model.logits_processor
        result["head"] = str(processor.head_dtype)
        processor.head_dtype = torch.bfloat16
        result["off grid in bf16"] = seen()
    if trainer.accelerator.is_main_process:
        result["draws"] = sampler.metrics()["draws"]
        Path(out).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
