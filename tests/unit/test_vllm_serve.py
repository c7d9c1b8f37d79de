"""The arguments that `python -m curricula_vllm serve` gives to vLLM, and what a server shows of its head."""

from types import SimpleNamespace
from typing import Any

import pytest
from needs import needs_vllm

from curricula import CurriculaValueError
from curricula_vllm.serve import show_fp32_head

MERGED = '{"rope_theta": 5, "head_dtype": "float32"}'
OWN = ["--hf-overrides.head_dtype", "float32"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ([], OWN),
        (["--hf-overrides", '{"rope_theta": 5}', "--port", "1"], ["--hf-overrides", MERGED, "--port", "1"]),
        (['--hf_overrides={"rope_theta": 5}'], [f"--hf-overrides={MERGED}"]),
        (["--hf-overrides", '{"head_dtype": "float32"}'], ["--hf-overrides", '{"head_dtype": "float32"}']),
        (["--hf-overrides.rope_theta", "5"], ["--hf-overrides.rope_theta", "5", *OWN]),
        (["--hf-overrides", "{wrong"], ["--hf-overrides", "{wrong"]),
        (["--hf-overrides"], ["--hf-overrides"]),
    ],
)
def test_overrides_that_are_given_stay(given: list[str], shown: list[str]) -> None:
    assert show_fp32_head(["m", *given]) == ["m", *shown]


@pytest.mark.parametrize(
    "given",
    [
        ["--hf-overrides", '{"head_dtype": "model"}'],
        ["--hf_overrides.head_dtype", "model"],
        ["--hf-overrides.head_dtype=model"],
    ],
)
def test_another_head_is_refused(given: list[str]) -> None:
    with pytest.raises(CurriculaValueError, match=r"expected a head_dtype of 'float32' beside .*; got 'model'"):
        show_fp32_head(["m", *given])


@pytest.mark.parametrize(
    ("given", "read"),
    [([], {}), (["--hf-overrides.rope_theta", "5"], {"rope_theta": 5}), (["--hf_overrides", '{"a": 1}'], {"a": 1})],
)
def test_vllm_reads_them(given: list[str], read: dict[str, Any]) -> None:
    needs_vllm()
    from vllm.engine.arg_utils import EngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
    found = parser.parse_args(show_fp32_head(["--model", "m", *given])).hf_overrides
    assert found == {**read, "head_dtype": "float32"}


@pytest.mark.parametrize(
    ("overrides", "shown"),
    [({"head_dtype": "float32"}, "float32"), ({"head_dtype": "model"}, "bfloat16"), ({}, ""), (None, ""), ("f", "")],
)
def test_the_head_that_a_server_shows(overrides: Any, shown: str) -> None:
    needs_vllm()
    from curricula_vllm.head import head_dtype

    info = {"model_config": {"dtype": "torch.bfloat16", "hf_overrides": overrides}}
    client = SimpleNamespace(get_server_info=lambda: info)
    assert head_dtype(SimpleNamespace(mode="server", vllm_client=client)) == shown
