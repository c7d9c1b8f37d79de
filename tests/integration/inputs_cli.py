"""Cases of tests/INPUTS.md: the command line. A refusal is one line on standard error, and exit code 2."""

import contextlib
import io
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import host
import pytest
from huggingface_hub import constants

from curricula import CurriculaValueError
from curricula.cli import main

FOUR = "trainer: {num_generations: 8, per_device_train_batch_size: 4}"
SUMS = "environments: {sums: {source: {type: reasoning_gym, name: chain_sum, size: 16}}}\n"


def call(*arguments: str) -> str:
    """Runs a command; what it refuses is raised as the error whose line it printed."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as stopped:
            code = stopped.code or 0
    if code == 0:
        return out.getvalue()
    assert code == 2, (code, err.getvalue())
    said = err.getvalue()
    assert "Traceback" not in said
    # While a model is loaded, its hosts write there too.
    (line,) = [text for text in said.splitlines() if text.startswith("curricula: ") or arguments[0] != "train"]
    raise CurriculaValueError(line)


def command(name: str, text: str, *more: str) -> Callable[[Path], str]:
    def run(folder: Path) -> str:
        (folder / "mix.yaml").write_text(text, encoding="utf-8")
        return call(name, str(folder / "mix.yaml"), *more)

    return run


def part(section: str) -> Callable[[Path], str]:
    """Validates a mix of which only this part of the curriculum is wrong."""
    return command("validate", f"seed: 1\ncurriculum:\n  {section}\n")


def training(arguments: str) -> Callable[[Path], str]:
    """Trains a tiny model with these arguments of TRL's, of which one is wrong; validating does not notice."""

    def run(folder: Path) -> str:
        host.model().save_pretrained(folder / "model")
        host.tokenizer().save_pretrained(folder / "model")
        few = "max_steps: 1, max_completion_length: 2, use_cpu: true, bf16: false, save_strategy: 'no'"
        given = f"  {{{few}, output_dir: {folder}/out,\n  {arguments}}}\n"
        text = f"{SUMS}model: {folder}/model\ntrainer:\n{given}"
        command("validate", text)(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # TRL's, of arguments that will go
            return command("train", text)(folder)

    return run


def offline(folder: Path) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        return command("validate", SUMS + "model: no-such/model")(folder)


def processes(folder: Path) -> None:
    """What is no whole group on one process may be so on two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORLD_SIZE", "2")
        assert "num_generations: 8" in command("validate", SUMS + FOUR)(folder)


def own_class(folder: Path) -> None:
    (folder / "beside_the_mix.py").write_text("from curricula.bandits import DiscountedThompson as Rule\n")
    bandit = "{type: 'beside_the_mix:Rule', params: {discount: 0.9, sharpness: 2.0}}"
    before = sys.path[:]
    assert "beside_the_mix:Rule" in part(f"bandit: {bandit}")(folder)
    assert sys.path == before


def validate(folder: Path) -> None:
    assert "chain_sum" in command("validate", SUMS)(folder)


def simulate(folder: Path) -> None:
    few = ("--seeds", "1", "--steps", "2", "--groups", "4", "--out", str(folder / "out"))
    assert "not a forecast" in command("simulate", SUMS, *few)(folder)


def precision(*arguments: str, **files: str | bytes) -> Callable[[Path], str]:
    """Asks for a measurement that cannot be, beside files of these endings."""

    def run(folder: Path) -> str:
        for ending, content in files.items():
            (folder / f"prompts.{ending}").write_bytes(content if isinstance(content, bytes) else content.encode())
        named = [str(folder / argument) if argument.startswith("prompts.") else argument for argument in arguments]
        return call("precision", *named, "--out", str(folder / "out"))

    return run


def file(folder: Path) -> Path:
    (folder / "file").touch()
    return folder / "file"


CASES = {
    "cli-validate": validate,
    "cli-own-class": own_class,
    "cli-no-class": part("bandit: {type: 'curricula.bandits:Exp3'}"),
    "cli-class-params": part("bandit: {type: 'curricula.bandits:Exp3S', params: {explore: 1}}"),
    "cli-no-weights": part("bandit: quotas"),
    "cli-no-estimator": part("predictor: {type: 'sklearn.linear_model:SGDRegresor'}"),
    "cli-stacked-estimator": part(
        "predictor: {type: stack, members: [{type: features}, {type: 'sklearn.svm:SVC', params: {C: 1}}]}"
    ),
    "cli-predictor-params": part("predictor: {type: frozen_encoder, params: {modl: MiniLM}}"),
    "cli-predictor-number": part("predictor: {type: hashed_text, params: {memory: 0}}"),
    "cli-unread-predictor": part("{belief: decayed_beta, predictor: {type: features}}"),
    "cli-bad-mix": command("train", "curiculum: {}"),
    "cli-missing-mix": lambda folder: call("train", str(folder / "none.yaml")),
    "cli-no-model": command("train", SUMS),
    "cli-missing-model": command("train", SUMS + "model: ./none"),
    "cli-unknown-argument": command("train", SUMS + "model: m\ntrainer: {max_step: 2}"),
    "cli-text-for-number": command("train", SUMS + 'model: m\ntrainer: {max_steps: "2"}'),
    "cli-no-environments": command("train", "model: ."),
    "cli-validate-model": command("validate", SUMS + "model: ./none"),
    "cli-offline-model": offline,
    "cli-whole-groups": command("validate", SUMS + FOUR),
    "cli-processes": processes,
    "cli-generation-batch": command("validate", SUMS + "trainer: {generation_batch_size: 12}"),
    "cli-two-batches": command("validate", SUMS + "trainer: {generation_batch_size: 8, steps_per_generation: 1}"),
    "cli-unused-columns": command("validate", SUMS + "trainer: {remove_unused_columns: true}"),
    "cli-no-mapping": command("validate", SUMS + "trainer: {generation_kwargs: [1]}"),
    "cli-generation-key": command("validate", SUMS + "trainer: {generation_kwargs: {top_pp: 0.9}}"),
    "cli-generation-rollouts": command("validate", SUMS + "trainer: {generation_kwargs: {num_return_sequences: 2}}"),
    "cli-generation-type": training("generation_kwargs: {num_beams: two}"),
    "cli-no-package": training("use_liger_kernel: true"),
    "cli-no-tracker": training("report_to: swanlab"),
    "cli-no-optimiser": training("optim: apollo_adamw, optim_target_modules: [attn]"),
    "cli-no-attention": training("model_init_kwargs: {attn_implementation: flash}"),
    "cli-no-level": command("validate", SUMS + "trainer: {importance_sampling_level: word}"),
    "cli-no-number": command("validate", SUMS + "trainer: {lr_scheduler_kwargs: {num_cycles: .inf}}"),
    "cli-scheduler-key": training("lr_scheduler_kwargs: {cycles: 2}"),
    "cli-no-weights-of-model": lambda folder: command("train", f"{SUMS}model: {folder}")(folder),
    "cli-simulate": simulate,
    "cli-simulate-world": command("simulate", SUMS, "--world", "flat"),
    "cli-simulate-groups": command("simulate", SUMS, "--groups", "17"),
    "cli-precision-model": precision("./none"),
    "cli-precision-dtype": precision("m", "--generator", "bf16,int8"),
    "cli-precision-no-dtype": precision("m", "--trainer", ","),
    "cli-precision-head": precision("m", "--heads", "float32"),
    "cli-precision-no-prompts": precision("m", "--prompts", "prompts.jsonl"),
    "cli-precision-empty": precision("m", "--prompts", "prompts.txt", txt="\n\n"),
    "cli-precision-one": precision("m", "--prompts", "prompts.txt", txt="a\n"),
    "cli-precision-json": precision("m", "--prompts", "prompts.jsonl", jsonl='{"prompt": "a"}\nprompt: b\n'),
    "cli-precision-key": precision("m", "--prompts", "prompts.jsonl", jsonl='{"question": "a", "uid": 1}\n'),
    "cli-precision-number": precision("m", "--prompts", "prompts.jsonl", jsonl='{"prompt": 7}\n{"prompt": "a"}\n'),
    "cli-precision-bytes": precision("m", "--prompts", "prompts.txt", txt=b"\xff\xfe\x00"),
    "cli-precision-parquet": precision("m", "--prompts", "prompts.parquet", parquet="prompt"),
    "cli-precision-out": lambda folder: call("precision", "m", "--out", str(file(folder) / "out")),
}
