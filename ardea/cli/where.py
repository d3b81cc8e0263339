"""Which scheduler a verb is for: the one that is named, else the one of whose options one is given, else ``local``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

import typer

from ardea.errors import ArdeaError, UsageError
from ardea.scheduler import registry
from ardea.scheduler.registry import Place
from ardea.scheduler.schedulers import Scheduler

DEFAULT = "local"
_NAME, _CONTEXT = "scheduler", "_context"
_Named = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="NAME",
        help="The topology's scheduler.  Default: the one whose options are given, else `local`.",
    ),
]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One installed scheduler, and its options that a verb has: the parameters of its constructor, by name."""

    name: str
    kind: type[Scheduler]
    options: Mapping[str, inspect.Parameter]

    def place(self, said: Mapping[str, Any]) -> Place:
        """The scheduler with those of these values that are options of its own."""
        return Place(self.name, {name: value for name, value in said.items() if name in self.options})


def on_topologies(verb: Callable[..., None], *, updates: bool = False, closed: bool = False) -> Callable[..., None]:
    """The verb with the options of all schedulers that say where topologies are; it takes a scheduler as its first.

    ``updates``: also with those that say what an update brings.  ``closed``: it takes a :class:`Place` instead.
    """
    hints = get_type_hints(verb, include_extras=True)
    _, *rest = inspect.signature(verb).parameters.values()
    own = [p.replace(annotation=hints[p.name]) for p in rest]
    candidates = list(_candidates({p.name for p in own}, updates=updates))
    options: dict[str, inspect.Parameter] = {}
    for candidate in candidates:
        options = {**candidate.options, **options}
    named = inspect.Parameter(_NAME, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_Named)
    context = inspect.Parameter(_CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

    @functools.wraps(verb)
    def placed(**given: Any) -> None:
        asked, said = given.pop(_NAME), {name: given.pop(name) for name in options}
        source = given.pop(_CONTEXT).get_parameter_source
        chosen = _chosen(candidates, asked, {name: source(name).name for name in options})
        place = chosen.place(said)
        if closed:
            verb(place, **given)
            return
        with place.open() as scheduler:
            verb(scheduler, **given)

    parameters = [*own, *options.values(), named, context]
    placed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    placed.__annotations__ = {p.name: p.annotation for p in parameters}
    return placed


def scheduler_of(context: typer.Context) -> Scheduler:
    """The scheduler that a verb with these words would ask, whose line is still being typed."""
    candidates = list(_candidates(set(), updates=False))
    said = {name: context.params[name] for each in candidates for name in each.options if name in context.params}
    sources = {name: source.name for name in said if (source := context.get_parameter_source(name)) is not None}
    return _chosen(candidates, context.params.get(_NAME), sources).place(said).open()


def _candidates(taken: set[str], *, updates: bool) -> Iterator[Candidate]:
    """All that can be used, ``local`` first; a name that the verb has already is the verb's."""
    for name in sorted(registry.installed(), key=lambda name: (name != DEFAULT, name)):
        try:
            kind = registry.load(name)
        except ArdeaError:
            continue  # `ardea submit NAME` says why
        hints = get_type_hints(kind.__init__, include_extras=True)
        wanted = (*kind.finds_by, *(kind.updates_by if updates else ()))
        found = inspect.signature(kind).parameters
        yield Candidate(
            name,
            kind,
            {
                each: found[each].replace(annotation=hints.get(each, Any), kind=inspect.Parameter.KEYWORD_ONLY)
                for each in wanted
                if each in found and each not in taken
            },
        )


def _chosen(candidates: list[Candidate], asked: str | None, sources: Mapping[str, str]) -> Candidate:
    """By the name ``asked``, else by options; ``sources``: how each of them was set, in click's words."""
    typed = {name for name, source in sources.items() if source == "COMMANDLINE"}
    if asked is not None or not candidates:
        registry.load(asked or DEFAULT)  # says why, if it cannot be used
    local, *others = candidates
    if asked is not None:
        chosen = next(each for each in candidates if each.name == asked)
    elif typed:
        chosen = next((each for each in candidates if each.options.keys() >= typed), local)
    else:
        exported = {name for name, source in sources.items() if source == "ENVIRONMENT"} - local.options.keys()
        chosen = next((each for each in others if each.options.keys() & exported), local)
    if strange := sorted(typed - chosen.options.keys()):
        flag = f"--{strange[0].replace('_', '-')}"
        whose = ", ".join(each.name for each in candidates if strange[0] in each.options)
        raise UsageError(f"{flag} is an option of {whose}; the scheduler of this topology is {chosen.name}")
    return chosen
