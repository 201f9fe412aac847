"""Operations of bfloat16 on a CPU with and without kernels in C."""

import pytest

from bakeoff.machine.compiler import Compiled
from bakeoff.ops.cpu import compiled_kernels


@pytest.fixture(scope="module", params=["by kernels", "by torch"])
def way(request):
    """Both ways to the result of an operation that has a kernel, one after the other."""
    if request.param == "by torch":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiled_kernels, "kernels", lambda: Compiled(None, "left out"))
            yield request.param
    elif compiled_kernels.kernels().library is None:
        pytest.skip(compiled_kernels.kernels().origin)
    else:
        yield request.param
