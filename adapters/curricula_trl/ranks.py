"""What ranks say to one another: rank 0 decides, all check, and an error anywhere ends all of them alike.

Messages travel as JSON in byte tensors, so nothing is unpickled and any backend that moves tensors will do.
"""

import hashlib
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

import torch
from accelerate import Accelerator
from torch import distributed

from curricula import CurriculaError, CurriculaRuntimeError

T = TypeVar("T")


class Ranks:
    """Collectives of one trainer; each call has to be made by every rank, in the same order."""

    def __init__(self, accelerator: Accelerator) -> None:
        self._accelerator = accelerator
        self.world_size: int = accelerator.num_processes
        self.rank: int = accelerator.process_index
        if accelerator.device.type == "cpu" and accelerator.device.index is not None:
            _restore_on_cpu_ranks()

    @property
    def is_main(self) -> bool:
        """True on the rank that owns the curriculum."""
        return self.rank == 0

    def from_main(self, produce: Callable[[], Any]) -> Any:
        """Runs `produce` on rank 0 and returns its JSON-able result on every rank.

        Raises:
            CurriculaRuntimeError: On the other ranks, when `produce` raised; rank 0 raises the error itself.
        """
        if self.world_size == 1:
            return produce()
        failure: Exception | None = None
        message: dict[str, Any] = {}
        if self.is_main:
            try:
                message = {"result": produce()}
                json.dumps(message)
            except Exception as error:
                failure, message = error, {"error": _line(error)}
        message = self._broadcast(message)
        if failure is not None:
            raise failure
        if "error" in message:
            raise CurriculaRuntimeError(f"rank 0 failed, so this rank stops too: {message['error']}")
        return message["result"]

    def together(self, subject: str, action: Callable[[], T]) -> T:
        """Runs `action` on every rank; where it raises on one, all of them stop with its message.

        Raises:
            CurriculaRuntimeError: On several ranks; a single one raises the error itself.
        """
        if self.world_size == 1:
            return action()
        result: list[T] = []
        failure: Exception | None = None
        try:
            result.append(action())
        except Exception as error:
            failure = error
        try:
            self.agree(subject, None, None if failure is None else _line(failure))
        except CurriculaRuntimeError as error:
            raise error from failure
        return result[0]

    def agree(self, subject: str, value: Any, problem: str | None = None) -> None:
        """Checks that every rank holds the same `value` and has no problem.

        Raises:
            CurriculaRuntimeError: The same message on every rank.
        """
        if self.world_size == 1:
            if problem is not None:
                raise CurriculaRuntimeError(problem)
            return
        mine = torch.tensor([[_digest(value), problem is not None]], dtype=torch.int64, device=self._device)
        theirs = self._accelerator.gather(mine).tolist()
        if any(failed for _, failed in theirs):
            problems = self._collect(problem)
            first = next(rank for rank, text in enumerate(problems) if text)
            raise CurriculaRuntimeError(f"rank {first}: {problems[first]}")
        odd = [rank for rank, (digest, _) in enumerate(theirs) if digest != theirs[0][0]]
        if odd:
            raise CurriculaRuntimeError(
                f"ranks disagree about the {subject}: rank {odd[0]} differs from rank 0 of {self.world_size}. "
                "Give every rank the same data set in the same order, and seed whatever shuffles it."
            )

    def all_true(self, flag: bool) -> bool:
        """True when `flag` is true on every rank."""
        if self.world_size == 1:
            return flag
        return bool(self._accelerator.gather(torch.tensor([flag], device=self._device)).all().item())

    def gather(self, column: torch.Tensor) -> torch.Tensor:
        """Concatenates a column of equal length from every rank, in the order of the ranks."""
        return column if self.world_size == 1 else cast("torch.Tensor", self._accelerator.gather(column))

    def collect(self, value: Any) -> list[Any]:
        """A JSON-able value of each rank, in the order of the ranks."""
        return [value] if self.world_size == 1 else self._collect(value)

    @property
    def _device(self) -> torch.device:
        return self._accelerator.device

    def _broadcast(self, message: dict[str, Any]) -> dict[str, Any]:
        data = self._packed(message)
        length = torch.tensor([data.numel()], dtype=torch.int64, device=self._device)
        distributed.broadcast(length, src=0)
        if not self.is_main:
            data = torch.empty(int(length.item()), dtype=torch.uint8, device=self._device)
        distributed.broadcast(data, src=0)
        return _unpacked(data)

    def _collect(self, value: Any) -> list[Any]:
        data = self._packed(value)
        sizes = self._accelerator.gather(torch.tensor([data.numel()], device=self._device)).tolist()
        padded = torch.zeros(max(sizes), dtype=torch.uint8, device=self._device)
        padded[: data.numel()] = data
        rows = self._accelerator.gather(padded).view(self.world_size, -1)
        return [_unpacked(row[:size]) for row, size in zip(rows, sizes, strict=True)]

    def _packed(self, value: Any) -> torch.Tensor:
        return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8).to(self._device)


def _unpacked(data: torch.Tensor) -> Any:
    return json.loads(data.cpu().numpy().tobytes())


def _line(error: Exception) -> str:
    # Our own messages say what is wrong by themselves.
    return str(error) if isinstance(error, CurriculaError) else f"{type(error).__name__}: {error}"


@lru_cache(maxsize=1)
def _restore_on_cpu_ranks() -> None:
    # accelerate calls the device of a CPU rank "cpu:0", and transformers resumes an optimizer to that very name,
    # which torch.load does not know: no run of several CPU ranks could be resumed.
    torch.serialization.register_package(
        0, lambda _: None, lambda storage, location: storage if location.startswith("cpu:") else None
    )


def _digest(value: Any) -> int:
    data = json.dumps(value, sort_keys=True).encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big", signed=True)
