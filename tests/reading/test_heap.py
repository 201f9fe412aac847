"""What lies unused between tensors does not stay: the heap of a process that answers many texts is given back."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
from bakeoff.reading.text_files import in_memory, read_ahead

def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024

kept, sizes = [], []
for part in read_ahead(in_memory(["text"] * 300), 100):  # 32, 64, 100, 100 and 4 of them
    sizes.append(resident())
    # 100 MB, of which one block in forty stays: no end of the heap can be given back, only what lies between.
    blocks = [bytes(3000 + len(kept) % 500) for _ in range(33_000)]
    kept += blocks[::40]
    del blocks
print(*sizes)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library's own way with freed memory")
def test_gaps_between_what_is_in_use_go_back_to_the_system():
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    first, *few, gone, gone_again = map(float, found.split())
    assert min(few) > first + 80  # after 32 and 64 texts nothing is given back yet
    assert max(gone, gone_again) < first + 40
