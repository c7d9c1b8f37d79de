"""Cases of tests/INPUTS.md: environments made from sources, as `curricula train` and `validate` read them."""

from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict

from curricula.config import as_config
from curricula_envs import Mixed, load_environments

ROWS = [{"question": f"{n} + {n}?", "answer": str(2 * n), "uid": f"q{n}", "hard": n > 3} for n in range(6)]
SUMS: dict[str, Any] = {"type": "reasoning_gym", "name": "chain_sum", "size": 6}
SHARED: dict[str, Any] = {"type": "dataset", "prompt": "question", "answer": "answer"}


def exact(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    return [float(given == right) for given, right in zip(completions, answer, strict=True)]


def load(folder: Path, **environments: dict[str, Any]) -> Mixed:
    return load_environments(as_config({"environments": environments}), folder)


def table(folder: Path, rows: list[dict[str, Any]] = ROWS, reward: str = "inputs_data:exact", **source: Any) -> Mixed:
    path = folder / "rows.parquet"
    Dataset.from_list(rows).to_parquet(path)
    return load(folder, maths={"source": {**SHARED, "path": "rows.parquet", **source}, "reward": reward})


def task(folder: Path, **source: Any) -> Mixed:
    return load(folder, sums={"source": {**SUMS, **source}})


def reasoning_gym(folder: Path) -> None:
    mixed = task(folder)
    assert mixed.sizes == {"sums": 6}
    answers = mixed.dataset["answer"]
    assert mixed.reward(prompts=mixed.dataset["prompt"], completions=answers, **mixed.dataset[:]) == [1.0] * 6


def levels(folder: Path) -> None:
    assert set(task(folder, levels=[0, 2]).dataset["level"]) == {0, 1, 2}


def each_file_type(folder: Path) -> None:
    rows = Dataset.from_list(ROWS)
    rows.to_parquet(folder / "a.parquet")
    rows.to_json(folder / "b.jsonl")
    rows.save_to_disk(folder / "c")
    DatasetDict({"train": rows}).save_to_disk(folder / "d")
    (arrow,) = (folder / "c").glob("*.arrow")
    paths = ["a.parquet", "b.jsonl", "c", "d", str(arrow)]
    mixed = load(
        folder,
        **{f"e{n}": {"source": {**SHARED, "path": p}, "reward": "inputs_data:exact"} for n, p in enumerate(paths)},
    )
    assert mixed.sizes == {f"e{n}": 6 for n in range(5)}


def mixed_sources(folder: Path) -> None:
    Dataset.from_list(ROWS).to_parquet(folder / "rows.parquet")
    maths = {"source": {**SHARED, "path": "rows.parquet"}, "reward": "inputs_data:exact"}
    mixed = load(folder, sums={"source": SUMS}, maths=maths)
    assert mixed.dataset["environment"] == ["sums"] * 6 + ["maths"] * 6
    columns = mixed.dataset[:]
    rewards = mixed.reward(prompts=columns.pop("prompt"), completions=columns["answer"], **columns)
    assert rewards == [1.0] * 12


def other_file(folder: Path) -> None:
    (folder / "rows.csv").write_text("question,answer\n1,1\n")
    table(folder, path="rows.csv")


def broken_module(folder: Path) -> None:
    (folder / "inputs_broken.py").write_text("import no_such_library\n")
    table(folder, reward="inputs_broken:exact")


def unreadable(folder: Path) -> None:
    (folder / "rows.parquet").write_bytes(b"not parquet")
    load(folder, maths={"source": {**SHARED, "path": "rows.parquet"}, "reward": "inputs_data:exact"})


CASES = {
    "data-reasoning-gym": reasoning_gym,
    "data-levels": levels,
    "data-files": each_file_type,
    "data-mixed": mixed_sources,
    "data-duplicate-keys": lambda folder: table(folder, [{**row, "uid": "same"} for row in ROWS], key="uid"),
    "data-no-source": lambda folder: load(folder, sums={}),
    "data-unknown-type": lambda folder: load(folder, sums={"source": {"type": "reasoning-gym"}}),
    "data-unknown-source-key": lambda folder: task(folder, sise=5),
    "data-unknown-task": lambda folder: task(folder, name="chain_sums"),
    "data-bad-task-config": lambda folder: task(folder, config={"min_terms": 5, "max_terms": 2}),
    "data-missing-file": lambda folder: table(folder, path="none.parquet"),
    "data-other-file": other_file,
    "data-unreadable": unreadable,
    "data-missing-column": lambda folder: table(folder, prompt="text"),
    "data-missing-key": lambda folder: table(folder, key="id"),
    "data-empty-prompt": lambda folder: table(folder, [*ROWS, {**ROWS[0], "question": ""}]),
    "data-prompt-type": lambda folder: table(folder, prompt="hard"),
    "data-level-type": lambda folder: table(folder, level="uid"),
    "data-no-rows": lambda folder: table(folder, ROWS, split="train[:0]"),
    "data-reward-form": lambda folder: table(folder, reward="exact"),
    "data-reward-import": broken_module,
    "data-reward-missing": lambda folder: table(folder, reward="inputs_data:exakt"),
}
