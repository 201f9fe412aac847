"""The results of an entry: scores of its checkpoints and of its last model, beside the track's published baseline."""

from pathlib import Path
from statistics import fmean

from pydantic import Field

from bakeoff.challenge.acquisition import CHANCE, AgeScore
from bakeoff.challenge.choosing import SuiteScores
from bakeoff.challenge.evaluation import AOA, READING, Evaluation
from bakeoff.challenge.folder import MAIN
from bakeoff.challenge.labelled import NEARLY_ALL, TASKS, TaskScores
from bakeoff.challenge.reading_times import ReadingScores
from bakeoff.challenge.rules import TRACKS, Published, checkpoint_name
from bakeoff.challenge.suites import SUITES
from bakeoff.config import Config
from bakeoff.display import markdown
from bakeoff.display.wording import counted, listed, number, p_value

OVERALL = ("blimp", "blimp_supplement", "ewok", "entity_tracking", "comps", "glue", "global_piqa", READING, AOA)
"""The parts whose mean the leaderboard ranks by."""


class Score(Config):
    """A score of a model."""

    official: float
    """In percent, as the official pipeline has it; what it makes of equal scores says `Suite.ties`."""
    tie_safe: float | None = None
    """In percent, where ties share the point; None: the part has no ties."""
    ties: int = 0
    """The number of ties."""
    items: int = 0
    """The number of items."""


class EntryResults(Config):
    """The results of an entry; babylm.json."""

    path: Path = Field(default=Path(), exclude=True)
    """The folder of the entry."""
    track: str
    """The track."""
    recipe: str
    """The name of the recipe."""
    backend: str
    """causal or mlm."""
    words: int
    """The words of the text."""
    words_read: int
    """The words that were read in training."""
    checkpoints: list[int]
    """The words after which checkpoints were kept."""
    scores: dict[str, dict[str, Score]]
    """The scores of each model, of the last one as main, by the names of parts."""
    ages: AgeScore | None = None
    """How the order in which words are learned agrees with that of children; None: it was not scored."""
    labelled: dict[str, TaskScores]
    """The scores of fine-tuning tasks."""
    missing: list[str]
    """What was not scored, because its data is missing."""
    lacking: list[str]
    """What the submission lacks; empty: it is whole."""
    submission: str
    """The name of the file to be submitted."""

    @property
    def text(self) -> str:
        """What is to be said of the text."""
        return ""

    @property
    def note(self) -> str:
        """What is to be said of the scores."""
        return (
            "Reading is the mean of both kinds of times. Fine-tuning: mean and deviation over seeds, on the rows by "
            "which the best epoch was chosen, as officially."
        )

    def titles(self) -> tuple[str, ...]:
        """The titles of the columns of `rows`."""
        return ("", "official", "ties shared", "ties", *(each.name for each in self.others))

    @property
    def submitted(self) -> tuple[str, ...]:
        """The names of all files to be submitted."""
        return (self.submission,)

    @property
    def others(self) -> tuple[Published, ...]:
        """Models of others, whose scores stand beside the own ones."""
        return TRACKS[self.track].published

    @property
    def curves(self) -> tuple[str, ...]:
        """The parts that are scored of each checkpoint."""
        return (*(suite.key for suite in SUITES), READING)

    def rows(self) -> list[tuple[str, ...]]:
        """A row for each part: its name, the official score, the tie-safe one, the ties, and what others reached."""
        found = self.scores.get(MAIN, {})
        rows: list[tuple[str, ...]] = []
        for key, title in [*((suite.key, suite.title) for suite in SUITES), (READING, READING)]:
            rows.append(self._row(key, title, found.get(key)))
        aoa = None if self.ages is None else self.ages.official
        rows.append(("AoA", shown(aoa), "-", "-", *self._published(AOA)))
        means = self._means()
        if "global_piqa" in means:
            mean = shown(means["global_piqa"])
            rows.append(("GlobalPIQA, mean", mean, "-", "-", *self._published("global_piqa")))
        rows += [self._labelled_row(name) for name in self.labelled]
        if "glue" in means:
            rows.append(("fine-tuning, mean", shown(means["glue"]), "-", "-", *self._published("glue")))
        nine = [means.get(key) for key in OVERALL]
        if None not in nine:
            mean = shown(fmean(each for each in nine if each is not None))
            rows.append(("all nine, mean", mean, "-", "-", *self._published("overall")))
        return rows

    def _means(self) -> dict[str, float]:
        """The official scores of what there is of the nine parts, in percent."""
        found = self.scores.get(MAIN, {})
        means = {key: score.official for key, score in found.items()}
        piqa = [value for key, value in means.items() if key.startswith("global_piqa")]
        if len(piqa) == 2:
            means["global_piqa"] = fmean(piqa)
        if len(self.labelled) == len(TASKS):
            means["glue"] = fmean(scores.mean for scores in self.labelled.values())
        return means if self.ages is None else means | {AOA: self.ages.official}

    def _row(self, key: str, title: str, score: Score | None) -> tuple[str, ...]:
        own = ["-", "-", "-"] if score is None else [shown(score.official), shown(score.tie_safe), "-"]
        if score is not None and score.tie_safe is not None:
            own[-1] = f"{score.ties:,} of {score.items:,}"
        return (title, *own, *self._published(key))

    def _labelled_row(self, name: str) -> tuple[str, ...]:
        scores = self.labelled[name]
        own = f"{scores.mean:.2f} ± {scores.deviation:.2f}"
        return (f"{name}, {scores.metric}", own, "-", "-", *self._published(name))

    def _published(self, key: str) -> list[str]:
        return [shown(each.scores.get(key)) for each in self.others]

    def remarks(self) -> list[str]:
        """Sentences on what readers have to know of the numbers."""
        lines = [
            f"{name}: {100 * NEARLY_ALL:.0f} % of the rows or all got one label with "
            f"{'seed' if len(scores.collapsed) == 1 else 'seeds'} {listed(list(map(str, scores.collapsed)))}; the mean "
            "holds it"
            for name, scores in self.labelled.items()
            if scores.collapsed
        ]
        if self.ages is not None:
            lines.append(_of_ages(self.ages))
        lines += [f"not scored: {each}" for each in self.missing]
        return lines + [f"the submission is not whole: {each}" for each in self.lacking]

    def markdown(self) -> str:
        """The report."""
        sources = "; ".join(f"{each.name}: {each.source}" for each in self.others)
        title = f"# BabyLM {self.track}: {markdown.text(self.recipe)}"
        lines = [
            title,
            "",
            f"{self.words:,} words of text{self.text}, {self.words_read:,} words read, "
            f"{counted(len(self.checkpoints), 'checkpoint')}; scored as {self.backend}.",
            "",
            f"| {' | '.join(self.titles())} |",
            f"|{'---|' * len(self.titles())}",
            *(f"| {' | '.join(map(markdown.cell, row))} |" for row in self.rows()),
            "",
            f"Of others: {sources}. {self.note}",
            "",
        ]
        keys = [
            key
            for key in self.curves
            if any(key in self.scores.get(checkpoint_name(words), {}) for words in self.checkpoints)
        ]
        if keys:
            lines += [f"| fast | {' | '.join(keys)} |", f"|---|{'---|' * len(keys)}"]
            for words in self.checkpoints:
                found = self.scores.get(checkpoint_name(words), {})
                cells = [shown(found[key].official) if key in found else "-" for key in keys]
                lines.append(f"| {checkpoint_name(words)} | {' | '.join(cells)} |")
            lines.append("")
        lines += [f"- {markdown.sentence(each)}" for each in self.remarks()]
        return "\n".join(lines).rstrip() + "\n"


