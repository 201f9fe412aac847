"""The text of a corpus prepared anew with another tokenizer: the same files, options and held-out text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bakeoff.corpus.manifest import SourceFile
from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError, at_home
from bakeoff.preparation.prepare import prepare
from bakeoff.preparation.progress import ShowProgress
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

ADVICE = "prepare the text yourself with `bakeoff prepare TEXT --tokenizer FILE --out DIR`, and name that corpus"
"""Advice where the files of a text are not to be had."""


class SameTokenizer(UserError):
    """A tokenizer that is asked for is that of the corpus already."""


def tokenizer_asked_for(corpus: Corpus, changes: Mapping[str, Any]) -> TokenizerConfig:
    """The settings of a corpus's tokenizer, as they were asked for, with some changes.

    Raises:
        SameTokenizer: the changes leave the settings as they are.
        UserError: they do not go together.
    """
    recorded = corpus.manifest.options.get("tokenizer")
    before = recorded if isinstance(recorded, Mapping) else corpus.tokenizer.config.model_dump()
    settings = TokenizerConfig.parse({**before, **changes}, "tokenizer")
    if isinstance(recorded, Mapping) and settings == TokenizerConfig.parse(recorded, str(corpus.path)):
        raise SameTokenizer(f"tokenizer would have no effect: {corpus.path} has it already, {settings}")
    return settings


def prepare_again(
    corpus: Corpus, tokenizer: TokenizerConfig | Path, out: str | Path, progress: ShowProgress = False
) -> Corpus:
    """Prepare the text of a corpus anew with another tokenizer; what is held out stays the same text.

    Args:
        corpus: the corpus.
        tokenizer: the settings of a tokenizer to train, or a tokenizer.json or a folder with one.
        out: folder of the new corpus.
        progress: as of `prepare`.

    Raises:
        UserError: the corpus holds pairs, or a file of its text is missing or has changed.
    """
    if corpus.pairs:
        raise UserError(f"{corpus.path}: holds pairs of texts, which are not prepared anew; {ADVICE}")
    manifest = corpus.manifest
    files: dict[str | None, list[str]] = {}
    for source in manifest.sources:
        files.setdefault(source.split, []).append(str(_found(source, corpus.path)))
    options = {**manifest.options, "tokenizer": tokenizer}
    options |= {split: paths for split, paths in files.items() if split is not None}
    if (asked := manifest.tokenizer_sample.get("asked_bytes")) is not None:
        options["tokenizer_sample"] = asked
    return prepare(files[None], out, progress=progress, **options)


def _found(source: SourceFile, corpus: Path) -> Path:
    """A file of a text, which may be named relative to the folder that it was prepared in.

    Raises:
        UserError: it is not there, or has another size.
    """
    if source.revision is not None:
        raise UserError(f"{corpus}: its text is from the Hub ({source.path}); {ADVICE}")
    path = at_home(source.path)
    folders = [Path(), *corpus.resolve().parents]
    there = [folder / path for folder in folders if (folder / path).is_file()]
    same = [each for each in there if each.stat().st_size == source.bytes]
    if not same:
        what = f"{there[0]} has changed since" if there else f"its file {path} is not there any more"
        raise UserError(f"{corpus}: cannot be prepared anew with another tokenizer: {what}; {ADVICE}")
    return same[0].resolve()
