"""A tiny trainer whose rollouts are interrupted, and a record of what it trained on.

Run as a script it trains under torchrun: `interruption_host.py OUT.json '{"…": …}'`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import host
import torch
from accelerate.utils import gather_object
from host import ALPHABET, shape, tokenizer, weights_digest
from transformers import Qwen2ForCausalLM
from trl import GRPOTrainer

from curricula_trl import CurriculumSampler

LETTERS = ALPHABET + "</>\n"
SENTENCE = ", time is up.</t>"
MIX = {"interruption": {"at": [3, 7], "answer": 5, "sentence": SENTENCE, "closing": "."}, "seed": 3}
"""The closing tag is a character, so that a random model closes its thinking now and then."""


TOKENIZER = tokenizer(LETTERS)
FORCED = TOKENIZER(SENTENCE)["input_ids"]
(CLOSING,) = TOKENIZER(".")["input_ids"]
ENDS = {TOKENIZER.eos_token_id, TOKENIZER.pad_token_id}


def model(seed: int = 0, further: int = 0, **changes: Any) -> Qwen2ForCausalLM:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(shape(vocab_size=len(LETTERS) + 3 + further, initializer_range=0.2, **changes))


def trainer(folder: Path, **changes: Any) -> GRPOTrainer:
    own = {"max_completion_length": 32, "max_steps": 3, "learning_rate": 1e-3}
    parts = {"model": changes.pop("model", None) or model()}
    parts["processing_class"] = changes.pop("processing_class", None) or tokenizer(LETTERS)
    return host.trainer(folder, **{**own, **parts, **changes})


class Record:
    """What TRL returned and the curriculum masked: rows in global order, round by round."""

    def __init__(self, host: Any) -> None:
        self.rounds: list[list[dict[str, Any]]] = []
        self.outputs: list[dict[str, Any]] = []
        inner = host._curricula.interruption.finish

        def finish(trainer: Any, output: dict[str, Any]) -> Any:
            ends = inner(trainer, output)
            rows = [_row(output, number, found) for number, found in enumerate(ends.interrupted)]
            self.outputs.append(dict(output))
            self.rounds.append(gather_object(rows))
            return ends

        host._curricula.interruption.finish = finish


def _row(output: dict[str, Any], number: int, interrupted: bool) -> dict[str, Any]:
    prompt = output["prompt_ids"][number][output["prompt_mask"][number].bool()].tolist()
    length = int((output["completion_mask"][number]).sum())
    row = {"prompt": prompt, "tokens": output["completion_ids"][number][:length].tolist(), "interrupted": interrupted}
    row["mask"] = output["tool_mask"][number][:length].tolist()
    for name in ("old_per_token_logps", "sampling_per_token_logps"):
        if name in output:
            row[name] = output[name][number][:length].tolist()
    return row


def check_row(row: dict[str, Any], limit: int, answer: int) -> str:
    """Checks a row against the plan alone, and returns how it ended."""
    tokens, thought = row["tokens"], row["tokens"][:limit]
    assert 1 <= len(tokens) <= limit + len(FORCED) + answer
    still = len(thought) == limit and CLOSING not in thought and thought[-1] not in ENDS
    assert row["interrupted"] == still
    if still:
        assert tokens[limit : limit + len(FORCED)] == FORCED
        rest = tokens[limit + len(FORCED) :]
        assert row["mask"] == [1] * limit + [0] * len(FORCED) + [1] * len(rest)
        assert 1 <= len(rest) <= answer
        assert len(rest) == answer or rest[-1] in ENDS
        return "interrupted"
    assert row["mask"] == [1] * len(tokens)
    if CLOSING in thought:
        closed = thought.index(CLOSING) + 1
        assert len(tokens) <= closed + answer
        assert len(tokens) == closed + answer or tokens[-1] in ENDS
        return "closed"
    assert tokens[-1] in ENDS
    return "ended"


def main(out: str, spec: str) -> None:
    """Trains by a JSON spec (config, arguments, model, resume); rank 0 writes the rounds and a digest of weights."""
    options = json.loads(spec)
    arguments = options.get("arguments", {})
    if arguments.get("use_vllm"):
        from curricula_vllm import use_cpu

        use_cpu()
    if "model" in options:
        arguments["model"] = Qwen2ForCausalLM.from_pretrained(options["model"], dtype="float32")
    host = trainer(Path(options["output"]), **arguments)
    assert host.accelerator.num_processes == options["world_size"]
    if client := getattr(getattr(host, "vllm_generation", None), "vllm_client", None):
        client.generate = None  # it would send one prompt for each group
    sampler = CurriculumSampler({**MIX, **options.get("config", {})}).attach(host)
    record = Record(host)
    host.train(resume_from_checkpoint=options.get("resume"))
    digests = gather_object([weights_digest(host)])
    if host.accelerator.process_index == 0:
        result = {
            "rounds": record.rounds,
            "items": [int(output["num_items_in_batch"]) for output in record.outputs],
            "weights": digests[0],
            "alike": len(set(digests)) == 1,
            "world_size": host.accelerator.num_processes,
            "metrics": sampler.metrics(),
        }
        Path(out).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
