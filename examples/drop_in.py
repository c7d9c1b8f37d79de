"""A GRPO script as one would write it with TRL, and the two lines that put a curriculum into it.

python examples/drop_in.py                                            # a tiny model, built on the spot
python examples/drop_in.py --model PATH --data prompts.parquet        # columns: prompt, answer, environment
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the tiny model: a second thread slows it down

from datasets import Dataset, load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from curricula_trl import CurriculumSampler


def exact_match(completions: list[str], answer: list[str], **columns: object) -> list[float]:
    return [float(given.strip() == right) for given, right in zip(completions, answer, strict=True)]


def tiny() -> tuple[object, object, Dataset]:
    from curricula_trl.demo.model import build_model, build_tokenizer, warm_up
    from curricula_trl.demo.task import build_pools

    model, tokenizer = build_model(seed=0), build_tokenizer()
    warm_up(model, tokenizer, seed=0)
    return model, tokenizer, build_pools(seed=0)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description="TRL's GRPOTrainer with a curriculum.")
    parser.add_argument("--model", help="path of a model; a tiny one is built if it is left out")
    parser.add_argument("--data", help="a parquet file with the columns prompt, answer and environment")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--out", default="runs/drop-in")
    options = parser.parse_args()
    if (options.model is None) != (options.data is None):
        parser.error("give both --model and --data, or neither")

    if options.model is None:
        model, tokenizer, dataset = tiny()
    else:
        model = AutoModelForCausalLM.from_pretrained(options.model, dtype="float32")
        tokenizer = AutoTokenizer.from_pretrained(options.model)
        dataset = load_dataset("parquet", data_files=options.data, split="train")

    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        train_dataset=dataset,
        reward_funcs=exact_match,
        args=GRPOConfig(
            output_dir=options.out,
            max_steps=options.steps,
            per_device_train_batch_size=64,
            num_generations=8,
            max_completion_length=10,
            learning_rate=1e-4,
            loss_type="cispo",
            epsilon_high=5.0,  # TRL's default of 0.2 would clamp every ratio to 0.2
            logging_steps=5,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
        ),
    )

    # The first added line is the import above; this is the second. CurriculumSampler.from_yaml("mix.yaml") reads a mix.
    sampler = CurriculumSampler().attach(trainer)

    trainer.train()

    for name, value in sampler.metrics().items():
        print(f"{name:40} {value:.3f}")


if __name__ == "__main__":
    main()
