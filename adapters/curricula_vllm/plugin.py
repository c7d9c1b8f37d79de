"""What vLLM loads in each of its processes: weights through shared memory, and an FP32 head where asked for.

An entry point of `vllm.general_plugins`. CURRICULA_FP32_HEAD=1 in the environment of a run or of a server computes the
logits in float32, whatever the model's dtype, through TRL's two modes alike.
"""

import os

from curricula.errors import CurriculaValueError
from curricula.versions import require

FP32_HEAD = "CURRICULA_FP32_HEAD"
SHARED_MEMORY = "curricula_shm"
# What a server's workers gain, to show their head.
EXTENSION = "curricula_vllm.reading.Extension"
# The process that a server is to end with.
PARENT = "CURRICULA_PARENT"


def register() -> None:
    """Called by vLLM, once or more in each process.

    Raises:
        CurriculaError: The variable is neither 0 nor 1, or this vLLM has no head that can be made FP32.
    """
    _register_transfer()
    if fp32_head_is_asked():
        require("vllm")
        from curricula_vllm.head import force_fp32

        force_fp32()


def fp32_head_is_asked() -> bool:
    """Whether the environment asks for an FP32 head.

    Raises:
        CurriculaValueError: The variable is neither 0 nor 1.
    """
    value = os.environ.get(FP32_HEAD, "")
    if value not in {"", "0", "1"}:
        raise CurriculaValueError(f"{FP32_HEAD}: expected 0 or 1 in the environment; got {value!r}; change or unset it")
    return value == "1"


def _register_transfer() -> None:
    from vllm.distributed.weight_transfer.base import WeightTransferEngine
    from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

    # Before 0.25 an engine did not own its update, and vLLM itself then synchronised an accelerator.
    if (
        hasattr(WeightTransferEngine, "start_weight_update")
        and SHARED_MEMORY not in WeightTransferEngineFactory._registry
    ):
        WeightTransferEngineFactory.register_engine(SHARED_MEMORY, "curricula_vllm.transfer", "SharedMemoryEngine")
