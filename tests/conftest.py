"""Settings that every test needs: nothing is fetched or reported, and tiny models stay on one thread."""

import os

import pytest
from ports import free_port

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("CURRICULA_CACHE", "off")
# vLLM: nothing is compiled, idle threads do not spin, and the cache of a tiny model is small.
os.environ.setdefault("TORCH_COMPILE_DISABLE", "1")
os.environ.setdefault("VLLM_CPU_CI_ENV", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")


@pytest.fixture(autouse=True)
def port_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the process group of an engine in process: TRL would try 29500 first in every test that runs just now."""
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
