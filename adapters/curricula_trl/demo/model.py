"""A language model of 0.4 M parameters that really learns, built and warmed up on the spot.

`warm_up` teaches it short running sums by ordinary supervised steps; reinforcement learning then meets
environments that are mastered, half known and unknown, as it does with a pretrained policy.
"""

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from curricula_trl.demo.task import MIX, VOCABULARY, WIDTH, answer_of, prompt_of, random_digits

NEW_TOKENS = 10
"""Room for eight digits, the end, and one mistake."""

WARM_UP_STEPS = 240
"""Supervised steps on short numbers; the lessons on longer ones come after."""

# How often the warm-up shows numbers of 1, 2, 3, ... digits: first short ones only, then all lengths alike.
_SHORT = (1, 1, 2, 2)
_ALL = (1,) * WIDTH
_FRONTIER_PASS_RATE = 0.2
_IGNORED = -100


def build_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer with one token per character.

    >>> tokenizer = build_tokenizer()
    >>> tokenizer.decode(tokenizer("3571____=")["input_ids"])
    '3571____='
    """
    backend = Tokenizer(models.WordLevel({token: i for i, token in enumerate(VOCABULARY)}, unk_token="<pad>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
    backend.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",
        eos_token="<eos>",
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )


def build_model(seed: int) -> Qwen2ForCausalLM:
    """The untrained model: the same for the same seed; torch's global generator is left as it was."""
    config = Qwen2Config(
        vocab_size=len(VOCABULARY),
        hidden_size=96,
        intermediate_size=288,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=64,
        tie_word_embeddings=False,
        # So small a model learns several times faster from larger weights than from the usual 0.02.
        initializer_range=0.1,
        pad_token_id=VOCABULARY.index("<pad>"),
        eos_token_id=VOCABULARY.index("<eos>"),
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(config)


def warm_up(model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerFast, seed: int, steps: int = WARM_UP_STEPS) -> None:
    """Teaches the model short running sums, in place, until it knows a fifth of the frontier.

    How far a policy gets beyond the lengths it was shown differs from seed to seed, so the second part ends
    at a measured pass rate and not after a number of steps. It takes about 15 CPU seconds, and no global
    generator is used.

    Args:
        model: The model, changed in place.
        tokenizer: Its tokenizer.
        seed: Seed of the examples.
        steps: Optimiser steps of the first part, of 64 examples each.
    """
    generator = np.random.default_rng([seed, 0])
    model.train()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(steps):
        rate = 2e-3 * min(1.0, (step + 1) / 20) * 0.5 * (1 + np.cos(np.pi * step / steps))
        _learn(model, tokenizer, optimizer, rate, generator, _SHORT)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(steps):
        if step % 5 == 0 and _frontier_pass_rate(model, tokenizer, generator) >= _FRONTIER_PASS_RATE:
            break
        _learn(model, tokenizer, optimizer, 3e-4 * min(1.0, (step + 1) / 20), generator, _ALL)


def _learn(
    model: Qwen2ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    optimizer: torch.optim.Optimizer,
    rate: float,
    generator: np.random.Generator,
    weights: tuple[int, ...],
) -> None:
    optimizer.param_groups[0]["lr"] = rate
    lengths = generator.choice(len(weights), size=64, p=np.array(weights) / sum(weights)) + 1
    inputs, labels = _batch([random_digits(generator, n) for n in lengths], tokenizer)
    model(input_ids=inputs, labels=labels).loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def _frontier_pass_rate(
    model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerFast, generator: np.random.Generator
) -> float:
    low, high = next(environment.digits for environment in MIX if environment.name == "frontier")
    numbers = [random_digits(generator, n) for n in generator.integers(low, high + 1, 128)]
    given = complete(model, tokenizer, [prompt_of(n) for n in numbers], sample_seed=int(generator.integers(2**31)))
    return float(np.mean([answer == answer_of(n) for answer, n in zip(given, numbers, strict=True)]))


def _batch(numbers: list[str], tokenizer: PreTrainedTokenizerFast) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids (B, T), padded on the right, and labels (B, T) that score the answer and the end only."""
    rows = [[*tokenizer(prompt_of(n) + answer_of(n))["input_ids"], tokenizer.eos_token_id] for n in numbers]
    width, asked = max(map(len, rows)), len(prompt_of(""))
    inputs = torch.full((len(rows), width), VOCABULARY.index("<pad>"))
    labels = torch.full((len(rows), width), _IGNORED)
    for i, row in enumerate(rows):
        inputs[i, : len(row)] = torch.tensor(row)
        labels[i, asked : len(row)] = inputs[i, asked : len(row)]
    return inputs, labels


@torch.no_grad()
def complete(
    model: Qwen2ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[str],
    sample_seed: int | None = None,
) -> list[str]:
    """One completion per prompt: the likeliest tokens, or a sample at temperature 1.

    Args:
        model: The model; left in the mode (training or evaluation) it came in.
        tokenizer: Its tokenizer.
        prompts: Prompts of one length.
        sample_seed: Seed to sample with; None takes the likeliest tokens.

    Returns:
        The text of each completion, without the end token.
    """
    training = model.training
    model.eval()
    inputs = tokenizer(prompts, return_tensors="pt", return_token_type_ids=False).to(model.device)
    options: dict[str, object] = {"do_sample": False}
    if sample_seed is not None:
        options = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(sample_seed or 0)
        tokens = model.generate(**inputs, max_new_tokens=NEW_TOKENS, **options)
    model.train(training)
    return tokenizer.batch_decode(tokens[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
