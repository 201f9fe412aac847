"""The vocabulary that llama.cpp reads with each architecture."""

from bakeoff.interop.gguf.unigram import Unigram
from bakeoff.interop.gguf.vocabulary import ByteBpe, Vocabulary, WordPiece
from bakeoff.runs.run import Run


def vocabulary_of(run: Run, architecture: str, where: str) -> Vocabulary:
    """The run's vocabulary for the architecture bert, gpt2 or t5.

    Raises:
        UserError: llama.cpp would cut texts into other tokens; `where` names the run.
    """
    kinds: tuple[type[Vocabulary], ...] = (WordPiece, ByteBpe, Unigram)
    return next(kind for kind in kinds if kind.architecture == architecture)(run, where)
