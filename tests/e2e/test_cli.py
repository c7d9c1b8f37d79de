"""The command line as users start it: real processes, real mixes, a real (tiny, random) model."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import Dataset
from ports import free_port
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

import curricula

ROOT = Path(__file__).parents[2]
ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ =+-:,.()"

REWARDS = """
def digits(completions, answer, **_):
    return [sum(c.isdigit() for c in text) / max(1, len(text)) for text in completions]

def broken(completions, **_):
    raise LookupError("planted in the reward")
"""


def cli(
    *arguments: object, cwd: Path, ranks: int = 1, launcher: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *launcher]
    if ranks > 1:
        command += ["torch.distributed.run", "--nproc_per_node", str(ranks), "--master_port", str(free_port()), "-m"]
    command += ["curricula", *map(str, arguments)]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "adapters")])
    settings = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **environment}
    settings["HF_DATASETS_CACHE"] = str(cwd / "cache")
    return subprocess.run(command, cwd=cwd, env=settings, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    words = {token: number for number, token in enumerate(["<pad>", "<eos>", "<unk>", *ALPHABET])}
    inner = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    named = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=inner, padding_side="left", **named).save_pretrained(str(folder))
    shape: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    config = Qwen2Config(vocab_size=len(words), num_key_value_heads=2, pad_token_id=0, eos_token_id=1, **shape)
    Qwen2ForCausalLM(config).save_pretrained(str(folder))
    return folder


@pytest.fixture
def mix(tmp_path: Path, model: Path) -> Path:
    (tmp_path / "cli_rewards.py").write_text(REWARDS)
    Dataset.from_dict({"q": [f"{i}+{i}=" for i in range(12)], "a": [str(2 * i) for i in range(12)]}).to_json(
        str(tmp_path / "pairs.jsonl")
    )
    content = {
        "environments": {
            "sums": {"source": {"type": "reasoning_gym", "name": "chain_sum", "size": 12, "levels": [0, 2]}},
            "pairs": {
                "source": {"type": "dataset", "path": "pairs.jsonl", "prompt": "q", "answer": "a"},
                "reward": "cli_rewards:digits",
            },
        },
        "model": str(model),
        "trainer": {
            "max_steps": 2,
            "per_device_train_batch_size": 4,
            "num_generations": 2,
            "max_completion_length": 4,
            "learning_rate": 1e-6,
            "save_steps": 1,
            "logging_steps": 1,
            "use_cpu": True,
            "bf16": False,
        },
    }
    return write(tmp_path / "mix.yaml", content)


def write(file: Path, content: object) -> Path:
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return file


def changed(mix: Path, **trainer: object) -> Path:
    content = yaml.safe_load(mix.read_text(encoding="utf-8"))
    model = trainer.pop("model", content["model"])
    reward = trainer.pop("reward", None)
    content = {**content, "model": model, "trainer": {**content["trainer"], **trainer}}
    if reward:
        content["environments"]["pairs"]["reward"] = reward
    return write(mix.with_name("changed.yaml"), content)


def test_help_and_version(tmp_path: Path) -> None:
    assert cli("--version", cwd=tmp_path).stdout == f"curricula {curricula.__version__}\n"
    for command in ("train", "validate"):
        shown = cli(command, "--help", cwd=tmp_path)
        assert shown.returncode == 0
        assert f"Example: curricula {command} " in shown.stdout
    unknown = cli("trian", cwd=tmp_path)
    assert unknown.returncode == 2
    assert "Traceback" not in unknown.stderr


def test_validate(mix: Path) -> None:
    shown = cli("validate", "mix.yaml", cwd=mix.parent)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.endswith("# 24 prompts: sums 12, pairs 12\n")
    again = mix.with_name("resolved.yaml")
    again.write_text(shown.stdout, encoding="utf-8")
    assert cli("validate", again, cwd=mix.parent).stdout == shown.stdout
    read = json.loads(cli("validate", mix, "--json", cwd=mix.parent).stdout)
    assert read["prompts"] == {"sums": 12, "pairs": 12}
    assert read["mix"]["environments"]["pairs"]["source"]["split"] is None
    assert read["mix"]["key"] == "uid"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("seed: 1\nmonitr: {}\n", "monitr (line 2): expected a known key; got 'monitr'; did you mean monitor?"),
        ("environments:\n  a:\n    source: {type: dataset, path: no.parquet}\n    reward: json:loads\n",
         "environments.a.source.path (line 3): expected a file or a folder; got"),
        ("environments:\n  a:\n    source: {type: dataset, path: pairs.jsonl, prompt: text}\n    reward: json:loads\n",
         "environments.a.source.prompt (line 3): expected a column of pairs.jsonl; got 'text'; it has q, a"),
        ("environments:\n  a:\n    source: {type: dataset, path: pairs.jsonl, prompt: q}\n    reward: cli_rewards:x\n",
         "environments.a.reward (line 4): expected a function of cli_rewards; got 'x'"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_line_and_exit_code_2(mix: Path, content: str, line: str) -> None:
    (mix.parent / "bad.yaml").write_text(content)
    done = cli("validate", "bad.yaml", cwd=mix.parent)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"curricula: bad.yaml: {line}")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_train_and_resume(mix: Path) -> None:
    done = cli("train", "mix.yaml", cwd=mix.parent)
    assert done.returncode == 0, done.stderr
    assert "\nstep 1/2  loss " in done.stdout
    assert "\nstep 2/2  loss " in done.stdout
    assert "  pairs  success " in done.stdout
    assert (mix.parent / "runs" / "mix" / "checkpoint-2" / "curricula").is_dir()
    # What a run leaves that is killed while it saves: a later folder that is no checkpoint yet.
    (mix.parent / "runs" / "mix" / "checkpoint-9" / "curricula").mkdir(parents=True)
    done = cli("train", changed(mix, max_steps=3, output_dir="runs/mix"), "--resume", cwd=mix.parent)
    assert done.returncode == 0, done.stderr
    assert "step 3/3" in done.stdout
    assert "step 2/3" not in done.stdout


@pytest.mark.slow
def test_train_on_two_ranks(mix: Path) -> None:
    done = cli("train", "mix.yaml", cwd=mix.parent, ranks=2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("step 2/2") == 1
    assert (mix.parent / "runs" / "mix" / "checkpoint-2" / "rng_state_1.pth").is_file()
    done = cli("train", changed(mix, max_steps=3, output_dir="runs/mix"), "--resume", cwd=mix.parent, ranks=2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("step 3/3") == 1


@pytest.mark.slow
def test_accelerate_launches_it(mix: Path) -> None:
    settings = ["--num_processes", "1", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    launcher = ["accelerate.commands.launch", "--cpu", *settings, "-m"]
    done = cli("train", "mix.yaml", cwd=mix.parent, launcher=launcher, HF_HOME=str(mix.parent / "home"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("step 2/2") == 1
    assert (mix.parent / "runs" / "mix" / "checkpoint-2" / "curricula").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"max_stepz": 3}, "trainer.max_stepz (line 17): expected an argument of trl.GRPOConfig; got 'max_stepz'; did"),
        ({"max_steps": "3"}, "trainer.max_steps (line 17): expected a whole number; got '3'"),
        ({"max_steps": 3.0}, "trainer.max_steps (line 17): expected a whole number; got 3.0"),
        ({"learning_rate": [1]}, "trainer.learning_rate (line 17): expected a number; got [1]"),
        ({"output_dir": "/dev/null/here"}, "trainer.output_dir (line 17): expected a folder that can be written"),
        ({"num_generations": 3}, "trainer.num_generations (line 19): expected a divisor of 4, the rollouts of a gener"),
        ({"model": "./nowhere"}, "model (line 15): expected the folder of a model; got './nowhere'"),
        ({"model": "no-such/model"}, "model (line 15): expected a folder, or a model in the cache of the hub"),
        ({"model": None}, "model (line 15): expected the path or the hub id of a model; got nothing; add one"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_training_refuses(mix: Path, change: dict[str, object], line: str) -> None:
    done = cli("train", changed(mix, **change), cwd=mix.parent)
    assert done.returncode == 2
    said = [text for text in done.stderr.splitlines() if text.startswith("curricula: ")]
    assert len(said) == 1
    file, _, rest = said[0].removeprefix("curricula: ").partition(": ")
    assert file.endswith("changed.yaml")
    assert rest.split(" (line")[0] == line.split(" (line")[0]
    assert rest.split("): ")[1].startswith(line.split("): ")[1])
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_nothing_to_resume_and_a_reward_that_raises(mix: Path) -> None:
    done = cli("train", "mix.yaml", "--resume", cwd=mix.parent)
    assert done.returncode == 2
    assert "expected a checkpoint in 'runs/mix' to resume from; got none" in done.stderr
    done = cli("train", changed(mix, reward="cli_rewards:broken"), cwd=mix.parent)
    assert done.returncode == 1
    assert "LookupError: planted in the reward" in done.stderr
