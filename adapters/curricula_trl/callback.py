"""What happens at the start of a run: the last checks, the mix said once and saved, trackers joined."""

import io
import logging
import sys
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from curricula import CurriculaRuntimeError
from curricula.config import resolved, share_bounds
from curricula.tracking import Tracker, load_trackers
from curricula_trl.binding import Binding
from curricula_trl.devices import count_devices
from curricula_trl.saving import FOLDER

logger = logging.getLogger("curricula")


class CurriculumCallback(TrainerCallback):
    """Added by `attach`; on rank 0 it also passes metrics to the trackers that TRL does not report to."""

    def __init__(self, trainer: Any, binding: Binding) -> None:
        self._trainer = trainer
        self._binding = binding
        self._trackers: list[Tracker] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._binding.ranks.together("data set", self._check_dataset)
        if self._binding.curriculum is None:
            return
        _watch_server(self._trainer)
        text = resolved(self._binding.config, self._binding.curriculum.pool.environments)
        banner = _banner(self._binding)
        _make_printable(banner)
        print(banner, flush=True)
        logger.info("resolved mix:\n%s", text)
        _save_mix(Path(args.output_dir) / FOLDER / "mix.yaml", text)
        self._trackers = [
            tracker
            for tracker in load_trackers(self._binding.config.monitor.trackers)
            if tracker.start(text, state.global_step)
        ]
        devices = count_devices(self._trainer, self._binding.ranks, self._binding.config.monitor.devices)
        self._binding.curriculum.compute.begin(devices)

    def _check_dataset(self) -> None:
        if self._trainer.train_dataset is not self._binding.rows.dataset:
            raise CurriculaRuntimeError(
                "the trainer's train_dataset was replaced after attach(); detach() and attach again, so that the "
                "curriculum knows the rows it draws from"
            )

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        # What TRL reports to already has these figures, from the trainer's own log.
        metrics = {name: value for name, value in (logs or {}).items() if name.startswith("curriculum/")}
        for tracker in self._trackers:
            if metrics and tracker.name not in args.report_to:
                tracker.log(metrics, state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._binding.end()
        for tracker in self._trackers:
            tracker.finish()
        self._trackers = []


def _make_printable(text: str) -> None:
    # TRL prints metrics by name: the name of an environment must not end a run on a terminal that cannot show it.
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")


def _watch_server(trainer: Any) -> None:
    """Limits how long a run waits for a vLLM server that is silent: `vllm_server_timeout`, a minute at the least."""
    generation = getattr(trainer, "vllm_generation", None)
    if (client := getattr(generation, "vllm_client", None)) is not None:
        from curricula_vllm.watching import patience, watch

        watch(client, patience(generation.server_timeout))


def _banner(binding: Binding) -> str:
    assert binding.curriculum is not None
    pool = binding.curriculum.pool
    shares = binding.curriculum.shares()
    lines = [f"curricula: {len(pool):,} prompts in {len(pool.environments)} environments; every group is drawn here"]
    shown = 20
    width = min(40, max(len(name) for name in pool.environments))
    floors, caps = share_bounds(binding.config, pool.environments)
    for name, floor, cap in list(zip(pool.environments, floors, caps, strict=True))[:shown]:
        size, share = pool.sizes[name], shares[name]
        lines.append(f"  {name:<{width}}  {size:>9,} prompts   share {share:.3f} at first, in [{floor:g}, {cap:g}]")
    if len(pool.environments) > shown:
        lines.append(f"  … and {len(pool.environments) - shown} more (all of them in {FOLDER}/mix.yaml)")
    return "\n".join(lines)


def _save_mix(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        logger.warning("%s: the resolved mix could not be written (%s); training goes on", path, error)
