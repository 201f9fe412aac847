"""The results of an entry to BabyLM's multilingual track, language by language beside the published baselines."""

from statistics import fmean

from bakeoff.challenge.folder import MAIN
from bakeoff.challenge.languages import LANGUAGES
from bakeoff.challenge.multilingual import SUITES, suites_of
from bakeoff.challenge.multilingual_baselines import baselines_of
from bakeoff.challenge.results import EntryResults, shown
from bakeoff.challenge.rules import Published


class MultilingualResults(EntryResults):
    """The results of an entry to the multilingual track; `words` are those of English with the same content."""

    languages: dict[str, float]
    """The words that the text of each language counts for."""
    byte_premiums: dict[str, float]
    """The byte premium of each language."""

    @property
    def submitted(self) -> tuple[str, ...]:
        """The names of both files to be submitted."""
        return self.submission, self.submission.replace("_submission", "_predictions")

    @property
    def others(self) -> tuple[Published, ...]:
        """The organisers' baseline of the same languages, and those of one language each."""
        return baselines_of(list(self.languages))

    @property
    def curves(self) -> tuple[str, ...]:
        """The tasks that are scored of each checkpoint."""
        return tuple(suite.key for suite in suites_of(list(self.languages)))

    @property
    def text(self) -> str:
        """The words of each language."""
        parts = (
            f"{LANGUAGES[code].name} {round(words):,} (byte premium {self.byte_premiums[code]:g})"
            for code, words in self.languages.items()
        )
        return f" ({', '.join(parts)})"

    @property
    def note(self) -> str:
        """What is to be said of the scores."""
        return (
            "Fine-tuning: mean and deviation over seeds; the best pass by the rows that are reported is kept, "
            "where the official script ends with the last one."
        )

    def remarks(self) -> list[str]:
        """Sentences on what readers have to know of the numbers."""
        if self.backend == "causal":
            return super().remarks()
        line = "lm-eval, with which the organisers score, reads causal models alone; these are pseudo-log-likelihoods"
        return [line, *super().remarks()]

    def rows(self) -> list[tuple[str, ...]]:
        """A row for each task of each language, and their means as the organisers publish them."""
        found = self.scores.get(MAIN, {})
        rows: list[tuple[str, ...]] = []
        for code in self.languages:
            language = LANGUAGES[code]
            rows += [
                self._row(suite.key, f"{language.short}: {suite.title}", found.get(suite.key)) for suite in SUITES[code]
            ]
            public = [key for key in (suite.key for suite in SUITES[code]) if not key.startswith(("global_", "hanzi_"))]
            if all(key in found for key in public):
                means = fmean(found[key].official for key in public), fmean(found[key].tie_safe or 0 for key in public)
                title = f"{language.short}: zero-shot, mean without GlobalPIQA and Hanzi"
                rows.append((title, *map(shown, means), "-", *self._published(f"mean_{code}")))
            rows += [self._labelled_row(name) for name in self.labelled if name.endswith(f"_{language.short}")]
        return rows
