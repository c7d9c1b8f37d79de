"""An engine that sleeps after each generation stays awake between the two parts of a round."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def one_waking(trainer: Any) -> Iterator[None]:
    """Within it, TRL's engine in the process wakes for the first generation, and sleeps at the end.

    Its sleep discards the weights: all of them would be sent again for the second part.
    """
    generation = trainer.vllm_generation if trainer.use_vllm and trainer.vllm_mode == "colocate" else None
    if generation is None or not generation.enable_sleep_mode:
        yield
        return
    engine = generation.llm
    generation.llm = _Waking(generation)
    try:
        yield
    finally:
        generation.llm = engine
        if not generation.enable_sleep_mode:
            generation.enable_sleep_mode = True
            engine.sleep(level=2)  # as TRL does
            generation._llm_weights_sleeping = True


class _Waking:
    """The engine; once it has generated, TRL is told of no sleep mode, so it neither puts it to sleep nor wakes it."""

    def __init__(self, generation: Any) -> None:
        self._generation, self._llm = generation, generation.llm

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)

    def generate(self, *arguments: Any, **keywords: Any) -> Any:
        done = self._llm.generate(*arguments, **keywords)
        self._generation.enable_sleep_mode = False
        return done
