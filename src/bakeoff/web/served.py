"""A served model with its name and its worker."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bakeoff.errors import UserError, nearest
from bakeoff.web.limits import Limits
from bakeoff.web.plain import plain
from bakeoff.web.problems import Problem, late
from bakeoff.web.requests import REQUESTS, Generate, Request
from bakeoff.web.servable import Servable
from bakeoff.web.worker import Job, Stream, Worker


class Served:
    """One model of a server.

    Args:
        name: the name that requests use for the model.
        model: the model that answers.
        limits: bounds, among them those of the queue and of time.
    """

    def __init__(self, name: str, model: Servable, limits: Limits) -> None:
        self.name, self.model, self.limits = name, model, limits
        self.verbs = [verb for verb in REQUESTS if verb in model.capabilities]
        self.worker = Worker(name, limits.queue, limits.streams, limits.together)

    def about(self) -> dict[str, Any]:
        """The model's entry in the answer of `/models`."""
        weighs = "weights_of_tokens" in self.model.capabilities
        recipe = str(self.model.recipe.name)
        return {"name": self.name, "recipe": recipe, "verbs": self.verbs, "token_weights": weighs}

    async def answer(self, request: Request) -> list[Any]:
        """The answers to a request, computed alone or in one batch with other requests.

        Raises:
            Problem: the queue is full, the answer took too long, or the model cannot do the verb or refuses the texts.
        """
        self._able(request)

        def work(items: Any) -> Any:
            return plain(request.answer(self.model, items))

        job = Job(request.key, request.items, work, self.limits.seconds)
        self.worker.submit(job)
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await asyncio.wrap_future(job.answers)
        except TimeoutError:
            raise late(self.limits.seconds) from None
        except UserError as error:
            raise self._refused(error) from None
        finally:
            job.gone.set()

    async def pieces(self, request: Generate) -> AsyncGenerator[str, None]:
        """The pieces of a text as they are written; leaving the iterator early stops the writing.

        Raises:
            Problem: for the same reasons as in `answer`, at the first piece or later.
        """
        self._able(request)
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[str | BaseException | None] = asyncio.Queue()

        def deliver(piece: str | BaseException | None) -> None:
            try:
                loop.call_soon_threadsafe(arrived.put_nowait, piece)
            except RuntimeError:  # the server has ended
                stream.stopped.set()

        def begin() -> Iterator[str]:
            return iter(self.model.stream(request.texts[0], **request.settings))

        stream = Stream(begin, deliver, self.limits.seconds)
        self.worker.stream(stream)
        try:
            while (piece := await arrived.get()) is not None:
                if isinstance(piece, UserError):
                    raise self._refused(piece) from None
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            stream.stopped.set()

    def _able(self, request: Request) -> None:
        if request.verb not in self.verbs:
            raise Problem(422, f"{self.name}: cannot {request.verb}; it can {', '.join(self.verbs) or 'nothing here'}")
        if getattr(request, "weights", False) and "weights_of_tokens" not in self.model.capabilities:
            raise Problem(422, f"weights: {self.name} is no classifier; leave them out")

    def _refused(self, error: UserError) -> Problem:
        """The problem for a mistake in a text, without the run's path, which clients must not see."""
        path = getattr(self.model, "path", None)
        text = str(error)
        return Problem(422, text if path is None else text.replace(str(path), self.name))


def chosen(models: Mapping[str, Served], request: Request) -> Served:
    """The model that a request means.

    Raises:
        Problem: no model has that name (404), or a request without a name may mean several models (422).
    """
    if request.model is not None:
        if request.model not in models:
            raise Problem(404, f"model: there is no '{request.model}'{nearest(request.model, models)}")
        return models[request.model]
    able = [each for each in models.values() if request.verb in each.verbs]
    if not able:
        raise Problem(422, f"model: none that is served here can {request.verb}; GET /models says what each can")
    if len(able) > 1:
        which = ", ".join(each.name for each in able)
        raise Problem(422, f"model: say which one; those that can {request.verb}: {which}")
    return able[0]


def opened(runs: list[Path], load: Callable[[Path], Servable], limits: Limits) -> dict[str, Served]:
    """The served models by name: the name of a run's folder, with parent folders where names would be the same.

    Raises:
        UserError: a run is given twice, or cannot be read.
    """
    resolved = [run.resolve() for run in runs]
    for index, path in enumerate(resolved):
        if path in resolved[:index]:
            raise UserError(f"{runs[index]}: given twice")
    names = {path: _shortest(path, resolved) for path in resolved}
    loaded = [(names[path], load(run)) for run, path in zip(runs, resolved, strict=True)]
    return {name: Served(name, model, limits) for name, model in loaded}


def _shortest(path: Path, others: list[Path]) -> str:
    for count in range(1, len(path.parts) + 1):
        ending = path.parts[-count:]
        if sum(other.parts[-count:] == ending for other in others) == 1:
            return "/".join(ending)
    return str(path)
