"""`bakeoff babylm`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.completing import complete_recipe
from bakeoff.cli.shared.decorators import noted, taking
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Device, Json, Set
from bakeoff.cli.shared.printing import print_json, print_table
from bakeoff.display.terminal import show, tell
from bakeoff.display.wording import aligned
from bakeoff.unread_keys import require_effect


@noted
@taking(
    options=options_from(
        "bakeoff.challenge.entry.babylm",
        *("evaluation", "epochs", "backend", "document_per_line", "byte_premiums", "seed"),
        evaluation={"metavar": "DIR"},
        backend={"metavar": "causal|mlm|mntp"},
        byte_premiums={"metavar": "LANGUAGE=NUMBER,..."},
    )
)
def babylm(
    track: Annotated[str, typer.Argument(help="strict, strict-small or multilingual.")],
    recipe: Annotated[str, typer.Argument(help="A recipe's name or file.", autocompletion=complete_recipe)],
    data: Annotated[
        list[str], typer.Option(help="Text: a file or a folder; of multilingual LANGUAGE=PATH. May be repeated.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the entry.")],
    *,
    options: dict[str, Any],
    set: Set = [],  # noqa: B006
    device: Device = "auto",
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what is to be done, what is missing and how long it takes, and end."),
    ] = False,
    json: Json = False,
) -> None:
    """Make an entry to the BabyLM challenge of 2026: from the text to the file that is submitted.

    Give the same command to go on after an interruption, or once more files of the evaluation are there.

    Example: bakeoff babylm strict-small laptop-decoder-mini --data text --evaluation evaluation_data --out entry

    Example: bakeoff babylm strict-small laptop-decoder-mini --data text --out entry --dry-run

    Example: bakeoff babylm multilingual laptop-decoder-mini --data eng=english --data zho=chinese --out entry
    """
    from bakeoff.challenge.asking import ask
    from bakeoff.challenge.entry import babylm as make
    from bakeoff.recipe_files import load_recipe

    require_effect("babylm", set, {"training.budget": "--epochs", "training.save_at": "the track"})
    loaded = load_recipe(recipe, set)
    if dry_run:
        from bakeoff.challenge.forecast import forecast_entry

        found = forecast_entry(ask(track, loaded, data, out, device=device, **options))
        if json:
            print_json(found)
            return
        missing = found.pop("missing")
        print_table(found)
        for each in missing:
            show(f"missing: {each}")
        return
    results = make(track, loaded, data, out, device=device, say=tell, **options)
    if json:
        print_json(results.model_dump(mode="json"))
        return
    for line in [*aligned([results.titles(), *results.rows()]), *results.remarks()]:
        show(line)
    submitted = " and ".join(str(out / file) for file in results.submitted)
    show(f"{submitted}: to be submitted; {out}/babylm.md has all scores")
