"""The targets of all objectives in rows: hidden and moved tokens and queries, drawn one objective after the other."""

from collections.abc import Collection, Sequence
from typing import cast

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
from bakeoff.formats.input_config import RowMarks
from bakeoff.formats.relation import AsTheyAre, Relation
from bakeoff.objectives.objective import Objective, ObjectiveConfig, Targets, no_targets
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer


class TargetDrawing:
    """The objectives of a training, applied to rows.

    Args:
        configs: the objectives' configs.
        objectives: the objectives built from them.
        idle: names of inactive objectives: they hide, move and replace no tokens and have no targets of tokens, and all
            second segments follow the first.
    """

    def __init__(
        self, configs: Sequence[ObjectiveConfig], objectives: Sequence[Objective], idle: Collection[str] = ()
    ) -> None:
        self.objectives = objectives
        # Each leaves alone what those before it have taken: the order in which they are listed is to change nothing.
        turns = sorted(
            zip(configs, objectives, strict=True),
            key=lambda pair: (not pair[0].reads_rows, pair[0].moves, pair[0].kind),
        )
        self.in_turn = [each for config, each in turns if config.relates_segments or config.kind not in idle]
        self.versions = next((config.versions for config in configs if config.versions is not None), None)
        """Number of versions of an example; None: another version in every epoch."""
        related = [
            AsTheyAre() if config.kind in idle else cast(Relation, objective)
            for config, objective in zip(configs, objectives, strict=True)
            if config.relates_segments
        ]
        self.relation = related[0] if related else None
        """The relation that arranges the segments of pairs; None: the segments stay as they are."""
        self.marks: RowMarks = next((config.row_marks for config in configs if config.row_marks != "ends"), "ends")
        """The special tokens in rows of text."""

    def draws(self, draws: Draws) -> Draws:
        """The random numbers of the rows; they repeat from epoch to epoch if examples have few versions."""
        return draws if self.versions is None else draws.static(self.versions)

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> dict[str, Targets]:
        """The targets of each objective by its name; the examples' ids are changed in place."""
        drawn = {each.name: each.targets(examples, split, tokenizer, draws) for each in self.in_turn}
        return {each.name: drawn.get(each.name, no_targets()) for each in self.objectives}
