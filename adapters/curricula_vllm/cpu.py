"""TRL's two vLLM modes where there is no accelerator, without a change to a script or to TRL."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import requests
import torch

from curricula.errors import CurriculaRuntimeError, CurriculaValueError
from curricula_vllm.plugin import SHARED_MEMORY
from curricula_vllm.watching import patience, watch

# vLLM in this process, not beside it: TRL reaches into its model. One GiB holds the cache of a small model.
_ENVIRONMENT = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1"}


def use_cpu() -> bool:
    """Makes TRL's `vllm_mode="server"` and `"colocate"` work on a machine without an accelerator.

    Call it before the trainer is built. Where there is an accelerator it does nothing, so a script may always call it;
    a second call does nothing either. Server mode needs a server started by `python -m curricula_vllm serve MODEL`, on
    the same machine.

    Returns:
        Whether TRL now goes this way.

    Raises:
        CurriculaRuntimeError: This vLLM cannot take weights where there is no accelerator.
    """
    if has_accelerator():
        return False
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from trl.generation import vllm_client, vllm_generation
    from vllm.distributed.weight_transfer.base import WeightTransferEngine

    if not hasattr(WeightTransferEngine, "start_weight_update"):
        from vllm import __version__

        raise CurriculaRuntimeError(f"use_cpu: expected vLLM 0.25 or later on a CPU; got {__version__}: install it")
    _replace(vllm_client.VLLMClient, "check_server", _check_server)
    _replace(vllm_client.VLLMClient, "init_communicator", _init_communicator)
    _replace(vllm_client.VLLMClient, "update_named_params", _update_named_params)
    _replace(vllm_generation.VLLMGeneration, "_init_vllm", _init_vllm)
    _replace(vllm_generation.VLLMGeneration, "sync_weights", _sync_weights)
    return True


def has_accelerator() -> bool:
    """Whether vLLM would run on one: Apple's is not among those."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return found is not None and found.type != "mps"


def _replace(owner: type, name: str, make: Callable[[Any], Any]) -> None:
    """Puts what `make` makes of a method in its place, once."""
    original = getattr(owner, name)
    if not getattr(original, "_curricula", False):
        ours = make(original)
        ours._curricula, ours.__doc__, ours.__name__ = True, original.__doc__, name
        setattr(owner, name, ours)


def _check_server(_: Any) -> Any:
    def check_server(self: Any, total_timeout: float = 0.0, retry_interval: float = 2.0) -> None:
        """TRL's asks without a limit of time; this one keeps the limit also where the server accepts and is silent."""
        limit = time.monotonic() + total_timeout
        while True:
            left = limit - time.monotonic()
            try:
                if requests.get(f"{self.base_url}/health", timeout=max(left, 1.0)).status_code == 200:
                    break
            except requests.RequestException:
                pass
            if time.monotonic() >= limit:
                raise CurriculaRuntimeError(
                    f"no vLLM server answers at {self.base_url} ({total_timeout:g} s): start one by `python -m "
                    "curricula_vllm serve MODEL`, or raise vllm_server_timeout"
                )
            time.sleep(min(retry_interval, max(limit - time.monotonic(), 0.0)))
        watch(self, patience(total_timeout))

    return check_server


def _init_communicator(_: Any) -> Any:
    def init_communicator(self: Any, device: Any = 0) -> None:
        """There is no group to join: the server must read weights from shared memory."""
        engine = (self.get_server_info().get("weight_transfer_config") or {}).get("backend")
        if engine != SHARED_MEMORY:
            raise CurriculaRuntimeError(
                f"the vLLM server at {self.base_url}: expected weight transfer by {SHARED_MEMORY!r} where there is no "
                f"accelerator; got {engine!r}: start it by `python -m curricula_vllm serve MODEL`"
            )
        self._post(f"{self.base_url}/init_weight_transfer_engine", json={"init_info": {}})

    return init_communicator


def _update_named_params(_: Any) -> Any:
    def update_named_params(self: Any, metadata: Any, named_params: Iterator[tuple[str, torch.Tensor]]) -> None:
        from curricula_vllm.shared import send

        def post(path: Path) -> None:
            self._post(f"{self.base_url}/update_weights", json={"update_info": {"path": str(path)}})

        if not self._updating_weights:
            self._start_weight_update()
        send(named_params, post)
        if not self._updating_weights:
            self._finish_weight_update()

    return update_named_params


def _init_vllm(original: Any) -> Any:
    def _init_vllm(self: Any) -> None:
        """Gives vLLM what TRL leaves to it: no graphs, and the trainer's own dtype, as vLLM takes bf16 for float32."""
        if self.mode != "colocate":
            return original(self)
        if self.enable_sleep_mode:
            raise CurriculaValueError(
                "vllm_enable_sleep_mode: expected false where there is no accelerator; got true: leave it out"
            )
        from trl.generation import vllm_generation

        theirs = vllm_generation.LLM
        own = {"enforce_eager": True, "dtype": str(self.model.dtype).removeprefix("torch.")}
        vllm_generation.LLM = lambda **given: theirs(**{**own, **given})
        try:
            return original(self)
        finally:
            vllm_generation.LLM = theirs

    return _init_vllm


def _sync_weights(original: Any) -> Any:
    def sync_weights(self: Any) -> None:
        """On CPU vLLM's layers hold packed weights: they are loaded as from a checkpoint, and the heads packed anew."""
        if self.mode != "colocate":
            return original(self)
        from curricula_vllm.head import refresh

        # Copies: a layer may wait for the last name, when an adapter's merge is undone.
        weights = ((name, value.clone()) for name, value in self._iter_named_params())
        self.llm.collective_rpc("reload_weights", kwargs={"weights_iterator": weights})
        refresh(self.llm.llm_engine.model_executor.driver_worker.model_runner.model)
        self.llm.reset_prefix_cache()
        return None

    return sync_weights