def zero_shot_scores(evaluation: Evaluation) -> dict[str, dict[str, Score]]:
    """The scores of all models, by the names of models and parts."""
    found: dict[str, dict[str, Score]] = {}
    for part in evaluation.parts:
        scores = None if part.key == AOA else evaluation.scores(part)
        if isinstance(scores, SuiteScores):
            score = Score(official=scores.accuracy, tie_safe=scores.tie_safe, ties=scores.ties, items=scores.items)
        elif isinstance(scores, ReadingScores):
            score = Score(official=scores.score, items=len(scores.surprisals))
        else:
            continue
        found.setdefault(part.model, {})[part.key] = score
    return found


def _of_ages(ages: AgeScore) -> str:
    """What an AoA score rests on."""
    learned = counted(ages.words, "word")
    if ages.correlation is None or ages.p is None:
        return (
            f"AoA: {learned} learned between the first checkpoint and the last, too few for a correlation, which is 0"
        )
    p = p_value(ages.p)
    chance = f", which officially is 0 because p is above {CHANCE:g}" if ages.p > CHANCE else ""
    return (
        f"AoA: when {learned} are learned correlates with the ages of children by {number(ages.correlation, 3)} "
        f"(p {p if p.startswith('<') else f'= {p}'}){chance}"
    )


def shown(value: float | None) -> str:
    """A score in words; a dash where there is none."""
    return "-" if value is None else number(value, 2)
