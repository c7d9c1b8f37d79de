"""The server's side of weights through shared memory: files of safetensors, loaded where there is no accelerator."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

from curricula.errors import CurriculaValueError
from curricula_vllm.head import refresh


@dataclass
class SharedInit(WeightTransferInitInfo):
    """There is nothing to agree on."""


@dataclass
class SharedUpdate(WeightTransferUpdateInfo):
    """A file with some of the weights, under the names of a checkpoint."""

    path: str


class SharedMemoryEngine(WeightTransferEngine[SharedInit, SharedUpdate]):
    """Reads each part of the weights from a file that the trainer, on the same machine, has just written."""

    init_info_cls = SharedInit
    update_info_cls = SharedUpdate
    supports_draft_weight_update = False

    def init_transfer_engine(self, init_info: SharedInit) -> None:
        """Nothing to set up."""

    def start_weight_update(self) -> None:
        """Layers take their weights as they do from a checkpoint."""
        initialize_layerwise_reload(self.model)

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Loads one file. vLLM's own would wait for an accelerator afterwards."""
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info: SharedUpdate) -> None:
        """Loads one file.

        Raises:
            CurriculaValueError: The file is not there: trainer and server run on two machines, or as two users.
        """
        if not Path(update_info.path).is_file():
            raise CurriculaValueError(
                f"weights through shared memory: expected the trainer's file at {update_info.path}; there is none: run "
                "trainer and server on one machine and as one user"
            )
        model: Any = self.model
        model.load_weights(iter(load_file(update_info.path).items()))

    def finish_weight_update(self) -> None:
        """Finishes the layers, and the heads, whose packed copies vLLM may leave as they were."""
        finalize_layerwise_reload(self.model, self.model_config)
        refresh(self.model)

    def shutdown(self) -> None:
        """Nothing to close."""
