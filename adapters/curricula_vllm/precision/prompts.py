"""Prompts to sample from: some built in, or a file's."""

import json
from pathlib import Path
from typing import Any

from curricula.errors import CurriculaValueError

BUILT_IN = (
    "What is 17 times 23? Work it out step by step.",
    "A train leaves at 9:40 and arrives at 13:05. How long does it take?",
    "Which is larger, 3/7 or 5/12? Explain.",
    "Write the numbers from 20 down to 1.",
    "Sort these words by length: river, sun, mountain, lake, ice.",
    "If all bloops are razzies and no razzie is a lazzie, can a bloop be a lazzie?",
    "Write a Python function that reverses the words of a sentence.",
    "Solve 3x + 7 = 2x - 5 for x.",
    "How many times does the letter r occur in strawberry?",
    "Tell a very short story about a lighthouse keeper and a whale.",
    "Translate into French: The library closes at six on Sundays.",
    "What comes next: 1, 1, 2, 3, 5, 8, ?",
    "Explain in three sentences why the sky is blue.",
    "A shop gives 20% off, then another 10%. What is the whole discount?",
    "List five animals that lay eggs and one that does not.",
    "Is 221 a prime number? Show why.",
)


def read_prompts(path: Path, most: int) -> list[Any]:
    """The first prompts of a file: .jsonl or .parquet with a column `prompt`, else text with a prompt a line.

    Returns:
        Texts, or lists of messages where that is what the column holds.

    Raises:
        CurriculaValueError: A file that cannot be read, or without prompts, with the place.
    """
    if not path.is_file():
        raise _refusal("a .jsonl, .parquet or text file", f"{path}, which is none", "check the path")
    try:
        if path.suffix == ".parquet":
            found = _parquet(path, most)
        else:
            lines = path.read_text(encoding="utf-8").splitlines()
            filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()][:most]
            found = [_of_json(path, *line) for line in filled] if path.suffix == ".jsonl" else [t for _, t in filled]
    except (OSError, UnicodeDecodeError) as error:
        raise _refusal("a file that can be read", f"{path}: {error}", "give another") from error
    if len(found) < 2:
        given = f"{'one' if found else 'none'} in {path}"
        raise _refusal("at least two prompts, as a standard error is over completions", given, "add more")
    for number, prompt in enumerate(found, 1):
        if not (prompt and (isinstance(prompt, str) or _is_chat(prompt))):
            given = f"{str(prompt)[:80]!r}, prompt {number} of {path}"
            raise _refusal("a text, or messages with role and content", given, "change it")
    return found


def _of_json(path: Path, number: int, line: str) -> Any:
    place = f"in line {number} of {path}"
    try:
        row = json.loads(line)
    except ValueError as error:
        raise _refusal("JSON", f"other text {place}", "change it") from error
    if not isinstance(row, dict) or "prompt" not in row:
        given = ", ".join(row) if isinstance(row, dict) else type(row).__name__
        raise _refusal("an object with prompt", f"{given} {place}", "add it")
    return row["prompt"]


def _parquet(path: Path, most: int) -> list[Any]:
    import pyarrow
    import pyarrow.parquet as parquet

    try:
        table: Any = parquet.ParquetFile(path)
        names = table.schema_arrow.names
        if "prompt" not in names:
            raise _refusal("a column prompt", f"{', '.join(names)} in {path}", "rename one")
        for batch in table.iter_batches(batch_size=most, columns=["prompt"]):
            return batch.column(0).to_pylist()
    except pyarrow.ArrowInvalid as error:
        raise _refusal("Parquet", f"other bytes in {path}", "give another file") from error
    return []


def _refusal(expected: str, given: str, advice: str) -> CurriculaValueError:
    return CurriculaValueError(f"--prompts: expected {expected}; got {given}; {advice}")


def _is_chat(prompt: Any) -> bool:
    return isinstance(prompt, list) and all(
        isinstance(turn, dict) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str)
        for turn in prompt
    )
