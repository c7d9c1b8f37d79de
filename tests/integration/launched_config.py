"""`curricula train` of a file in configs/ with a tiny model in the place of its own, in a process of its own.

Run as a script: `launched_config.py OUT.json '{"…": …}'`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import host
from launched import launch as start


def train(folder: Path, mix: Path, vllm: bool) -> dict[str, Any]:
    """What came of it."""
    host.model(hidden_size=64).save_pretrained(folder / "model")
    host.tokenizer().save_pretrained(folder / "model")
    out = folder / "out.json"
    code, text = start(out, 1, script=Path(__file__), folder=str(folder), mix=str(mix), vllm=vllm)
    assert code == 0, text[-4000:]
    return json.loads(out.read_text(encoding="utf-8"))


def main(out: str, spec: str) -> None:
    from curricula.config import load_mix
    from curricula_envs import load_environments
    from curricula_trl import launch
    from curricula_trl.fp32 import head_dtype

    options = json.loads(spec)
    mix, folder = Path(options["mix"]), Path(options["folder"])
    mixed = load_environments(load_mix(mix), mix.parent)
    engine = {"use_vllm": True, "vllm_mode": "colocate", "vllm_max_model_length": 256} if options["vllm"] else {}
    trainer = {**mixed.config.trainer, "output_dir": str(folder / "run"), **engine}
    config = mixed.config.model_copy(update={"model": str(folder / "model"), "trainer": trainer})
    trained = launch.run(config, mixed.dataset, mixed.reward)
    history = trained.state.log_history
    figures = {
        "step": trained.state.global_step,
        "loss": [entry["loss"] for entry in history if "loss" in entry],
        "loss_type": trained.loss_type,
        "head": head_dtype(trained),
        "metrics": trained._curricula_sampler.metrics(),
    }
    Path(out).write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
