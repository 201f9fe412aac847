"""Answers the texts of a file with a small run in a process of its own, and prints the memory that it took at most.

python answering.py predict|generate|evaluate RUN FILE
"""

import resource
import sys
import tracemalloc


def answer(verb, run, file):
    """Go through all answers, as the command line does; how many there were."""
    from pathlib import Path

    from bakeoff.generation.config import GenerationConfig
    from bakeoff.generation.generate import write
    from bakeoff.reading.text_files import TextFile
    from bakeoff.runs.run import Run
    from bakeoff.tasks.finetuned_run import FinetunedRun
    from bakeoff.tasks.language import open_scores
    from bakeoff.tasks.predict import predict_parts

    texts = TextFile(Path(file), ["text"])
    if verb == "predict":
        return sum(len(part) for part in predict_parts(FinetunedRun.open(run), texts, device="cpu"))
    if verb == "generate":
        return sum(len(part) for part in write(run, texts, GenerationConfig(tokens=2), device="cpu"))
    return sum(1 for _ in open_scores(Run.open(run), file, device="cpu"))


def traced(verb, run, file):
    """The most bytes that Python and numpy held at once, and how many answers there were."""
    tracemalloc.start()
    try:
        count = answer(verb, run, file)
        return tracemalloc.get_traced_memory()[1], count
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    count = answer(*sys.argv[1:])
    print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
