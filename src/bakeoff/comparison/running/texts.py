"""The corpus that each recipe of a plan is trained on; texts and other tokenizers are prepared first."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.planning.recipe_plan import RecipePlan
from bakeoff.comparison.running.refusals import of_recipe
from bakeoff.corpus.mixture import mixture_entries
from bakeoff.corpus.store import MANIFEST, Corpus
from bakeoff.display.wording import quoted
from bakeoff.jobs.choice import corpus_folders
from bakeoff.jobs.runner import Say
from bakeoff.preparation.again import SameTokenizer, prepare_again, tokenizer_asked_for
from bakeoff.preparation.prepare import prepare
from bakeoff.reading.files import find_files
from bakeoff.reading.hub import HubFile
from bakeoff.tokenizer.identity import identity_of, same_ids
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

PREPARED = "corpora"
"""The folder, in a comparison's directory, of corpora that were prepared for it."""

AnyTokenizer = TokenizerConfig | Path
"""The settings of a tokenizer to train, or a tokenizer.json or a folder with one."""


class Text(NamedTuple):
    """The corpus that a recipe is trained on."""

    path: Path
    """Directory of the corpus, or directories with weights; the plan's for a recipe that is compared as it is."""
    tokenizer: Path
    """A folder with the tokenizer of the recipe's models: a corpus, or a run."""


class Texts:
    """The corpora of a plan's recipes.

    Args:
        plan: the plan.
        out: the comparison's directory.
        aside: the directory in which corpora are prepared that are not in `out`.
        say: a function that shows one line before a corpus is prepared.
    """

    def __init__(self, plan: Plan, out: Path, aside: Path, say: Say) -> None:
        self.plan, self.out, self.aside, self.say = plan, out, aside, say

    def of(self, item: RecipePlan, run: Path | None) -> Text:
        """The corpus of a recipe, prepared if its file is a text or has another tokenizer than the recipe's models.

        Args:
            item: the recipe in the plan.
            run: the run that it starts from; None: random weights.

        Raises:
            UserError: the text cannot be prepared, or has that tokenizer already.
        """
        with of_recipe(item.name):
            if item.as_it_is:
                assert run is not None
                return Text(self.plan.corpus, run)
            corpus = item.corpus or self.plan.corpus
            wanted = run or self._wanted(item)
            if item.corpus is not None and not _prepared(corpus):
                corpus = self._anew(corpus, wanted or corpus_folders(str(self.plan.corpus))[0], item.name)
            elif wanted is not None and not (run and _same(corpus, run)):
                corpus = self._anew(corpus, wanted, item.name)
            return Text(corpus, corpus_folders(str(corpus))[0])

    def held_out(self, item: RecipePlan, text: Text) -> Path:
        """The plan's corpus, whose held-out text all are measured on, with the tokenizer of a recipe's models.

        Args:
            item: the recipe in the plan.
            text: the corpus that it is trained on.

        Raises:
            UserError: the text cannot be prepared anew.
        """
        if item.corpus is None and not item.as_it_is:
            return text.path
        with of_recipe(item.name):
            if _same(self.plan.corpus, text.tokenizer):
                return self.plan.corpus
            return self._anew(self.plan.corpus, text.tokenizer, item.name)

    def _wanted(self, item: RecipePlan) -> AnyTokenizer | None:
        """The tokenizer of a recipe's models, if the plan says one; else None, and they have that of the corpus.

        Raises:
            UserError: the corpus has it already.
        """
        own, corpus = item.own_tokenizer, item.corpus or self.plan.corpus
        if own is None:
            return None
        based_on = Corpus.open(corpus_folders(str(corpus if _prepared(corpus) else self.plan.corpus))[0])
        try:
            if isinstance(own, Mapping):
                return tokenizer_asked_for(based_on, own)
            if _same(based_on.path, own):
                raise SameTokenizer(f"tokenizer would have no effect: {based_on.path} has it already")
        except SameTokenizer:
            if item.cell is None:
                raise
            return None  # a level of a factor may be what the corpus has
        return own

    def _anew(self, corpus: Path, tokenizer: AnyTokenizer, label: str) -> Path:
        """A corpus prepared anew, or a text prepared; recipes with the same text and tokenizer share it."""
        made = []
        for folder, weight in mixture_entries(str(corpus)) or [(corpus, "")]:
            named = hashlib.sha256(json.dumps([_content(folder), _mark(tokenizer)]).encode()).hexdigest()[:8]
            name = Path(PREPARED) / f"{folder.stem}-{named}"
            out = self.out / name if (self.out / name / MANIFEST).is_file() else self.aside / name
            if not (out / MANIFEST).is_file():
                self.say(f"preparing {folder} with the tokenizer of {quoted(label)}")
                if _prepared(folder):
                    prepare_again(Corpus.open(folder), tokenizer, out)
                else:
                    prepare(folder, out, tokenizer=tokenizer)
            if isinstance(tokenizer, TokenizerConfig):  # the other corpora of a mixture have that of the first
                tokenizer = out
            made.append(f"{out.resolve()}:{weight}" if weight else str(out.resolve()))
        return Path(",".join(made))


def _prepared(corpus: Path) -> bool:
    """Whether a path is that of a corpus, or of several with weights, and not of a text."""
    return bool(mixture_entries(str(corpus))) or (corpus / MANIFEST).is_file()


def _same(corpus: Path, tokenizer: Path) -> bool:
    """Whether a corpus was prepared with a tokenizer."""
    return same_ids(Tokenizer.load(corpus_folders(str(corpus))[0]), Tokenizer.load(tokenizer))


def _mark(tokenizer: AnyTokenizer) -> object:
    """What tells a tokenizer from others."""
    if isinstance(tokenizer, TokenizerConfig):
        return tokenizer.model_dump(mode="json")
    return identity_of(Tokenizer.load(tokenizer))


def _content(text: Path) -> object:
    """What tells a corpus, or a text by its files and their sizes, from others."""
    if _prepared(text):
        return Corpus.open(text).fingerprint
    files = [file for file in find_files(text, Counter()) if not isinstance(file, HubFile)]
    return [[str(file.resolve()), file.stat().st_size] for file in files]
