"""What the processes do. Each takes the plan and what earlier ones found, and returns JSON."""

import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from curricula.errors import CurriculaRuntimeError, CurriculaValueError, described
from curricula_vllm.precision.plan import DTYPES, HEADS, Plan

_STEP_TOKENS = 512  # of a step, at most: it is about what is computed, not about what is learned
_SCALES = [2.0**power for power in range(16, -1, -1)]  # a loss scaler's first, halved at each overflow


def tokens(plan: Plan, _: Mapping[str, Any]) -> dict[str, Any]:
    """Prompts as token ids."""
    from transformers import AutoConfig, AutoTokenizer

    try:
        config = AutoConfig.from_pretrained(plan.model)
        tokenizer: Any = AutoTokenizer.from_pretrained(plan.model)
    except (OSError, ValueError) as error:
        raise CurriculaValueError(
            f"MODEL: expected a model that transformers can load; got {plan.model!r}: {described(error)}"
        ) from error
    chat = plan.chat and tokenizer.chat_template is not None
    found = []
    for prompt in plan.prompts:
        turns = [{"role": "user", "content": prompt}] if chat and isinstance(prompt, str) else prompt
        if isinstance(turns, str):
            ids = list(tokenizer(turns)["input_ids"])
        elif tokenizer.chat_template is None:
            raise CurriculaValueError("--prompts: expected texts for a model without a chat template; got messages")
        else:
            asked = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=True)
            ids = list(asked["input_ids"])
        found.append(ids)
    text = config.get_text_config()
    room = getattr(text, "max_position_embeddings", None)
    longest, shortest = max(map(len, found)), min(map(len, found))
    if shortest == 0:
        raise CurriculaValueError("--prompts: expected at least a token in each prompt; got one without")
    if room is not None and longest + plan.tokens > room:
        raise CurriculaValueError(
            f"--tokens: expected at most {room - longest}, the model's {room} less the longest prompt's; got "
            f"{plan.tokens}: lower it, or give shorter prompts"
        )
    return {"prompts": found, "context": longest + plan.tokens}


def generate(plan: Plan, found: Mapping[str, Any]) -> dict[str, Any]:
    """Samples completions by vLLM, whose head the environment has set (CURRICULA_FP32_HEAD)."""
    from curricula_vllm.cpu import has_accelerator

    # The engine in this process, which is its own.
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    here: dict[str, Any] = {} if has_accelerator() else {"enforce_eager": True}
    if "enforce_eager" in here:
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    from vllm import LLM

    from curricula_vllm.client import complete
    from curricula_vllm.head import head_dtype

    prompts = found["tokens"]["prompts"]
    here |= {"dtype": DTYPES[found["dtype"]], "max_model_len": found["tokens"]["context"], "seed": plan.seed}
    llm = LLM(model=plan.model, **here)
    head = head_dtype(SimpleNamespace(mode="colocate", llm=llm))
    if head not in ("", DTYPES[found["head"]]):
        raise CurriculaRuntimeError(f"expected a head in {DTYPES[found['head']]}; vLLM computes it in {head}")
    asked = {"temperature": 1.0, "seed": plan.seed}
    rows = complete(llm, prompts, [plan.tokens] * len(prompts), asked)
    return {"tokens": [row.token_ids for row in rows], "logprobs": [row.logprobs for row in rows]}


def recompute(plan: Plan, found: Mapping[str, Any]) -> dict[str, Any]:
    """Log-probabilities of what each generator sampled, by transformers in one dtype, for each head."""
    import torch

    from curricula_vllm.precision.model import arithmetic, head_in_fp32, load, logits_of, logprobs_of

    model = load(plan.model)

    def of(rows: list[Any]) -> list[list[float]]:
        with torch.no_grad(), arithmetic(found["dtype"]):
            return [logprobs_of(logits_of(model, row), row).tolist() for row in rows]

    done: dict[str, Any] = {}
    for head in found["heads"]:
        try:
            samples = {key: _rows(found, sample) for key, sample in found["samples"].items()}
            if head == HEADS[0]:
                done[head] = {key: of(rows) for key, rows in samples.items()}
            else:
                with head_in_fp32(model):
                    done[head] = {key: of(rows) for key, rows in samples.items()}
        except Exception as error:  # what a device or build cannot do is a row that says so
            done[head] = {"error": described(error)}
    return done


def step(plan: Plan, found: Mapping[str, Any]) -> dict[str, Any]:
    """A policy-gradient step in fp16 by autocast: whether logits and gradients are finite, and at which loss scale."""
    from curricula_vllm.precision.model import arithmetic, few, load, policy_loss

    model = load(plan.model)
    rows = few(_rows(found, found["sample"]), _STEP_TOKENS)
    logits = gradients = False
    scale = _SCALES[0]
    for scale in _SCALES:
        model.zero_grad()

        def backward(loss: Any, scale: float = scale) -> None:
            (loss * scale).backward()

        with arithmetic("fp16"):
            logits = policy_loss(model, rows, backward)
        gradients = all(bool(weight.grad.isfinite().all()) for weight in model.parameters() if weight.grad is not None)
        if gradients or not logits:
            break
    return {
        "logits": logits,
        "gradients": gradients,
        "scale": scale,
        "tokens": sum(len(row.completion) for row in rows),
    }


def updates(plan: Plan, found: Mapping[str, Any]) -> dict[str, Any]:
    """Small updates in copies of fewer bits; see `curricula_vllm.precision.updates`."""
    from curricula_vllm.precision.model import few, load
    from curricula_vllm.precision.updates import lost_updates

    rows = few(_rows(found, found["sample"]), _STEP_TOKENS)
    return lost_updates(load(plan.model), rows, plan.learning_rate, plan.steps)


def _rows(found: Mapping[str, Any], sample: Mapping[str, Any]) -> list[Any]:
    from curricula_vllm.precision.model import Row

    return [Row(*pair) for pair in zip(found["tokens"]["prompts"], sample["tokens"], strict=True)]


JOBS = {"tokens": tokens, "generate": generate, "recompute": recompute, "step": step, "updates": updates}
