"""The prompts of a data set as text, read when they are asked for; and the tokenizer that takes them."""

from collections.abc import Mapping, Sequence
from typing import Any

COLUMN = "prompt"


class Texts:
    """The column of prompts as a sequence of texts, for predictors of difficulty.

    A conversation is its messages, one a line, each after its role; what is not text, such as an image, is left out.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, part: slice) -> list[str]:
        return self.take(range(*part.indices(len(self))))

    def take(self, rows: Sequence[int]) -> list[str]:
        """Texts of some rows."""
        if hasattr(self._dataset, "select_columns"):
            found = self._dataset[[int(row) for row in rows]][COLUMN] if len(rows) else []
            prompts = found.to_pylist() if hasattr(found, "to_pylist") else list(found)
        else:
            prompts = [self._dataset[int(row)][COLUMN] for row in rows]
        return [text_of(prompt) for prompt in prompts]


def tokenizer_of(trainer: Any) -> Any:
    """The tokenizer of a trainer, also where a processor holds it."""
    return getattr(trainer.processing_class, "tokenizer", trainer.processing_class)


def text_of(prompt: Any) -> str:
    """A prompt as text.

    >>> text_of([{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}])
    'user: What is it?'
    """
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, Mapping):
        role = prompt.get("role")
        body = text_of(prompt.get("content", prompt.get("text")))
        return f"{role}: {body}" if role else body
    if isinstance(prompt, Sequence):
        return "\n".join(filter(None, map(text_of, prompt)))
    return ""
