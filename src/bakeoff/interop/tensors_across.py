"""Conversion of tensors between another tool and Bakeoff, by the links of a family."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.interop.links import Link


class Taken(NamedTuple):
    """The result of an import of tensors."""

    tensors: dict[str, Tensor]
    """Our tensors by name, in float32, without those of missing parts."""
    left: dict[str, Tensor]
    """Their tensors that no link uses."""
    partly: dict[str, Tensor]
    """Their tensors that ours do not reproduce completely, such as tables with unused rows."""
    fresh: list[str]
    """Descriptions of the model's parts that are missing and will be random."""


def take(
    links: Iterable[Link],
    theirs: Mapping[str, Tensor],
    shapes: Mapping[str, tuple[int, ...]],
    rows: int,
    where: str,
) -> Taken:
    """Convert their tensors to ours.

    Args:
        links: the family's links.
        theirs: their tensors by name.
        shapes: the shapes of our tensors by name.
        rows: rows of the table of tokens by their config.
        where: the folder, for errors.

    Raises:
        UserError: a tensor is missing, has another shape than the config implies or no floating-point numbers, or
            differs from the tensor that it should repeat.
    """
    links = list(links)
    made: dict[str, Tensor] = {}
    partly: dict[str, Tensor] = {}
    used: set[str] = set()
    there = {
        link.optional for link in links if link.optional and not link.tied and any(n in theirs for n in link.theirs)
    }
    fresh = [part for part in dict.fromkeys(link.optional for link in links) if part and part not in there]
    for link in links:
        if link.tied:
            _require_repeated(link, theirs, where)
            used |= set(link.theirs)
            continue
        if link.optional in fresh:
            continue
        if missing := [name for name in link.theirs if name not in theirs]:
            raise UserError(f"{where}: the tensor {missing[0]} is missing")
        used |= set(link.theirs)
        tensors = [theirs[name] for name in link.theirs]
        if odd := [name for name, each in zip(link.theirs, tensors, strict=True) if not each.is_floating_point()]:
            raise UserError(
                f"{where}: the tensor {odd[0]} holds no floating-point numbers (quantised weights are not read)"
            )
        try:
            ours = link.to_ours([each.float() for each in tensors])
        except (RuntimeError, IndexError):
            raise _other_shape(link, tensors, "", where) from None
        partly |= {
            name: each
            for name, each, back in zip(link.theirs, tensors, link.to_theirs(ours), strict=True)
            if not torch.equal(each.float(), back)
        }
        for name, tensor in zip(link.ours, ours, strict=True):
            wanted = (rows, *shapes[name][1:]) if link.vocabulary else shapes[name]
            if tuple(tensor.shape) != wanted:
                raise _other_shape(
                    link, tensors, f"; by the config what is made of it is {wanted}, not {tuple(tensor.shape)}", where
                )
            made[name] = _with_rows(tensor, shapes[name][0]) if link.vocabulary else tensor.contiguous()
    return Taken(made, {name: tensor for name, tensor in theirs.items() if name not in used}, partly, fresh)


def give(links: Iterable[Link], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert our tensors to theirs, without tensors that repeat others."""
    made: dict[str, Tensor] = {}
    for link in links:
        if not link.tied:
            tensors = link.to_theirs([ours[name] for name in link.ours])
            made |= {name: each.contiguous() for name, each in zip(link.theirs, tensors, strict=True)}
    return made


def _require_repeated(link: Link, theirs: Mapping[str, Tensor], where: str) -> None:
    (name,) = link.theirs
    if name in theirs and link.tied in theirs and not torch.equal(theirs[name], theirs[link.tied]):
        of_config = " (tie_word_embeddings: false)" if name.endswith("weight") else ""
        raise UserError(
            f"{where}: the tensor {name} is not {link.tied} again, as it is in all models of this family that are read "
            f"here; weights of its own{of_config} cannot be taken over"
        )


def _other_shape(link: Link, tensors: list[Tensor], wanted: str, where: str) -> UserError:
    shapes = ", ".join(str(tuple(each.shape)) for each in tensors)
    return UserError(f"{where}: {' and '.join(link.theirs)}: of shape {shapes}, which the config does not say{wanted}")


def _with_rows(tensor: Tensor, rows: int) -> Tensor:
    """A (V, ...) tensor with `rows` rows; new rows are the mean of the others."""
    if rows <= len(tensor):
        return tensor[:rows].contiguous()
    mean = tensor.double().mean(0, keepdim=True).to(tensor.dtype)
    return torch.cat([tensor, mean.expand(rows - len(tensor), *tensor.shape[1:])])
