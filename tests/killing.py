"""Verbs that write, each as a user types it, and processes that are killed before a change of a file."""

import hashlib
import os
import shutil
import signal
import sys
from pathlib import Path

from bakeoff.cli import run as command_line
from bakeoff.durable import LIST

CHANGES = {f"os.{name}" for name in ("chmod", "link", "mkdir", "remove", "rename", "rmdir", "symlink", "truncate")}
"""Names by which Python announces that files are changed, besides `open`."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

TASK = "--train {F}/rows.tsv --text-column text --label-column label --device cpu"
OPTIONS = "--option epochs=1 --option least_steps=0 --option evaluations=1"
PREPARE = "prepare {F}/text.jsonl --out {S}/out --vocabulary 100"
PRETRAIN = "pretrain {F}/recipe.yaml --corpus {F}/corpus --out {S}/out --device cpu"
FROM_STAGES = (
    "pretrain {F}/recipe.yaml --from {F}/run --corpus {F}/corpus --out {S}/out --device cpu "
    '--set training.curriculum=[{{"until":0.5,"length":8,"batch_factor":2}}]'
)
DISTILL = "distill {F}/run --into {F}/recipe.yaml --corpus {F}/corpus --out {S}/out --device cpu"
DISTILL_CLASSIFIER = (
    f"distill {{F}}/tuned --into {{F}}/run --texts {{F}}/source.txt --out {{S}}/out --device cpu {OPTIONS}"
)
TUNE = "tune {F}/recipe.yaml --corpus {F}/corpus --out {S}/out --trials 2 --jobs 1 --device cpu"
FINETUNE = f"finetune {{F}}/run {TASK} {OPTIONS} --out {{S}}/out"
COMPARE = "compare {F}/plan.json --out {S}/out --jobs 1"
COMMANDS = {
    "pretrain": [f"{PRETRAIN} --average-last 2"],
    "pretrain-from": ["pretrain --from {F}/run --corpus {F}/corpus --budget steps=2 --out {S}/out --device cpu"],
    "pretrain-resume": ["copy {F}/unfinished {S}/out", "pretrain --out {S}/out --resume --device cpu"],
    "pretrain-saves": [f"{PRETRAIN} --save-at steps=1,2"],
    "pretrain-further": [f"killed {PRETRAIN}", "pretrain --out {S}/out --resume --budget steps=5 --device cpu"],
    "pretrain-from-stages": [FROM_STAGES],
    "distill": [DISTILL],
    "distill-again": [f"killed {DISTILL}", f"{DISTILL} --resume"],
    "distill-classifier": [DISTILL_CLASSIFIER],
    "tune": [TUNE],
    "tune-again": [f"killed {TUNE}", TUNE],
    "finetune": [FINETUNE],
    "finetune-resume": [f"killed {FINETUNE}", f"{FINETUNE} --resume"],
    "compare": [COMPARE],
    "compare-again": [f"killed {COMPARE}", COMPARE],
    "demo": ["demo --out {S}/out --scale 0.01"],
    "demo-files": ["demo --files-only --out {S}/out"],
    "prepare": [PREPARE],
    "prepare-again": [f"killed {PREPARE}", PREPARE],
    "overwrite": [PREPARE, PREPARE + " --overwrite --validation 10%"],
    "shards": [PREPARE + " --shard 1/2", PREPARE + " --shard 2/2", PREPARE + " --merge"],
    "pairs": ["prepare --source {F}/source.txt --target {F}/target.txt --out {S}/out --vocabulary 100"],
    "embed": ["embed {F}/run --out {S}/out.npy --device cpu < {F}/source.txt"],
    "predict": ["predict {F}/tuned --out {S}/out.jsonl --device cpu < {F}/source.txt"],
    "score": ["score {F}/run --out {S}/out.jsonl --device cpu < {F}/source.txt"],
    "parquet": ["score {F}/run --out {S}/out.parquet --device cpu < {F}/source.txt"],
    "inspect": ["inspect {F}/run --out {S}/out --examples 2 --device cpu"],
    "speed": ["speed {F}/recipe.yaml --lengths 8,16 --batch-tokens 16 --vocabulary 100 --seconds 0 --out {S}/out"],
    "curves": ["runs {F}/run --out {S}/out.svg"],
    "export": ["export {F}/run --to hf --out {S}/out"],
    "import": ["export {F}/run --to hf --out {S}/exported", "import {S}/exported --out {S}/out"],
    "onnx": ["export {F}/run --to onnx --out {S}/out"],
    "gguf": ["export {F}/gpt2 --to gguf --out {S}/out"],
}
"""The commands of each verb. The last one is looked at, the others come before it; `killed` ones die half-way."""

NEEDED = {"export": "transformers", "import": "transformers", "onnx": "onnxruntime", "gguf": "gguf"}
"""Libraries that verbs need."""


class Killer:
    """Counts the changes of files below a folder, and kills this process before one of them.

    With `torn` a file that is to be made or emptied is there, and empty, when the process dies. `kinds` has a letter
    for each change: m for a file that is made or emptied, c for any other.
    """

    def __init__(self, folder, at, torn):
        self.folder, self.at, self.torn, self.kinds, self.quiet = str(folder), at, torn, "", False

    def __call__(self, event, details):
        if self.quiet or (event != "open" and event not in CHANGES):
            return
        path = details[0]
        if isinstance(path, int) or (os.path.isabs(path) and not os.fsdecode(path).startswith(self.folder)):
            return
        if event == "open" and not (isinstance(details[2], int) and details[2] & WRITING):
            return
        flags = details[2] if event == "open" else 0
        made = flags & os.O_CREAT and (flags & os.O_TRUNC or not os.path.lexists(path))
        self.kinds += "m" if made else "c"
        if len(self.kinds) == self.at:
            self.quiet = True
            if self.torn and made:
                os.close(os.open(path, details[2] & ~os.O_EXCL, 0o666))
            os.kill(os.getpid(), signal.SIGKILL)


def run(words, scratch, at=None, torn=False):
    """Run a command in a process of its own; returns its status, its last words, and the kinds of its changes."""
    said = scratch.parent / "said"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 99
        try:
            with open(said, "wb") as file:
                os.dup2(file.fileno(), 2)
                os.dup2(file.fileno(), 1)
            sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # noqa: SIM115
            sys.stderr = sys.__stderr__ = open(2, "w", closefd=False)  # noqa: SIM115
            sys.stdin = open(words[0], encoding="utf-8") if words[0] else sys.stdin  # noqa: SIM115
            killer = Killer(scratch, at, torn)
            sys.addaudithook(killer)
            status = command_line([str(word) for word in words[1:]])
            sys.stdout.flush()
            sys.stderr.flush()
            os.write(writer, killer.kinds.encode())
        finally:
            os._exit(status)
    os.close(writer)
    _, ended = os.waitpid(child, 0)
    with os.fdopen(reader) as counted:
        kinds = counted.read()
    return os.waitstatus_to_exitcode(ended), said.read_text(encoding="utf-8"), kinds


def words_of(command, folder, scratch):
    """A command's words, the first of which is the file that it reads as standard input, or empty."""
    command, _, stdin = command.partition(" < ")
    return [each.format(F=folder, S=scratch) for each in (stdin, *command.split())]


