"""A real TRL trainer that is small enough for a test: a random two-layer model, four environments, real rewards.

Run as a script it trains under torchrun: `host.py OUT.json '{"…": …}'`; see `main`.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz =+:,."
ENVIRONMENTS = {"easy": 24, "frontier": 12, "hard": 24, "never": 20}


def tokenizer(alphabet: str = ALPHABET, eos: str = "<eos>", further: Sequence[str] = ()) -> PreTrainedTokenizerFast:
    """A token for each character, after padding, the end, the unknown, and further ones."""
    tokens = ["<pad>", eos, "<unk>", *further, *alphabet]
    inner = Tokenizer(models.WordLevel({token: number for number, token in enumerate(tokens)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token=eos, unk_token="<unk>", padding_side="left"
    )


def shape(**changes: Any) -> Qwen2Config:
    sizes = {
        "vocab_size": len(ALPHABET) + 3,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": None,
        "tie_word_embeddings": False,
    }
    return Qwen2Config(**{**sizes, **changes})


def model(seed: int = 0, **changes: Any) -> Qwen2ForCausalLM:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(shape(**changes))


def dataset(sizes: dict[str, int] | None = None) -> Dataset:
    rows = [
        {"prompt": f"{name}:{number}=", "environment": name, "answer": number % 10}
        for name, size in (sizes or ENVIRONMENTS).items()
        for number in range(size)
    ]
    return Dataset.from_list(rows)


def reward(completions: list[str], environment: list[str], **_: Any) -> list[float]:
    """Easy is always right, never is never, the others depend on what was generated."""
    share = {"easy": 256, "frontier": 128, "hard": 12, "never": 0}
    return [
        float(hashlib.blake2b(text.encode(), digest_size=1).digest()[0] < share.get(name, 128))
        for text, name in zip(completions, environment, strict=True)
    ]


def length(completions: list[str], **_: Any) -> list[float]:
    """Shapes rewards so that groups of equal success differ too."""
    return [-0.1 * len(text) - 0.01 * text.count("a") for text in completions]


def arguments(output: Path, **changes: Any) -> dict[str, Any]:
    return {
        "output_dir": str(output),
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 4,
        "max_steps": 4,
        "learning_rate": 1e-2,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "disable_tqdm": True,
        "temperature": 1.0,
        "beta": 0.0,
        "seed": 7,
        **changes,
    }


def trainer(output: Path, cls: type = GRPOTrainer, **changes: Any) -> Any:
    own = {
        name: changes.pop(name)
        for name in ("train_dataset", "reward_funcs", "model", "eval_dataset", "processing_class")
        if name in changes
    }
    extra = changes.pop("trainer", {})
    config = (RLOOConfig if issubclass(cls, RLOOTrainer) else GRPOConfig)(**arguments(output, **changes))
    return cls(
        model=own.get("model") or model(),
        args=config,
        reward_funcs=own.get("reward_funcs", reward),
        train_dataset=own.get("train_dataset") if "train_dataset" in own else dataset(),
        eval_dataset=own.get("eval_dataset"),
        processing_class=own.get("processing_class") or tokenizer(),
        **extra,
    )


class Trace:
    """Records what was generated for, what it earned and the advantages it got: in global order, round by round."""

    def __init__(self, host: Any) -> None:
        self.rounds: list[dict[str, Any]] = []
        trace = self

        class Traced(type(host)):  # type: ignore[misc]
            def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, ids: Any) -> Any:
                rewards = super()._calculate_rewards(inputs, prompts, completions, ids)
                if self.model.training:
                    texts, done = gather_object(list(prompts)), gather_object(list(completions))
                    trace.rounds.append(
                        {
                            "prompts": texts,
                            "completions": done,
                            "rewards": rewards.sum(dim=1).tolist(),
                            "successes": rewards[:, 0].tolist(),
                        }
                    )
                return rewards

            def _generate_and_score_completions(self, inputs: Any) -> Any:
                output = super()._generate_and_score_completions(inputs)
                if self.model.training:
                    trace.rounds[-1]["advantages"] = self.accelerator.gather(output["advantages"]).tolist()
                    trained = self.processing_class.batch_decode(output["prompt_ids"], skip_special_tokens=True)
                    trace.rounds[-1]["trained"] = [text.replace(" ", "") for text in gather_object(trained)]
                return output

        Traced.__name__ = type(host).__name__
        host.__class__ = Traced


def weights_digest(host: Any) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(host.model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def main(out: str, spec: str) -> None:
    """Trains by a JSON spec (config, arguments, resume, fault); rank 0 writes the trace and a digest of the weights."""
    from curricula_trl import CurriculumSampler

    options = json.loads(spec)
    world = options.get("world_size", 1)
    data = dataset()
    fault = options.get("fault")
    rewards = [reward, length] if options.get("shaped") else reward
    host = trainer(Path(options["output"]), **options.get("arguments", {}), train_dataset=data, reward_funcs=rewards)
    assert host.accelerator.num_processes == world, f"asked for {world} ranks, got {host.accelerator.num_processes}"
    rank = host.accelerator.process_index
    if fault == "other rows" and rank == 1:
        host.train_dataset = data.select(list(reversed(range(len(data)))))
    if fault == "fewer rows" and rank == 1:
        host.train_dataset = data.select(range(10))
    sampler = CurriculumSampler(options.get("config"))
    sampler.attach(host)
    if fault == "rank 0 fails" and rank == 0:
        ask = sampler.curriculum.ask

        def fail(n: int, **keywords: Any) -> Any:
            if host.state.global_step >= 1:
                raise OSError("planted on rank 0")
            return ask(n, **keywords)

        sampler.curriculum.ask = fail
    if fault == "other verdicts" and rank == 1:
        ranks = host._curricula.ranks
        inner = ranks.from_main

        def twist(produce: Any) -> Any:
            heard = inner(produce)
            if isinstance(heard, list) and heard and isinstance(heard[0], list):
                heard[0][0] = not heard[0][0]
            return heard

        ranks.from_main = twist
    trace = Trace(host)
    host.train(resume_from_checkpoint=options.get("resume"))
    digests = gather_object([weights_digest(host)])
    if rank == 0:
        result = {
            "rounds": trace.rounds,
            "weights": digests[0],
            "alike": len(set(digests)) == 1,
            "world_size": host.accelerator.num_processes,
            "step": host.state.global_step,
            "log": host.state.log_history,
        }
        Path(out).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
