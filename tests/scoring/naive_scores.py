"""Log-probabilities by their definition: one token after the other, each in a row of its own, in float64."""

import torch

from bakeoff.batching.batch import Batch
from bakeoff.row import Queries, Row, Source


class Naive:
    """The distributions of a run's tokens.

    Args:
        run: a pre-trained run.
        objective: the config of the objective whose head predicts.
    """

    def __init__(self, run, objective):
        self.module, self.objective = run.load().double(), objective
        self.recipe, self.tokenizer = run.recipe, run.tokenizer
        self.head = next(each.head for each in self.module.objectives if each.name == objective.kind)
        if hasattr(self.head, "softmax"):  # torch's adaptive softmax reads float32
            self.head.softmax.float()

    @torch.no_grad()
    def after(self, ids, source=None):
        """(V,) log-probabilities of the token that follows ids, which begin as the model's rows do."""
        if source is not None:
            source = Source(torch.tensor([source]))
        hidden = self.module.model(Row(torch.tensor([ids]), source=source))[0][0, -1]
        return self._spread(hidden[: self.recipe.model.stack.output_width])

    @torch.no_grad()
    def at(self, ids, place, hidden=()):
        """(V,) log-probabilities of the token at a place of a text, with this token and those at `hidden` unseen."""
        unseen, tokenizer = {place, *hidden}, self.tokenizer
        masked = [tokenizer.mask if each in unseen else token for each, token in enumerate(ids)]
        if self.objective.from_before:
            row = torch.tensor([[tokenizer.separator, *masked]])
            return self._spread(self._hidden(Row(row, prefix=torch.tensor([row.shape[1]])))[place])
        if not self.recipe.input.start_last:
            return self._spread(
                self._hidden(Row(torch.tensor([[tokenizer.start, *masked, tokenizer.separator]])))[place + 1]
            )
        segments = torch.tensor([[0] * (len(ids) + 1) + [2]])  # the last [CLS] has a segment of its own
        if self.objective.scoring == "masked":
            row = torch.tensor([[*masked, tokenizer.separator, tokenizer.start]])
            return self._spread(self._hidden(Row(row, segments))[place])
        row = torch.tensor([[*ids, tokenizer.separator, tokenizer.start]])
        visible = torch.ones(1, row.shape[1] + 1, row.shape[1], dtype=torch.bool)
        visible[:, :, sorted(unseen)] = False
        return self._spread(self._hidden(Row(row, segments, queries=Queries(torch.tensor([[place]]), visible)))[-1])

    def _hidden(self, row):
        count = row.ids.shape[1] + (0 if row.queries is None else row.queries.positions.shape[1])
        batch = Batch(row, {self.objective.kind: (torch.arange(count), torch.arange(count))})
        return self.module(batch, score=lambda head, rows, labels, table: rows)[0][self.objective.kind]

    def _spread(self, state):
        return self.head.scores(state[None], self.module.model.embedding.weight)[0].log_softmax(-1)

    def of_text(self, ids):
        """The log-probability of each token of a text that fits into a row."""
        if self.objective.scoring == "forwards":
            row = [self.tokenizer.opening, *ids]
            return [float(self.after(row[: place + 1])[token]) for place, token in enumerate(ids)]
        return [float(self.at(ids, place)[token]) for place, token in enumerate(ids)]

    def of_target(self, source, target):
        """The log-probability of each token of a target and of its end, given the text of the source."""
        tokenizer, objective = self.tokenizer, self.objective
        read = [*objective.before_source(tokenizer), *tokenizer.encode([source])[0][0].tolist(), tokenizer.separator]
        written, found = list(objective.prompt(tokenizer)), []
        for token in [*tokenizer.encode_targets([target])[0].tolist(), tokenizer.separator]:
            found.append(float(self.after(written, read)[token]))
            written.append(token)
        return found
