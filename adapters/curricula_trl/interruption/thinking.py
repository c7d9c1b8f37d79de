"""Where the thinking ends in a rollout."""

from collections.abc import Sequence
from typing import Any


class Thinking:
    r"""Finds the tag that ends the thinking.

    First by its own token ids, which is exact whatever a decoder puts between tokens; then in the decoded text, since a
    policy may also write the tag in other pieces than the tokenizer would, or joined to what stands beside it
    (`</`, `think`, `>\n\n`), and whoever reads the text sees it closed there.

    Args:
        tokenizer: Of the policy.
        closing: The tag; empty where there is none.
    """

    def __init__(self, tokenizer: Any, closing: str) -> None:
        self._tokenizer, self._closing = tokenizer, closing
        self._tag: list[int] = token_ids(tokenizer, closing) if closing else []

    def end(self, tokens: Sequence[int]) -> int | None:
        """Tokens up to and with the first tag; None while there is none."""
        if not self._closing:
            return None
        whole = self._by_ids(tokens)
        if whole is None:
            return self._by_text(tokens)
        before = self._by_text(tokens[: whole - 1])
        return whole if before is None else before

    def is_closed(self, prompt: Sequence[int]) -> bool:
        """Whether a prompt ends with the tag: a template without thinking closes it before it begins."""
        tail = prompt[-len(self._tag) - 4 :]
        return bool(self._closing) and self._text(tail).rstrip().endswith(self._closing)

    def _by_ids(self, tokens: Sequence[int]) -> int | None:
        place, size, values = -1, len(self._tag), list(tokens)
        while self._tag:
            try:
                place = values.index(self._tag[0], place + 1)
            except ValueError:
                return None
            if values[place : place + size] == self._tag:
                return place + size
        return None

    def _by_text(self, tokens: Sequence[int]) -> int | None:
        if self._closing not in self._text(tokens):
            return None
        without, with_tag = 0, len(tokens)
        while with_tag - without > 1:
            middle = (without + with_tag) // 2
            if self._closing in self._text(tokens[:middle]):
                with_tag = middle
            else:
                without = middle
        return with_tag

    def _text(self, tokens: Sequence[int]) -> str:
        # The tag may be a special token, and spaces are not to be tidied away.
        return self._tokenizer.decode(list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False)


def token_ids(tokenizer: Any, text: str) -> list[int]:
    """The tokens of a text alone, without a beginning or an end."""
    return [int(token) for token in tokenizer(text, add_special_tokens=False)["input_ids"]]
