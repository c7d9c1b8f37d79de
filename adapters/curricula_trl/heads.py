"""Whether the generator's head is the one it was sent: looked at after each update of its weights.

A stale head is the fault that an update leaves behind in silence, as in copies of a tied or a packed one. What is sent
goes past here whole, gathered and merged as TRL does for FSDP, DeepSpeed and adapters; some of it is kept. Once the
update is done, and before an engine with a sleep mode has slept, the engine is asked what it holds at the same places:
in this process its part of a head that is split, or by a server all parts, while it begins to generate. They have to be
the same, to the bit.
"""

import queue
import threading
from collections.abc import Iterator
from typing import Any

import torch

ROWS, COLUMNS = 128, 8
"""How much of a head is compared, spread over it."""

_NO_EXTENSION = (
    "the server does not show its head: `python -m curricula_vllm serve` does, as does --worker-extension-cls "
    "curricula_vllm.reading.Extension"
)


class Heads:
    """Looks at one generator of TRL's, until it is closed.

    Args:
        generation: TRL's `VLLMGeneration`.
        name: Of the head's weight, as it is sent; None where the model has no such weight.
        is_main: Whether this rank speaks with the server, where there is one.
    """

    def __init__(self, generation: Any, name: str | None, is_main: bool) -> None:
        self._generation, self._name = generation, name
        self._asks = is_main or generation.mode == "colocate"
        self._closed = False
        self._may_ask: bool | None = None
        self._sent: torch.Tensor | None = None
        self._rows: torch.Tensor | None = None
        self._columns: torch.Tensor | None = None
        self._found: bool | Exception | None = None
        self._why = ""
        self._box: queue.SimpleQueue[bool | Exception | None] | None = None
        if isinstance(other := getattr(generation.sync_weights, "__self__", None), Heads):
            other.close()  # of an attach that failed later on
        self._params, self._sync = generation._iter_named_params, generation.sync_weights
        self._own = {name: value for name, value in vars(generation).items() if name in self._ours}
        vars(generation).update(self._ours)

    @classmethod
    def of(cls, trainer: Any, is_main: bool) -> "Heads | None":
        """Of a trainer; None where there is nothing to look at."""
        generation = getattr(trainer, "vllm_generation", None) if getattr(trainer, "use_vllm", False) else None
        if not all(hasattr(generation, method) for method in ("_iter_named_params", "sync_weights")):
            return None
        return cls(generation, head_name(trainer.accelerator.unwrap_model(trainer.model)), is_main)

    def is_stale(self) -> bool | None:
        """Whether the head was another after the last update; None where it cannot be read, or there was no update.

        Raises:
            Exception: What went wrong as the engine was asked.
        """
        if self._box is not None:
            self._found, self._box = self._box.get(), None
        if isinstance(self._found, Exception):
            error, self._found = self._found, None
            raise error
        return self._found

    @property
    def unread(self) -> str:
        """Why the last update left nothing to compare on this rank; "" where it did, or there was none.

        It is known once `is_stale` was asked.
        """
        return self._why

    def close(self) -> None:
        """Leaves the generator as it was; where another has wrapped it since, passes on what comes."""
        self._closed = True
        for name, ours in self._ours.items():
            if vars(self._generation).get(name) != ours:
                continue
            if name in self._own:
                setattr(self._generation, name, self._own[name])
            else:
                delattr(self._generation, name)

    @property
    def _ours(self) -> dict[str, Any]:
        return {"_iter_named_params": self._watched_params, "sync_weights": self._watched_sync}

    def _watched_params(self, *arguments: Any, **keywords: Any) -> Iterator[tuple[str, torch.Tensor]]:
        for name, value in self._params(*arguments, **keywords):
            if name == self._name and not self._closed:
                self._sent = self._some(value.detach())
            yield name, value

    def _watched_sync(self, *arguments: Any, **keywords: Any) -> Any:
        if self._closed:
            return self._sync(*arguments, **keywords)
        if self._box is not None:
            self._box.get()  # nobody asked after the update before this one
        self._sent, self._found, self._box, self._why = None, None, None, ""
        done = self._sync(*arguments, **keywords)
        self._begin()
        return done

    def _begin(self) -> None:
        if self._generation.mode == "colocate":
            self._found = self._tried()
        elif self._asks:
            box: queue.SimpleQueue[bool | Exception | None] = queue.SimpleQueue()
            self._box = box
            threading.Thread(target=lambda: box.put(self._tried()), name="curricula-head", daemon=True).start()

    def _tried(self) -> bool | Exception | None:
        try:
            return self._look()
        except Exception as error:  # said where all ranks are, so that none of them waits for this one
            return error

    def _some(self, weight: torch.Tensor) -> torch.Tensor | None:
        if weight.dim() != 2 or not weight.is_floating_point():
            return None
        if self._rows is None or self._columns is None:
            rows, columns = weight.shape
            self._rows = torch.linspace(0, rows - 1, min(rows, ROWS)).long()
            self._columns = torch.linspace(0, columns - 1, min(columns, COLUMNS)).long()
        return weight[self._rows.to(weight.device)[:, None], self._columns.to(weight.device)]

    def _look(self) -> bool | None:
        from curricula_vllm.reading import parts, shows_head

        if self._may_ask is None:
            self._may_ask = shows_head(self._generation)
        if not self._may_ask:
            self._why = _NO_EXTENSION
        elif self._name is None:
            self._why = "the model that is trained has no head whose weight is sent to the generator"
        elif self._sent is None or self._rows is None or self._columns is None:
            self._why = f"{self._name}, the head's weight, was not among the matrices that the last update sent"
        elif not bool(self._sent.isfinite().all()):
            self._why = f"{self._name}, the head's weight, was sent with values that are not finite"
        elif not (found := parts(self._generation, self._rows.tolist(), self._columns.tolist())):
            self._why = "the generator's head cannot be read (it is quantised, or under a name that is not known)"
        else:
            sent = [self._sent[part.places].to(getattr(torch, part.dtype)).float() for part in found]
            same = [torch.equal(part.values.to(mine.device), mine) for part, mine in zip(found, sent, strict=True)]
            return not all(same)
        return None


def head_name(policy: Any) -> str | None:
    """Under which name TRL sends the weight of a model's head: that of its embeddings where they are tied."""
    head = policy.get_output_embeddings() if hasattr(policy, "get_output_embeddings") else None
    weight = getattr(head, "weight", None)
    if weight is None:
        return None
    found = next((name for name, value in policy.named_parameters() if value is weight), None)
    if found is None:
        return None
    for part in ("base_model.model.", "modules_to_save.default.", "_checkpoint_wrapped_module."):
        found = found.replace(part, "")
    return found.replace(".base_layer", "")
