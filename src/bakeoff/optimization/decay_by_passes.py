"""A weight decay that follows the text: how many passes the weights remember."""

from pydantic import Field

from bakeoff.config import Config

SHORTEST = 25
"""The fewest steps that the weights remember, however short the text is."""


class DecayByPasses(Config):
    """The decay lambda with 1 / (eta lambda) = `passes` S, where eta is the rate and S the steps of a pass.

    With decoupled decay a weight is a running mean of its updates over 1 / (eta lambda) steps, whose best length is
    some number of passes, whatever the rate and the size of the text (Wang and Aitchison 2024, arXiv:2405.13698): a
    text that is read once is hardly decayed, and one that is read often strongly. The mean is over 25 steps at least.
    Where the first weights come from a run, S counts the texts that have trained them, too: what they know of those is
    in the mean, and a small text would otherwise decay it (docs/learning.md, further training).
    """

    passes: float = Field(gt=0)
    """Passes over the text that the weights remember."""

    def at(self, rate: float, steps_a_pass: float) -> float:
        """The decay in a training at that rate.

        Args:
            rate: the learning rate where the schedule's factor is 1.
            steps_a_pass: the steps of a pass over the text.
        """
        return 1 / (rate * max(SHORTEST, self.passes * steps_a_pass))

    def steps_a_pass(self, rate: float, decay: float) -> float:
        """The steps of a pass over the text for which the decay at a rate was chosen; of a short one, too many."""
        return 1 / (rate * decay * self.passes)
