"""The plan of a corpus, kept on the disk: all facts about the whole text that the encoding of a shard needs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bakeoff import checksums
from bakeoff.config import Config
from bakeoff.corpus.manifest import SourceFile
from bakeoff.corpus.store import SPLITS, TEST
from bakeoff.durable import sync, write_atomically
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.preparation.planning.held_out import Survey
from bakeoff.preparation.planning.sampling import CutPoint
from bakeoff.preparation.planning.selection import DocumentSelection
from bakeoff.same_settings import differences
from bakeoff.text.sentences import LINES
from bakeoff.text.word_order import NgramShuffle
from bakeoff.tokenizer.tokenizer import Tokenizer

_PLAN, _TOKENIZER, _LEFT_OUT = "plan.json", "tokenizer.json", "left_out.npy"


class PreparationPlan(Config):
    """Findings of the readings before the encoding, and the arguments that they belong to."""

    arguments: dict[str, Any]
    """All arguments that the corpus depends on: input files with sizes and times, options, versions."""
    options: dict[str, Any]
    """Options as the manifest of the corpus records them."""
    sources: list[SourceFile]
    """Input files."""
    survey: Survey
    """Findings of the first reading of the text."""
    starts: list[CutPoint]
    """The point of the text at which each shard starts; a single shard is the whole text."""
    tokenizer_sample: dict[str, Any]
    """The tokenizer's training sample, see `Manifest.tokenizer_sample`; empty if a tokenizer was given."""
    skips: dict[str, int]
    """Numbers of files and documents that were left out before the encoding, by reason."""
    sentence_rule: str
    """Name and version of the rule that splits sentences."""
    versions: dict[str, str]
    """Versions of Bakeoff, Python and the libraries that make the corpus."""

    @property
    def share(self) -> float | None:
        """Share of the text that is held out; None: validation text was given."""
        validation = self.options["validation"]
        return validation if isinstance(validation, float) else None

    @property
    def cut(self) -> tuple[str, ...]:
        """The names of the splits that are cut from the text."""
        return SPLITS[:1] if self.share is None else SPLITS

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all splits of the corpus."""
        return (*SPLITS, TEST) if "test" in self.options else SPLITS

    @property
    def runs(self) -> bool:
        """Whether runs within documents are held out, because whole documents cannot give the share."""
        return self.share is not None and self.survey.runs

    @property
    def _unit(self) -> str:
        if not self.runs:
            return "documents"
        return "runs of sentences" if self.survey.sentences else "runs of paragraphs"

    @property
    def lines(self) -> bool:
        """Whether each line is a sentence."""
        return self.sentence_rule == LINES

    @property
    def shuffle(self) -> NgramShuffle | None:
        """Settings of the shuffling of words; None: words keep their order."""
        ngram = self.options["shuffle_ngrams"]
        return None if ngram is None else NgramShuffle(ngram, self.options["seed"])

    @property
    def shards(self) -> int:
        """Number of shards that the text is cut into."""
        return len(self.starts)

    def save(self, folder: Path, tokenizer: Tokenizer, selection: DocumentSelection | None) -> None:
        """Write the plan to a folder; its file appears complete or not at all."""
        names = [_TOKENIZER]
        write_atomically(folder / _TOKENIZER, tokenizer.to_string())
        if selection is not None:
            np.save(folder / _LEFT_OUT, selection.left_out)
            sync(folder / _LEFT_OUT)
            names.append(_LEFT_OUT)
        text = json.dumps(self.model_dump(mode="json"), ensure_ascii=False)
        checksums.record(folder, names, {_PLAN: text})
        write_atomically(folder / _PLAN, text)
        sync(folder)

    @classmethod
    def load(cls, folder: Path) -> "PreparationPlan | None":
        """The plan in a folder; None: there is none that this version can read."""
        try:
            return cls.parse(read_json(folder / _PLAN), str(folder / _PLAN))
        except UserError:
            return None

    @staticmethod
    def tokenizer(folder: Path) -> Tokenizer:
        """The tokenizer of the plan in a folder."""
        return Tokenizer.load(folder / _TOKENIZER)

    @staticmethod
    def selection(folder: Path) -> DocumentSelection | None:
        """The selection of documents of the plan in a folder; None: all documents are kept."""
        if not (folder / _LEFT_OUT).exists():
            return None
        checksums.verify(folder / _LEFT_OUT)
        try:
            return DocumentSelection(np.load(folder / _LEFT_OUT, allow_pickle=False), {})  # noqa: TID251
        except (OSError, ValueError) as error:
            raise UserError(f"{folder / _LEFT_OUT}: damaged ({error}); remove {folder} to start anew") from None

    def difference(self, arguments: Mapping[str, Any]) -> str | None:
        """The first difference of arguments from those of this plan, in words; None: there is none."""
        return next(differences(*self.compared(arguments)), None)

    def compared(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
        """The arguments of this plan and others, for `require_same`, and the names whose values are not shown.

        A file stands by its path with its size and time, so that a file that has changed is named.
        """
        known = {key: arguments.get(key) for key in self.arguments}
        before, now = (_by_file(each) for each in (self.arguments, known))
        return before, now, ["input files", *before["input files"], "content of the tokenizer"]

    def provenance(self, recorded: int, opened: int, empty: int, given: int) -> dict[str, Any]:
        """The fields of `Manifest` about the origin of the corpus.

        Args:
            recorded: number of documents in the corpus.
            opened: number of documents that were kept, including those without a token.
            empty: number of empty documents.
            given: number of kept documents of given splits.
        """
        skips = {**self.skips, "empty documents": empty, "documents without tokens": max(0, opened - recorded)}
        return {
            "sources": self.sources,
            "options": self.options,
            "sentence_rule": self.sentence_rule,
            "tokenizer_sample": self.tokenizer_sample,
            "originals": self.survey.documents + given if self.runs else recorded,
            "validation_unit": self._unit,
            "skips": {reason: count for reason, count in sorted(skips.items()) if count},
            "versions": self.versions,
        }


def shard_folder(work: Path, shard: int, shards: int) -> Path:
    """The folder in which shard number `shard`, from 1, of a corpus grows; the shard's journal stands beside it."""
    return work / f"part-{shard:05}-of-{shards:05}"


def _by_file(arguments: Mapping[str, Any]) -> dict[str, Any]:
    files = {str(path): facts for path, *facts in arguments["files"]}
    return {"input files": [*files], **files, **{key: value for key, value in arguments.items() if key != "files"}}
