"""The contrastive loss of two views of each text, and figures of how well the views of a text are told from others.

Shapes: N texts, D width.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize


def contrastive_losses(first: Tensor, second: Tensor, same: Tensor, temperature: float) -> Tensor:
    """(N,) loss of each text: how badly each of its views is told from the views of the other texts.

    With u_i and v_i the views of text i, cos their cosine and t the temperature, the mean of the two sides

        -log exp(cos(u_i, v_i) / t) / (sum over j of exp(cos(u_i, v_j) / t)),

    and the same for v_i among the u_j (Gao et al. 2021, SimCSE, arXiv:2104.08821, equation 1, and equation 4 for views
    that dropout alone makes, one side; Chen et al. 2020, SimCLR, arXiv:2002.05709, equation 1, takes both). A text j
    that is the same as i is no other text, and has no part in the sum.

    Args:
        first: (N, D) vectors u of the first views.
        second: (N, D) vectors v of the second views.
        same: (N, N) True where two texts are the same; the diagonal has no effect.
        temperature: t.
    """
    own = torch.eye(len(first), dtype=torch.bool, device=first.device)
    cosines = (normalize(first.float(), dim=1) @ normalize(second.float(), dim=1).T) / temperature
    cosines = cosines.masked_fill(same & ~own, float("-inf"))
    right = cosines.diagonal()
    return (cosines.logsumexp(1) + cosines.logsumexp(0)) / 2 - right


def partners_first(first: Tensor, second: Tensor, same: Tensor) -> Tensor:
    """(N,) the share of a text's two views, 0, 1/2 or 1, whose nearest view among those of the other side is its own.

    A view that is as near as its own one counts half; where `same` is True another text's views are left out.
    """
    own = torch.eye(len(first), dtype=torch.bool, device=first.device)
    cosines = normalize(first.float(), dim=1) @ normalize(second.float(), dim=1).T
    cosines = cosines.masked_fill(same & ~own, float("-inf"))
    right, others = cosines.diagonal(), cosines.masked_fill(own, float("-inf"))
    sides = [(right > best).float() + (right == best).float() / 2 for best in (others.amax(1), others.amax(0))]
    return (sides[0] + sides[1]) / 2


def alignment(first: Tensor, second: Tensor) -> Tensor:
    """() the mean squared distance of the views of a text, their vectors of length 1; less is better.

    Wang and Isola 2020, arXiv:2005.10242, section 4.1.1, with alpha = 2.
    """
    return (normalize(first.float(), dim=1) - normalize(second.float(), dim=1)).square().sum(1).mean()


def uniformity(vectors: Tensor) -> Tensor:
    """() log of the mean of exp(-2 |x - y|^2) over pairs of different texts, vectors of length 1; less is better.

    Wang and Isola 2020, arXiv:2005.10242, section 4.1.2, with t = 2.
    """
    return torch.pdist(normalize(vectors.float(), dim=1)).square().mul(-2).exp().mean().log()
