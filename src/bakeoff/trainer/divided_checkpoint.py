"""Checkpoints of models that are too large for one process: each writes its parts, by torch.distributed.checkpoint.

The parts are safetensors, from which any number of processes goes on: `bakeoff.stored_tensors` puts them together.
torch's consolidation of such files is not used, because it writes zeros for tensors without dimensions, such as the
number of an optimizer's steps; and no `.metadata` is written, as beside other checkpoints of torch, which is a pickle.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from bakeoff.distributed.processes import Processes, exchanging
from bakeoff.distributed.shards import divided_as, own_part
from bakeoff.machine.transfer import fetched


class PartsOfTensors(NamedTuple):
    """This process's parts of tensors, and copies of tensors that all processes have, which are to be written."""

    tensors: Mapping[str, Mapping[str, Tensor]]
    """The tensors by the names of the files that would hold them whole, and by their names in these."""
    processes: Processes
    """The processes."""
    group: Any
    """Their group for exchanges in a thread, `Processes.beside`, which is made in the main thread."""

    def copied(self) -> "PartsOfTensors":
        """The same, with copies in the machine's memory, so that the training may go on; see `arrival`."""
        # torch's stager cannot copy the part of a process that has no rows of a tensor.
        copies = {
            name: {key: divided_as(tensor, fetched(own_part(tensor))) for key, tensor in each.items()}
            for name, each in self.tensors.items()
        }
        return self._replace(tensors=copies)

    def write(self, folder: Path, complete: Callable[[], None]) -> None:
        """Write one file for each process into a folder; all processes call it, in any of their threads.

        Args:
            folder: the folder.
            complete: what the first process does when all have written theirs; whatever fails is an error of all.

        Raises:
            OSError: a process could not write.
            LostProcess: a process has ended.
        """
        from torch.distributed.checkpoint.api import CheckpointException
        from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
        from torch.distributed.checkpoint.metadata import Metadata
        from torch.distributed.checkpoint.state_dict_saver import save
        from torch.distributed.checkpoint.storage import WriteResult

        class Writer(HuggingFaceStorageWriter):
            def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
                complete()

        writer = Writer(str(folder), save_distributed=True)
        try:
            with exchanging():
                save(dict(self.tensors), storage_writer=writer, process_group=self.group)
        except CheckpointException as error:
            raise next(failure for failure, _ in error.failures.values()) from None
