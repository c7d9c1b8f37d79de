"""Training from a mix alone: TRL's GRPOTrainer with the arguments under `trainer:`, and a display."""

import contextlib
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback, ProgressCallback
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from curricula.config import CurriculumConfig
from curricula.config.explain import config_error
from curricula.config.schema import shown
from curricula_trl.arguments import check_arguments_of, check_model
from curricula_trl.display import display
from curricula_trl.recipes import arguments_of
from curricula_trl.refused import FirstStep, building, line, training
from curricula_trl.sampler import CurriculumSampler


def check(config: CurriculumConfig) -> None:
    """Checks what can be checked of `model` and `trainer` before anything heavy is loaded.

    Raises:
        ConfigError: No model, or an argument that TRL's GRPOConfig does not have, or of a type it cannot use.
    """
    check_arguments_of(config)
    check_model(config)


def run(
    config: CurriculumConfig,
    dataset: Dataset,
    reward: Any,
    *,
    name: str = "mix",
    resume: bool | str | os.PathLike[str] = False,
    warm_start: str | Path | None = None,
) -> GRPOTrainer:
    """Trains the model of a mix, and returns the trainer.

    Args:
        config: The mix, with `model`.
        dataset: All prompts, with the columns that the mix names.
        reward: One reward function, or a list of them.
        name: Where `trainer.output_dir` is left out, the run is kept in runs/NAME. Where `trainer.use_cpu` is left
            out and there is no accelerator, it is true.
        resume: True for the latest checkpoint of the output folder, or the path of one.
        warm_start: The folder of another run's outcome log, to begin with what it says of these prompts.

    Raises:
        ConfigError: A model or an argument that TRL refuses, or no checkpoint to resume from.
    """
    check(config)
    defaults: dict[str, Any] = {"output_dir": str(Path("runs") / name)}
    if not torch.accelerator.is_available():
        defaults["use_cpu"] = True
    given = {**defaults, **arguments_of(config.recipe), **config.trainer}
    try:
        Path(given["output_dir"]).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"expected a folder that can be written; got {shown(given['output_dir'])}: {line(error)}"
        raise config_error(config.origin, ("trainer", "output_dir"), message) from error
    with building(config):
        arguments = GRPOConfig(**given)
    checkpoint = _checkpoint(config, arguments.output_dir, resume)
    model = str(Path(str(config.model)).expanduser()) if str(config.model).startswith("~") else str(config.model)
    with building(config, model), _vllm(config, arguments):
        trainer = GRPOTrainer(model=model, reward_funcs=reward, args=arguments, train_dataset=dataset)
    sampler = CurriculumSampler(config, warm_start=warm_start).attach(trainer, launched=True)
    for theirs in (ProgressCallback, PrinterCallback):
        trainer.remove_callback(theirs)
    with contextlib.ExitStack() as stack:
        if trainer.accelerator.is_main_process:
            shown_by = display(sampler, alone=not arguments.log_completions)
            stack.callback(shown_by.close)
            trainer.add_callback(shown_by)
        if arguments.use_vllm:
            stack.callback(_end_engine, trainer)
        first = FirstStep()
        trainer.add_callback(first)
        with training(config, first):
            trainer.train(resume_from_checkpoint=checkpoint)
    return trainer


def _end_engine(trainer: Any) -> None:
    # At the end of the process vLLM would look for a process group that is gone.
    engine = getattr(getattr(trainer.vllm_generation, "llm", None), "llm_engine", None)
    if engine is not None:
        engine.engine_core.shutdown()


@contextlib.contextmanager
def _vllm(config: CurriculumConfig, arguments: GRPOConfig) -> Generator[None]:
    """Within it vLLM is told what it has to know before the trainer starts it."""
    if not arguments.use_vllm:
        yield
        return
    from curricula_vllm import use_cpu
    from curricula_vllm.plugin import FP32_HEAD, fp32_head_is_asked

    use_cpu()
    given = os.environ.get(FP32_HEAD)
    if config.recipe.fp32_head and given is None:
        os.environ[FP32_HEAD] = "1"
    try:
        if arguments.vllm_mode == "colocate" and fp32_head_is_asked():
            from curricula_vllm.head import force_fp32

            force_fp32()  # vLLM loads its plugins once a process: it may have done so before this was asked for
        yield
    finally:
        if given is None:
            os.environ.pop(FP32_HEAD, None)


def _checkpoint(config: CurriculumConfig, output: str | None, resume: bool | str | os.PathLike[str]) -> str | None:
    if resume is False:
        return None
    if resume is True:
        folder = Path(output or ".")
        # The trainer writes this file last: a folder without it is a checkpoint that was never finished.
        whole = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json")]
        found = max(whole, key=_step, default=None)
        if found is None:
            message = f"expected a checkpoint in {shown(str(folder))} to resume from; got none; start without --resume"
            raise config_error(config.origin, ("trainer", "output_dir"), message)
        return str(found)
    if not (Path(resume) / "trainer_state.json").is_file():
        message = f"expected the folder of a checkpoint to resume from; got {shown(os.fspath(resume))}"
        raise config_error(config.origin, (), message)
    return os.fspath(resume)


def _step(checkpoint: Path) -> int:
    number = checkpoint.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1