def begun(verb, folder, scratch):
    """Run all commands of a verb but the last one, whose words are returned."""
    *before, last = COMMANDS[verb]
    scratch.mkdir(parents=True)
    for command in before:
        if command.startswith("copy "):
            _, _, source, target = words_of(command, folder, scratch)
            shutil.copytree(source, target)
        elif command.startswith("killed "):
            words = words_of(command.removeprefix("killed "), folder, scratch)
            other = scratch.parent / "counted" / "place"
            other.mkdir(parents=True)
            status, said, kinds = run(words_of(command.removeprefix("killed "), folder, other), other)
            assert status == 0, said
            shutil.rmtree(other.parent)
            assert run(words, scratch, 2 * len(kinds) // 3)[0] == -signal.SIGKILL
        else:
            status, said, _ = run(words_of(command, folder, scratch), scratch)
            assert status == 0, said
    return words_of(last, folder, scratch)


def content(scratch):
    """The files of a result, each with a digest of what does not depend on the time.

    A list of checksums is left out: a kill between a file and its line leaves the file without a checksum.
    """
    exact = {".safetensors", ".tokens", ".sentences", ".npy", ".jsonl", ".tsv", ".gguf", ".onnx", ".parquet"}
    return {
        str(path.relative_to(scratch)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.suffix in exact and path.name != "metrics.jsonl"
        else None
        for path in sorted(scratch.rglob("*"))
        if path.is_file()
        and path.name != LIST
        and not any(part.startswith(".") for part in path.relative_to(scratch).parts)
    }


def small_demo(folder):
    """The demo's files, and its plan, of few rows and one small recipe."""
    names = ("text.jsonl", "rows.tsv")

    def write_files(out: Path) -> list[str]:
        for name in names:
            with open(out / name, "wb") as file:
                file.write((folder / name).read_bytes())
        return ["land", "water"]

    def plan(scale: float) -> dict:
        task = {"name": "words", "train": "rows.tsv", "text_column": "text", "label_column": "label"}
        return {
            "corpus": "corpus",
            "recipes": [{"recipe": str(folder / "recipe.yaml"), "name": "small"}],
            "budget": f"steps={max(1, round(2 * scale))}",
            "seeds": 1,
            "tasks": [{**task, "finetune": {"epochs": 1, "least_steps": 0, "evaluations": 1}}],
            "device": "cpu",
        }

    return write_files, plan
