"""The curriculum's folder in a checkpoint: its state by rank 0, and each rank's rollouts that wait to be trained on."""

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

from transformers.trainer import TRAINER_STATE_NAME

from curricula import CheckpointError, load_state, save_state
from curricula_trl.ahead import Ahead
from curricula_trl.batch import Fill
from curricula_trl.block import block_shape, in_block, load_block, save_block
from curricula_trl.clipping import Clipping
from curricula_trl.mismatch import Mismatch
from curricula_trl.ranks import Ranks
from curricula_trl.refill import Refill

logger = logging.getLogger("curricula")

FOLDER = "curricula"


class Saving:
    """Writes and reads `checkpoint-N/curricula/`.

    Args:
        ranks: Of the trainer.
        ahead: On rank 0, the curriculum and what was asked for early.
        refill: What fills batches.
        mismatch: What trainer and generator differed by.
        clipping: What was counted since the last log.
        prompts: Rows of the data set.
    """

    def __init__(
        self,
        ranks: Ranks,
        ahead: Ahead | None,
        refill: Refill,
        mismatch: Mismatch,
        clipping: Clipping,
        prompts: int,
    ) -> None:
        self.ranks, self.refill, self.mismatch, self.prompts = ranks, refill, mismatch, prompts
        self.clipping = clipping
        self._ahead = ahead

    def save(self, trainer: Any, checkpoint: Path) -> None:
        """Writes `checkpoint/curricula/`: the curriculum by rank 0, the unfinished block by each rank.

        It is written before TRL's own files, the last of which makes a checkpoint one: a run that is killed
        in between leaves no checkpoint that lacks the curriculum.
        """
        folder = checkpoint / FOLDER
        resumable = not trainer.args.save_only_model
        mark = self.ranks.from_main(lambda: self._save_state(trainer, folder))

        def save_rank() -> None:
            if resumable and in_block(trainer):
                folder.mkdir(parents=True, exist_ok=True)
                save_block(folder / _block_name(self.ranks.rank), trainer._buffered_inputs, mark)
            if resumable and self.refill.spare:
                folder.mkdir(parents=True, exist_ok=True)
                save_block(folder / _spare_name(self.ranks.rank), [fill.saved() for fill in self.refill.spare], mark)

        self.ranks.together("saved block", save_rank)

    def load(self, trainer: Any, checkpoint: Path) -> bool:
        """Restores what `save` wrote; a checkpoint from before the curriculum starts a fresh one, and says so.

        Returns:
            Whether rollouts are there to go on with.

        Raises:
            CheckpointError: The state is damaged or is that of another data set.
        """
        folder = checkpoint / FOLDER
        saved = self.ranks.from_main(lambda: self._load_state(folder, checkpoint))
        if saved is None:
            if self.ranks.is_main:
                logger.warning("%s holds no curriculum state: the curriculum starts afresh from here", checkpoint)
            return False
        trainer._step, trainer._buffered_inputs = 0, None
        path = folder / _block_name(self.ranks.rank)
        fits = saved["shape"] == block_shape(trainer)
        self._load_refill(trainer, saved, folder, fits)
        self.mismatch.load(saved["mismatch"])
        if not saved["in_block"]:
            trainer._step = saved["step"] if fits else 0
        elif self.ranks.all_true(fits and path.is_file()):
            mark, device = saved["mark"], trainer.accelerator.device
            block = self.ranks.together("saved block", lambda: load_block(path, device, mark))
            trainer._step, trainer._buffered_inputs = saved["step"], block
            return True
        elif self.ranks.is_main:
            logger.warning(
                "%s was saved in the middle of a generation block under other batch settings or ranks: its last "
                "rollouts are generated again",
                checkpoint,
            )
        return False

    def _load_refill(self, trainer: Any, saved: dict[str, Any], folder: Path, fits: bool) -> None:
        state, path, device = saved["refill"], folder / _spare_name(self.ranks.rank), trainer.accelerator.device
        waits = isinstance(state, dict) and state.get("spare", 0) != 0
        spare: list[Fill] = []
        # Without them a run is as good: other groups fill the next batch.
        if waits and self.ranks.all_true(fits and path.is_file()):
            parts = self.ranks.together("spare groups", lambda: load_block(path, device, saved["mark"]))
            spare = [Fill.read(part) for part in parts]
        self.refill.load(state, spare, self.prompts)

    def _save_state(self, trainer: Any, folder: Path) -> str:
        """Saves, and returns a mark that ties the ranks' blocks to this state."""
        assert self._ahead is not None
        state = {
            "curriculum": self._ahead.settled().state_dict(),
            "ahead": self._ahead.state(),
            "refill": self.refill.state(),
            "mismatch": self.mismatch.state(),
            "clipping": self.clipping.state(),
            "step": int(trainer._step),
            "global_step": int(trainer.state.global_step),
            "in_block": in_block(trainer),
            "shape": block_shape(trainer),
        }
        # Runs of one seed draw alike for a while: what came of the draws tells them apart.
        figures = sorted(self._ahead.settled().metrics().items())
        curriculum = state["curriculum"]
        told = json.dumps([curriculum["rng"], curriculum["fingerprint"], state["step"], trainer.args.seed, figures])
        mark = hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
        save_state(folder, {**state, "mark": mark})
        return mark

    def _load_state(self, folder: Path, checkpoint: Path) -> dict[str, Any] | None:
        assert self._ahead is not None
        if not folder.is_dir():
            return None
        state = load_state(folder)
        saved = _checked(state, folder, checkpoint)
        self.clipping.load(state.get("clipping"))  # rank 0 alone shows it
        self._ahead.load(state["curriculum"], state["ahead"])
        return saved


def _checked(state: dict[str, Any], folder: Path, checkpoint: Path) -> dict[str, Any]:
    saved = {name: state.get(name) for name in ("step", "in_block", "shape", "mark", "refill", "mismatch")}
    sound = (
        isinstance(saved["step"], int)
        and saved["step"] >= 0
        and isinstance(saved["in_block"], bool)
        and isinstance(saved["shape"], dict)
        and isinstance(saved["mark"], str)
        and isinstance(state.get("curriculum"), dict)
        and isinstance(state.get("ahead"), list)
    )
    if not sound:
        raise CheckpointError(
            f"{folder}: expected step, in_block, shape, curriculum and ahead; got {saved}; resume from an older one"
        )
    step = json.loads((checkpoint / TRAINER_STATE_NAME).read_text(encoding="utf-8"))["global_step"]
    if state.get("global_step") != step:
        raise CheckpointError(
            f"{folder}: expected the curriculum of step {step}; got that of step {state.get('global_step')}; was it "
            "copied from another checkpoint?"
        )
    return saved


def _block_name(rank: int) -> str:
    return f"block-{rank}.safetensors"


def _spare_name(rank: int) -> str:
    return f"spare-{rank}.safetensors"
