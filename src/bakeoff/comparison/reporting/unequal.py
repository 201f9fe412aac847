"""What recipes of a comparison have otherwise than others, beside the recipe: budget, text, tokenizer, fine-tuning."""

from collections.abc import Iterator

from bakeoff.comparison.planning.own_settings import AS_IT_IS
from bakeoff.comparison.results import RecipeEntry, Results
from bakeoff.display.wording import budget, listed, quoted, quoted_list, verb
from bakeoff.yaml_files import dump_yaml


def budgets(results: Results) -> dict[str, str]:
    """The budget of each recipe that is trained, by label, as the plan gives it."""
    return {entry.label: results.budget.of(entry.label) for entry in results.recipes if not entry.as_it_is}


def equal_budgets(results: Results) -> bool:
    """Whether all recipes that are trained have the same budget."""
    return len({*budgets(results).values()}) < 2


def budget_text(results: Results, *, each: bool = False) -> str:
    """The budget of all recipes in words; of unlike ones that they are unlike.

    Args:
        results: the results.
        each: whether it says that each recipe has it.
    """
    if not equal_budgets(results):
        return "unequal budgets"
    text = next(iter(budgets(results).values()), None)
    return "no training" if text is None else budget(text) + " each" * each


def budget_of(results: Results, entry: RecipeEntry) -> str:
    """The budget of a recipe in words."""
    text = results.budget.of(entry.label)
    return "as it is" if text == AS_IT_IS else budget(text)


def unequal_cautions(results: Results) -> Iterator[str]:
    """Warnings where recipes are not compared under one equal budget, on one text, or with one fine-tuning."""
    if not equal_budgets(results):
        each = [f"{quoted(entry.label)} {budget_of(results, entry)}" for entry in results.recipes if not entry.as_it_is]
        yield f"Budgets are unequal: {listed(each)}. Differences between these are also differences of budget."
    untrained = [entry.label for entry in results.recipes if entry.as_it_is]
    if count := len(untrained):
        yield (
            f"{quoted_list(untrained)} {verb(count, 'is', 'are')} compared as {verb(count, 'it is', 'they are')}, "
            "without a training here: what the weights have cost, and on which text, is no part of the comparison."
        )
    texts = {entry.label: entry.corpus for entry in results.recipes if entry.corpus is not None}
    others = {name: facts.path for name, facts in texts.items() if facts.held_out != results.corpus.held_out}
    if others:
        each = [f"{quoted(name)} on {path}" for name, path in others.items()]
        yield f"Trained on other texts than {results.corpus.path}: {listed(each)}."
    tokenizers = {name: facts.tokenizer for name, facts in texts.items() if facts.tokenizer != results.corpus.tokenizer}
    if tokenizers:
        each = [f"{quoted(name)} {tokenizer}" for name, tokenizer in tokenizers.items()]
        yield (
            f"Other tokenizers than the corpus's ({results.corpus.tokenizer}): {listed(each)}. Losses of tokens do not "
            "compare between tokenizers; tasks do, and so do bits per byte."
        )
    tuned = {entry.label: entry.finetune for entry in results.recipes if entry.finetune}
    if tuned:
        each = [f"{quoted(name)} with {_settings(finetune)}" for name, finetune in tuned.items()]
        yield f"Fine-tuned otherwise than the others: {listed(each)}."


def _settings(values: dict[str, object]) -> str:
    return ", ".join(f"{key}: {_setting(value)}" for key, value in values.items())


def _setting(value: object) -> str:
    """A value in one line: [0.003, 0.01] of a list."""
    if isinstance(value, list):
        return f"[{', '.join(map(_setting, value))}]"
    if isinstance(value, dict):
        return f"{{{_settings(value)}}}"
    return dump_yaml({"": value}).partition(": ")[2].strip()
