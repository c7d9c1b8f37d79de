"""A frozen sentence encoder: prompts as embeddings, and what they say of difficulty."""

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer

from curricula import CurriculaValueError, PromptPool
from curricula.errors import described
from curricula.predictors import Dense
from curricula.predictors.params import whole, words
from curricula.predictors.texts import read_texts
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_LONGEST = 512


class Embeddings:
    """Mean of a model's last hidden states over a prompt's tokens, of length 1.

    An embedding is computed when a row is first asked for, in batches of prompts of like length, and kept as float16:
    the newest `cache` rows. They are part of the state, since an embedding depends in its last digits on the prompts
    that shared its batch.

    Args:
        pool: With texts.
        model: A folder, a hub id, or `package:folder` for a folder inside an installed Python package.
        cache: Embeddings that are kept.
        batch_size: Prompts that are encoded at once.
        device: Where the model runs.

    Raises:
        CurriculaValueError: A pool without texts, or a model that cannot be loaded.
    """

    def __init__(self, pool: PromptPool, model: str, cache: int, batch_size: int, device: str) -> None:
        if pool.texts is None:
            raise CurriculaValueError("frozen_encoder: expected a pool with texts, to encode them; got one without")
        self._texts, self._prompts = pool.texts, len(pool)
        self._cache_size, self._batch_size = whole("cache", cache), whole("batch_size", batch_size)
        self._device = words("device", device)
        self._model, self._tokenizer = _load(words("model", model), device)
        self._longest = min(int(self._tokenizer.model_max_length), _LONGEST)
        self.width = int(self._model.config.hidden_size)
        self._kept: dict[int, NDArray[np.float16]] = {}

    def matrix(self, rows: Rows) -> Floats:
        """Embeddings of rows (M,), shape (M, D)."""
        wanted: list[int] = rows.tolist()
        fresh = self._encode([row for row in dict.fromkeys(wanted) if row not in self._kept])
        vectors = [fresh[row] if row in fresh else self._kept[row] for row in wanted]
        self._kept |= fresh
        while len(self._kept) > self._cache_size:
            del self._kept[next(iter(self._kept))]
        return np.array(vectors, dtype=np.float64).reshape(len(wanted), self.width)

    def state_dict(self) -> dict[str, Any]:
        """The embeddings that are kept, oldest first."""
        rows = np.fromiter(self._kept, dtype=np.int64, count=len(self._kept))
        vectors = np.array(list(self._kept.values()), dtype=np.float16).reshape(len(rows), self.width)
        return {"rows": rows, "vectors": vectors}

    def load(self, state: Reader) -> None:
        """Take over saved embeddings; raises CheckpointError where they cannot be right."""
        rows = state.array("rows", np.int64, (None,), high=self._prompts - 1)
        state.ensure("rows", "distinct rows", len(set(rows.tolist())) == rows.size)
        vectors = state.array("vectors", np.float16, (rows.size, self.width), low=-2.0, high=2.0)
        self._kept = dict(zip(rows.tolist(), vectors, strict=True))

    def _encode(self, rows: list[int]) -> dict[int, NDArray[np.float16]]:
        texts = dict(zip(rows, read_texts(self._texts, rows), strict=True))
        ordered = sorted(rows, key=lambda row: len(texts[row]))
        result: dict[int, NDArray[np.float16]] = {}
        for start in range(0, len(ordered), self._batch_size):
            batch = ordered[start : start + self._batch_size]
            vectors = self._embed([texts[row] for row in batch])
            result |= zip(batch, vectors, strict=True)
        return result

    def _embed(self, texts: list[str]) -> NDArray[np.float16]:
        with torch.inference_mode():
            tokens = self._tokenizer(
                texts, padding=True, truncation=True, max_length=self._longest, return_tensors="pt"
            ).to(self._device)
            hidden = self._model(**tokens).last_hidden_state.float()
            mask = tokens["attention_mask"][..., None].float()
            means = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1.0)
            return torch.nn.functional.normalize(means, dim=1).cpu().numpy().astype(np.float16)


class FrozenEncoder(Dense):
    """Ridge and kernel regression on the embeddings of a sentence encoder that is not trained.

    On maths prompts an embedding tells difficulty about as well as hashed words do, and something else: their stack
    is better than either. It costs a forward pass of the encoder for each prompt that is considered, in the background.

    Args:
        pool: With texts.
        model: A folder, a hub id, or `package:folder` for a folder inside an installed Python package.
        cache: Embeddings that are kept, in memory and in checkpoints: 65,536 of 384 numbers are 50 MB.
        batch_size: Prompts that are encoded at once.
        device: Where the encoder runs, such as cpu or cuda:0.

    Raises:
        CurriculaValueError: A pool without texts, or a model that cannot be loaded.
    """

    def __init__(
        self, pool: PromptPool, model: str, cache: int = 65_536, batch_size: int = 32, device: str = "cpu"
    ) -> None:
        self.embeddings = Embeddings(pool, model, cache, batch_size, device)
        super().__init__(pool, self.embeddings)

    def state_dict(self) -> dict[str, Any]:
        """What was learned, and the embeddings that are kept."""
        return super().state_dict() | {"embeddings": self.embeddings.state_dict()}

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        self.embeddings.load(state.section("embeddings"))
        super().load(state)


@lru_cache(maxsize=2)
def _load(model: str, device: str) -> tuple[Any, Any]:
    # Frozen, so whoever names the same model may share it: a curriculum that is resumed builds its parts again.
    package, _, inside = model.partition(":")
    place = model
    if inside and not Path(model).exists():
        spec = importlib.util.find_spec(package) if package.isidentifier() else None
        if spec is None or not spec.submodule_search_locations:
            raise CurriculaValueError(
                f"frozen_encoder.model: expected a folder, a hub id, or package:folder of an installed package; got "
                f"{model!r}; install {package}, or check the path"
            )
        place = str(Path(spec.submodule_search_locations[0]) / inside)
    # Building a model draws from torch's global generator.
    with torch.random.fork_rng(devices=[]):
        try:
            loaded = AutoModel.from_pretrained(place), AutoTokenizer.from_pretrained(place)
        # What lies there decides what is raised: a file that is not there, or broken, or of another kind.
        except Exception as error:
            reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
            raise CurriculaValueError(f"frozen_encoder.model: cannot load {model!r}: {reason}") from error
    try:
        return loaded[0].eval().requires_grad_(False).to(device), loaded[1]
    except (RuntimeError, AssertionError) as error:
        message = f"frozen_encoder.device: expected a device of torch, such as cpu; got {device!r} ({described(error)})"
        raise CurriculaValueError(message) from error
