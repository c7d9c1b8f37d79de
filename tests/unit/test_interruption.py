"""The parts of forced length interruption: limits, the end of the thinking, the joins."""

import math

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from curricula import CurriculaRuntimeError
from curricula_trl.interruption.masking import mask_forced
from curricula_trl.interruption.plan import Plan
from curricula_trl.interruption.rollouts import Begun, Forced, begun, joined, within
from curricula_trl.interruption.thinking import Thinking, token_ids

TEXTS = ["<think> so 2 and 2 make 4 </think>\n\nThe answer is 4.", "a < b and c > d, so think / again"] * 8


def bytes_tokenizer(
    special: str | None = None, texts: list[str] = TEXTS, words: bool = True
) -> PreTrainedTokenizerFast:
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=words)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    inner.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|end|>", pad_token="<|pad|>")
    if special is not None:
        tokenizer.add_special_tokens({"additional_special_tokens": [special]})
    return tokenizer


def words_tokenizer() -> PreTrainedTokenizerFast:
    tokens = ["<pad>", "<eos>", "<unk>", "</think>", "think", "so", "it", "is", "four"]
    inner = Tokenizer(models.WordLevel({token: number for number, token in enumerate(tokens)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def test_limits_are_even_and_the_same_however_many_rows_follow() -> None:
    many = Plan(5, (3, 7)).limits(2, 20000)
    counts = np.bincount(many, minlength=8)
    assert counts[:3].sum() == 0
    assert np.abs(counts[3:] - 4000).max() < 5 * math.sqrt(20000 * 0.2 * 0.8)
    for total in (1, 7, 16):
        assert Plan(5, (3, 7)).limits(2, total) == many[:total]
    assert Plan(5, (4, 4)).limits(0, 3) == [4, 4, 4]


def test_rounds_versions_and_seeds_differ_and_a_resumed_plan_goes_on() -> None:
    plan = Plan(5, (1, 1000))
    drawn = [plan.limits(version, 8) for version in (0, 0, 1, 1, 1, 2)]
    assert len({tuple(limits) for limits in drawn}) == 6
    assert Plan(5, (1, 1000)).limits(1, 8) == drawn[2]
    assert Plan(6, (1, 1000)).limits(0, 8) != drawn[0]


@pytest.mark.parametrize("special", [None, "</think>"])
@pytest.mark.parametrize("answer", ["\n\n4", ">4", "", " 4 </think> 5"])
def test_the_end_of_the_thinking_is_where_its_text_ends(special: str | None, answer: str) -> None:
    tokenizer = bytes_tokenizer(special)
    thinking = Thinking(tokenizer, "</think>")
    before = "so 2 and 2 make é 4 "
    tokens = token_ids(tokenizer, before + "</think>" + answer)
    end = thinking.end(tokens)
    assert end is not None
    assert "</think>" in tokenizer.decode(tokens[:end])
    assert "</think>" not in tokenizer.decode(tokens[: end - 1])
    assert thinking.end(token_ids(tokenizer, before + "</thin k>" + answer.replace("</think>", ""))) is None


def test_a_tag_in_other_pieces_than_the_tokenizers_own_is_seen() -> None:
    tokenizer = bytes_tokenizer("</think>")
    thinking = Thinking(tokenizer, "</think>")
    pieces = [piece for part in ("so ", "<", "/", "th", "ink", ">\n") for piece in token_ids(tokenizer, part)]
    assert token_ids(tokenizer, "</think>")[0] not in pieces
    assert thinking.end(pieces) == len(pieces) - (1 if tokenizer.decode(pieces[-1:]) == "\n" else 0)
    assert thinking.end([*pieces, *token_ids(tokenizer, "x</think>")]) == thinking.end(pieces)


def test_a_tag_joined_to_what_follows_is_seen() -> None:
    tokenizer = bytes_tokenizer(texts=["</think>\n\n"] * 50, words=False)
    whole = token_ids(tokenizer, "a</think>\n\nb")
    assert [tokenizer.decode(token) for token in whole] == ["a", "</think>\n\n", "b"]
    assert Thinking(tokenizer, "</think>").end(whole) == 2


def test_a_decoder_that_puts_spaces_between_tokens_does_not_hide_the_tag() -> None:
    tokenizer = words_tokenizer()
    tokens = token_ids(tokenizer, "so it is so </think> four </think>")
    assert Thinking(tokenizer, "</think>").end(tokens) == 5
    assert Thinking(tokenizer, "so it").end(tokens) == 2
    assert Thinking(tokenizer, "").end(tokens) is None


def test_a_prompt_that_closes_the_thinking_is_told_from_one_that_opens_it() -> None:
    tokenizer = bytes_tokenizer("</think>")
    thinking = Thinking(tokenizer, "</think>")
    assert thinking.is_closed(token_ids(tokenizer, "What is 2+2?<think>\n\n</think>\n\n"))
    assert not thinking.is_closed(token_ids(tokenizer, "<think> so </think> 4. What is 3+3?<think>\n"))
    assert not Thinking(tokenizer, "").is_closed(token_ids(tokenizer, "What?"))


LOGPS = [-0.1, -0.2, -0.3, -0.4, -0.5, -0.6]


@pytest.mark.parametrize(
    ("limit", "closed", "ended", "kept", "interrupted", "budget", "full"),
    [
        (6, None, False, 6, True, 3, False),  # still thinks
        (6, None, True, 6, False, 0, False),  # ended just there
        (8, None, False, 6, False, 0, False),  # an engine stopped it before its limit
        (6, 5, False, 6, False, 2, False),  # closed a token ago
        (6, 6, False, 6, False, 3, False),
        (6, 3, False, 6, False, 0, True),  # the answer is used up
        (6, 1, False, 4, False, 0, True),  # and more than that
        (8, 2, True, 5, False, 0, True),  # an ended one too
        (8, 4, True, 6, False, 0, False),
        (8, 4, False, 6, False, 0, False),  # a stop string within the answer
        (6, 0, False, 3, False, 0, True),  # the prompt had closed it
    ],
)
def test_what_becomes_of_a_rollout_at_its_limit(
    limit: int, closed: int | None, ended: bool, kept: int, interrupted: bool, budget: int, full: bool
) -> None:
    tokens = [10, 11, 12, 13, 14, 15]
    part = begun(tokens, LOGPS, limit=limit, closed=closed, ended=ended, answer=3, sentence=[8, 9])
    assert part == Begun(tokens[:kept], LOGPS[:kept], (8, 9) if interrupted else (), budget, full)


@pytest.mark.parametrize(
    ("prompt", "longest", "interrupted", "budget", "full"),
    [
        (16, None, True, 5, False),
        (16, 25, True, 5, False),
        (16, 23, True, 3, False),
        (16, 20, False, 0, True),  # no room for an answer: nothing is put in
        (16, 18, False, 0, True),
    ],
)
def test_an_answer_gets_what_room_the_engine_has(
    prompt: int, longest: int | None, interrupted: bool, budget: int, full: bool
) -> None:
    part = Begun([1, 2], None, (8, 9), 5, False)
    assert within(part, prompt, longest) == Begun([1, 2], None, (8, 9) if interrupted else (), budget, full)


@pytest.mark.parametrize(("longest", "full"), [(None, False), (19, False), (18, True)])
def test_a_rollout_that_fills_the_engine_is_full(longest: int | None, full: bool) -> None:
    assert within(Begun([1, 2], None, (), 0, False), 16, longest) == Begun([1, 2], None, (), 0, full)


def test_joins_keep_tokens_and_log_probabilities_together() -> None:
    forced = joined(Begun([1, 2], [-1.0, -2.0], (8, 9), 2, False), [3, 4], [-3.0, None])
    assert (forced.tokens, forced.forced, forced.full) == ([1, 2, 8, 9, 3, 4], Forced(2, (8, 9)), True)
    assert forced.logps is not None
    assert [value for value in forced.logps if value is not None and not math.isnan(value)] == [-1.0, -2.0, -3.0]
    assert all(math.isnan(value) for value in forced.logps[2:4] if value is not None)
    assert not joined(Begun([1, 2], None, (8, 9), 2, False), [3], None).full
    assert joined(Begun([1, 2], None, (), 0, True), [], None).full
    free = joined(Begun([1, 2], [-1.0, -2.0], (), 1, False), [3], [-3.0])
    assert (free.tokens, free.logps, free.forced) == ([1, 2, 3], [-1.0, -2.0, -3.0], None)
    assert joined(Begun([1], None, (8,), 1, False), [3], None).logps is None


def output(**more: torch.Tensor) -> dict[str, torch.Tensor]:
    ids = torch.tensor([[5, 8, 9, 6, 0], [5, 6, 7, 8, 9]])
    return {"completion_ids": ids, "completion_mask": torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]), **more}


def test_what_was_put_in_is_masked_and_has_numbers() -> None:
    nan = math.nan
    sampled = torch.tensor([[-1.0, nan, nan, -2.0, 0.0], [-1.0, nan, -3.0, -4.0, -5.0]])
    known = -torch.arange(10.0).reshape(2, 5)
    tools = torch.tensor([[1, 1, 1, 0, 1], [1, 1, 1, 1, 1]])
    for changes, filled in (({}, 0.0), ({"old_per_token_logps": known}, known[0, 1:3])):
        made = output(sampling_per_token_logps=sampled.clone(), tool_mask=tools.clone(), **changes)
        mask_forced(made, [Forced(1, (8, 9)), None])
        assert made["tool_mask"].tolist() == [[1, 0, 0, 0, 1], [1, 1, 1, 1, 1]]
        assert made["completion_mask"].tolist() == output()["completion_mask"].tolist()
        expected = sampled.clone()
        expected[0, 1:3] = filled
        assert torch.allclose(made["sampling_per_token_logps"], expected, equal_nan=True)
        assert tools.tolist() == [[1, 1, 1, 0, 1], [1, 1, 1, 1, 1]]
    plain = output()
    mask_forced(plain, [None, None])
    assert plain["tool_mask"].tolist() == [[1] * 5] * 2


@pytest.mark.parametrize("forced", [[None, Forced(1, (8, 9))], [Forced(0, (8, 9)), None], [None]])
def test_rows_that_were_moved_are_noticed(forced: list[Forced | None]) -> None:
    with pytest.raises(CurriculaRuntimeError, match=r"^interruption: (rollouts were moved|expected 1 rollouts)"):
        mask_forced(output(), forced)
