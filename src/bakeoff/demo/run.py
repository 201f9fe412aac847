"""The demo: prepare, pre-train, fine-tune and compare four small models on text that ships with Python."""

from pathlib import Path

from bakeoff.comparison.execution import compare
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.reporting.terminal import print_results
from bakeoff.corpus.store import Corpus
from bakeoff.demo.data import write_files
from bakeoff.demo.plan import demo_plan
from bakeoff.display.console import Console
from bakeoff.display.terminal import show
from bakeoff.durable import fresh, holds_something, remove, without_links, write_atomically
from bakeoff.errors import UserError
from bakeoff.full_disk import full_disk
from bakeoff.preparation.prepare import prepare
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.yaml_files import dump_yaml

TOKENIZER = TokenizerConfig(kind="wordpiece", size=2048, lowercase=True)


def run_demo(out: Path, scale: float) -> None:
    """Prepare, pre-train, fine-tune and compare; work that an earlier call has finished is not repeated.

    Args:
        out: directory of the text, the corpus, the plan, the runs and the report.
        scale: factor of the usual budget.

    Raises:
        UserError: `out` holds something else, or the demo at another scale.
    """
    console = Console()
    plan_file = out / "plan.yaml"
    plan = dump_yaml(demo_plan(scale))
    if plan_file.exists() and plan_file.read_bytes() != plan.encode():
        raise UserError(f"{out}: holds a demo at another scale or of another version; choose another --out")
    if not plan_file.exists() and holds_something(out, besides=plan_file.name):
        raise UserError(f"{out}: exists and is not a demo; choose another --out")
    without_links(out)
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(plan_file, plan)
    corpus = _corpus(out, console)
    facts = corpus.summary()
    console.print(
        f"corpus: {facts['documents']:,} files, {facts['tokens']:,} tokens, {facts['held_out_tokens']:,} held out"
    )
    results = compare(Plan.read(plan_file), out, progress=lambda line: console.print(line))
    print_results(results, out)


def write_demo_files(out: Path) -> None:
    """Write the demo's text and labelled files alone, and print a line on each.

    Args:
        out: directory of the files; it must not exist.

    Raises:
        UserError: `out` exists already.
    """
    if out.exists() or out.is_symlink():
        raise UserError(f"{out}: is there already; choose another --out")
    folder = out.with_name(f".{out.name}.unfinished")
    try:
        with full_disk(out, lambda: "nothing was kept"), fresh(folder, out):
            write_files(folder)
            folder.rename(out)
    finally:
        remove(folder)
    for path in sorted(out.iterdir()):
        what = "a document a line" if path.suffix == ".jsonl" else "columns label and text"
        show(f"{path}  {path.stat().st_size / 1e6:.2f} MB, {what}")


def _corpus(out: Path, console: Console) -> Corpus:
    """The corpus of an earlier call, or a new corpus from new files of text and tasks."""
    if (out / "corpus").exists():
        return Corpus.open(out / "corpus")
    console.print("collecting the documentation of Python's library and of the packages installed with Bakeoff")
    with full_disk(out, lambda: "with more space the same command goes on"):
        classes = write_files(out)
    console.print(f"task: of which of {len(classes)} packages is a paragraph? {', '.join(classes)}")
    return prepare(out / "text.jsonl", out / "corpus", tokenizer=TOKENIZER, validation=0.02)
