"""Prints how large the project is, and what of it is too large: figures.py [--against COMMIT] [-o json].

For a change that tidies up: what git lists in the work tree is measured and, with ``--against``, a commit beside it.
The product are the modules of the six packages, without those that protoc generates; only of them is more than the
size counted.  What the rows mean:

- modules, lines: files named ``*.py``, and all of their lines.
- Lines of a class: from the line that says ``class`` to its last one.
- Fields of a class: the names that its methods assign on their first parameter (``self.x = ...``, also in functions
  inside them; static and class methods have none), those in its ``__slots__`` and, if it is a dataclass, a NamedTuple
  or, itself or by a base, a Struct, those that it annotates.  Neither a ClassVar is one nor an InitVar nor what a base
  has.
- Lines of a function: from its first statement after the docstring to its last one.  Functions inside it count too.
- Parameters: all that the signature names, ``*args`` and ``**kwargs`` as one each, without the ``self`` or ``cls`` of a
  method.  Constructors are the ``__init__`` and ``__new__`` that are written out; other functions are all but these.
- Repeated shapes: groups of functions of six statements or more, inner blocks included and the docstring not, whose
  syntax is the same once every name and constant is taken for any other.  What is decorated or annotated in the
  signature makes no difference; numbers of parameters and their defaults do.
- Import circles: groups of modules each of which leads to each other one by the imports that run as a module is loaded,
  so not by those in functions or under ``if TYPE_CHECKING``.  ``from a import b`` leads to ``a.b`` if that is a module,
  else to ``a``; nothing leads to a package merely because a module inside it is imported.
- Configuration keys: the names that classes declare by ``declared`` of ardea.config_keys.

Definitions of one name in one file (a property and its setter, overloads) are listed once, with the largest size.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import io
import json
import shutil
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[1]
GIT = shutil.which("git") or "git"
LINKED = ("topology_master", "stream_manager", "heron_instance", "metrics_manager", "scheduler")
"""Imported from ``ardea`` (decision 67); before it by their own names."""
PACKAGES = ("ardea", *LINKED)
BESIDE = ("tests", "benchmarks", "examples")

CLASS_LINES = 250
FIELDS = 15
FUNCTION_LINES = 40
PARAMETERS = 7
STATEMENTS = 6
"""A function with fewer repeats nothing."""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_CONSTRUCTORS = ("__init__", "__new__")
_DECLARING = ("ardea.config_keys", "declared")


@dataclass(frozen=True, slots=True)
class Size:
    """Of some folders."""

    modules: int
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is over a limit, by ``path name``, with its size; groups by their members, with their number."""

    product: Size
    beside: dict[str, Size]
    long_classes: dict[str, int]
    wide_classes: dict[str, int]
    long_functions: dict[str, int]
    wide_constructors: dict[str, int]
    wide_functions: dict[str, int]
    repeated: dict[str, int]
    circles: dict[str, int]
    keys: int


@dataclass(frozen=True, slots=True)
class _Class:
    """``name`` is ``path name``."""

    name: str
    node: ast.ClassDef


@dataclass(frozen=True, slots=True)
class _Function:
    """``name`` is ``path name``; a method is what stands in the body of a class."""

    name: str
    node: Function
    method: bool


def measure(sources: Mapping[str, str]) -> Figures:
    """``sources`` are texts of Python by their paths in the project; other files than Python's are left out."""
    code = {path: text for path, text in sources.items() if path.endswith(".py") and not path.endswith("_pb2.py")}
    folders: dict[str, list[str]] = defaultdict(list)
    for path, text in code.items():
        folders[path.partition("/")[0]].append(text)
    trees = {path: ast.parse(text, path) for path, text in code.items() if path.partition("/")[0] in PACKAGES}
    found = [each for path, tree in trees.items() for each in _definitions(tree, f"{path} ", method=False)]
    classes = [each for each in found if isinstance(each, _Class)]
    functions = [each for each in found if isinstance(each, _Function)]
    constructors = [each for each in functions if each.method and each.node.name in _CONSTRUCTORS]
    others = [each for each in functions if not each.method or each.node.name not in _CONSTRUCTORS]
    structs = _structs([each.node for each in classes])
    return Figures(
        product=_size(text for package in PACKAGES for text in folders[package]),
        beside={folder: _size(folders[folder]) for folder in BESIDE},
        long_classes=_over(CLASS_LINES, ((each.name, _last(each.node) - each.node.lineno + 1) for each in classes)),
        wide_classes=_over(FIELDS, ((each.name, len(_fields(each.node, structs))) for each in classes)),
        long_functions=_over(FUNCTION_LINES, ((each.name, _length(each.node)) for each in functions)),
        wide_constructors=_over(PARAMETERS, ((each.name, _parameters(each)) for each in constructors)),
        wide_functions=_over(PARAMETERS, ((each.name, _parameters(each)) for each in others)),
        repeated=_repeated(functions),
        circles=_circles(_graph(trees)),
        keys=len({key for tree in trees.values() for key in _keys(tree)}),
    )


def _size(texts: Iterable[str]) -> Size:
    lines = [len(text.splitlines()) for text in texts]
    return Size(len(lines), sum(lines))


def _over(limit: int, sizes: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, size in sizes:
        if size > max(limit, found.get(name, 0)):
            found[name] = size
    return found


def _definitions(node: ast.AST, prefix: str, *, method: bool) -> Iterator[_Class | _Function]:
    for child in _blocks(node):
        match child:
            case ast.ClassDef(name=name):
                yield _Class(f"{prefix}{name}", child)
                yield from _definitions(child, f"{prefix}{name}.", method=True)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield _Function(f"{prefix}{name}", child, method)
                yield from _definitions(child, f"{prefix}{name}.", method=False)
            case _:
                yield from _definitions(child, prefix, method=method)


def _blocks(node: ast.AST) -> list[ast.AST]:
    """The statements right below a statement; ``except`` and ``case`` are taken for some, too."""
    return [child for block in _BLOCKS for child in getattr(node, block, ())]


def _last(node: ast.ClassDef | Function) -> int:
    assert node.end_lineno is not None, "it comes from a text"
    return node.end_lineno


def _body(node: Function) -> list[ast.stmt]:
    return node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body


def _length(node: Function) -> int:
    body = _body(node)
    if not body:
        return 0
    decorators: list[ast.expr] = getattr(body[0], "decorator_list", [])
    return _last(node) - min([body[0].lineno, *(each.lineno for each in decorators)]) + 1


def _parameters(function: _Function) -> int:
    given = function.node.args
    positional = len(given.posonlyargs) + len(given.args)
    if function.method and positional and "staticmethod" not in _decorators(function.node):
        positional -= 1
    return positional + len(given.kwonlyargs) + sum(rest is not None for rest in (given.vararg, given.kwarg))


def _decorators(node: ast.ClassDef | Function) -> set[str]:
    return {_last_name(decorator) for decorator in node.decorator_list}


def _last_name(node: ast.expr) -> str:
    """``Struct`` of ``msgspec.Struct``, ``dataclass`` of ``dataclass(frozen=True)``, ``Reader`` of ``Reader[T]``."""
    while not isinstance(node, ast.Name | ast.Attribute):
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return ""
    return node.id if isinstance(node, ast.Name) else node.attr


def _repeated(functions: Iterable[_Function]) -> dict[str, int]:
    shapes: dict[str, set[str]] = defaultdict(set)
    for each in functions:
        body = _body(each.node)
        if len(body) + sum(_statements(statement) for statement in body) >= STATEMENTS:
            shapes[_shape([*_signature(each.node), body])].add(each.name)
    return {", ".join(sorted(names)): len(names) for names in shapes.values() if len(names) > 1}


def _statements(node: ast.AST) -> int:
    return sum(isinstance(child, ast.stmt) + _statements(child) for child in _blocks(node))


def _signature(node: Function) -> list[object]:
    given = node.args
    numbers = [len(given.posonlyargs), len(given.args), len(given.kwonlyargs)]
    rest = [given.vararg is not None, given.kwarg is not None]
    return [isinstance(node, ast.AsyncFunctionDef), *numbers, *rest, given.defaults, given.kw_defaults]


def _shape(value: object) -> str:
    """The syntax, with one name for all names and one constant for all constants."""
    if isinstance(value, ast.Constant | ast.MatchSingleton):
        return "constant"
    if isinstance(value, ast.AST):
        return f"{type(value).__name__}({','.join([_shape(child) for _, child in ast.iter_fields(value)])})"
    if isinstance(value, list):
        return f"[{','.join(map(_shape, value))}]"
    return "name" if isinstance(value, str) else repr(value)


def _structs(classes: Iterable[ast.ClassDef]) -> set[str]:
    """The names of those whose annotations are their fields, whether or not a decorator says so."""
    bases = [(node.name, {_last_name(base) for base in node.bases}) for node in classes]
    found, more = {"NamedTuple"}, {"Struct"}
    while more:
        found |= more
        more = {name for name, names in bases if names & (found - {"NamedTuple"})} - found
    return found


def _fields(node: ast.ClassDef, structs: set[str]) -> set[str]:
    annotated = "dataclass" in _decorators(node) or any(_last_name(base) in structs for base in node.bases)
    found: set[str] = set()
    for statement in node.body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found |= _assigned(statement)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if annotated:
                found |= {name} if _is_field(annotation) else set()
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=value):
                found |= {str(each.value) for each in ast.walk(value) if isinstance(each, ast.Constant)}
    return found - {"__dict__", "__weakref__"}


def _assigned(method: Function) -> set[str]:
    positional = [*method.args.posonlyargs, *method.args.args]
    if not positional or _decorators(method) & {"staticmethod", "classmethod"}:
        return set()
    found: set[str] = set()
    left = list(ast.iter_child_nodes(method))
    while left:
        match left.pop():
            case ast.ClassDef():
                pass  # has a self of its own
            case ast.Attribute(value=ast.Name(id=name), attr=field, ctx=ast.Store()) if name == positional[0].arg:
                found.add(field)
            case other:
                left += ast.iter_child_nodes(other)
    return found


def _is_field(annotation: ast.expr) -> bool:
    return _last_name(annotation) not in ("ClassVar", "InitVar", "KW_ONLY")


def _graph(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Module -> those that it imports as it is loaded."""
    names = {path: _module(path) for path in trees}
    modules = set(names.values())
    graph: dict[str, set[str]] = {}
    for path, tree in trees.items():
        name = names[path]
        package = name if path.endswith("/__init__.py") else name.rpartition(".")[0]
        graph[name] = {each for statement in _run(tree) for each in _imported(statement, package, modules)} & modules
    return graph


def _module(path: str) -> str:
    return _home(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))


def _home(name: str) -> str:
    """The name of a module from ``ardea``, whichever it is imported by."""
    return f"ardea.{name}" if name.partition(".")[0] in LINKED else name


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """The statements that run as the module is loaded."""
    for child in _blocks(node):
        yield child
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                pass
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), orelse=otherwise):
                yield from _run(ast.Module(otherwise, []))
            case _:
                yield from _run(child)


def _imported(statement: ast.AST, package: str, modules: set[str]) -> Iterator[str]:
    match statement:
        case ast.Import(names=names):
            yield from (_home(alias.name) for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            above = package.rsplit(".", level - 1)[0] if level else ""
            origin = _home(".".join(filter(None, (above, module))))
            for alias in names:
                inner = f"{origin}.{alias.name}"
                yield inner if inner in modules else origin


def _circles(graph: Mapping[str, set[str]]) -> dict[str, int]:
    """The strongly connected parts of more than one module."""
    rest = dict(graph)
    while ends := [module for module, others in rest.items() if not others & (rest.keys() - {module})]:
        for module in ends:
            del rest[module]
    ahead = {module: _reached(module, rest) for module in rest}
    groups = {frozenset(other for other in ahead[module] if module in ahead[other]) for module in rest}
    return {", ".join(sorted(group)): len(group) for group in groups if len(group) > 1}


def _reached(module: str, graph: Mapping[str, set[str]]) -> set[str]:
    """From there, by one import or more, as far as the graph goes."""
    found: set[str] = set()
    left = [module]
    while left:
        new = {other for other in graph[left.pop()] if other in graph} - found
        found |= new
        left += new
    return found


def _keys(tree: ast.Module) -> Iterator[str]:
    home, function = _DECLARING
    imports = [each for each in tree.body if isinstance(each, ast.ImportFrom) and each.module == home]
    known = {alias.asname or alias.name for each in imports for alias in each.names if alias.name == function}
    for table in tree.body if known else ():
        for statement in table.body if isinstance(table, ast.ClassDef) else ():
            match getattr(statement, "value", None):
                case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(key)), *_]) if name in known:
                    yield key


def rows(figures: Figures) -> dict[str, int]:
    """The table's."""
    sizes = {"": figures.product, **{f"{folder}: ": size for folder, size in figures.beside.items()}}
    found: dict[str, int] = {}
    for prefix, size in sizes.items():
        found |= {f"{prefix}modules": size.modules, f"{prefix}lines": size.lines}
    found |= {title: len(entries) for title, entries in lists(figures).items()}
    return {**found, "functions in them": sum(figures.repeated.values()), "configuration keys": figures.keys}


def lists(figures: Figures) -> dict[str, dict[str, int]]:
    """What stands below the table, by the titles of its rows."""
    return {
        f"classes over {CLASS_LINES} lines": figures.long_classes,
        f"classes with over {FIELDS} fields": figures.wide_classes,
        f"functions over {FUNCTION_LINES} lines": figures.long_functions,
        f"constructors over {PARAMETERS} parameters": figures.wide_constructors,
        f"functions over {PARAMETERS} parameters": figures.wide_functions,
        "import circles": figures.circles,
        "repeated shapes": figures.repeated,
    }


def as_text(columns: Mapping[str, Figures]) -> str:
    """The table, and below it what is over each limit."""
    width = max(8, *map(len, columns))
    table = [rows(each) for each in columns.values()]
    titles = max(map(len, table[0]))
    lines = [f"{'':{titles}}{_cells(columns, width)}"]
    lines += [f"{title:{titles}}{_cells((f'{row[title]:,}' for row in table), width)}" for title in table[0]]
    listed = [lists(each) for each in columns.values()]
    for title in listed[0]:
        if entries := _entries([each[title] for each in listed], width):
            lines += ["", title, _cells(columns, width), *entries]
    return "".join(f"{line}\n" for line in lines)


def _entries(columns: list[dict[str, int]], width: int) -> list[str]:
    """The largest of the last column first; ``-`` is what is not over the limit, or not there."""
    names = {name for column in columns for name in column}
    ordered = sorted(names, key=lambda name: (-columns[-1].get(name, 0), name))
    return [f"{_cells((str(column.get(name, '-')) for column in columns), width)}  {name}" for name in ordered]


def _cells(texts: Iterable[str], width: int) -> str:
    return "".join(f"  {text:>{width}}" for text in texts)


def in_work_tree() -> dict[str, str]:
    """The sources that git lists, as they are now."""
    names = _git("ls-files", "-z", "--", *(f"{folder}/*.py" for folder in (*PACKAGES, *BESIDE))).decode().split("\0")
    return {name: (ROOT / name).read_text("utf-8") for name in names if name and (ROOT / name).is_file()}


def in_commit(commit: str) -> dict[str, str]:
    """Its sources; nothing is checked out."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", commit))) as archive:
        for member in archive:
            if member.name.endswith(".py") and (file := archive.extractfile(member)) is not None:
                found[member.name] = file.read().decode("utf-8")
    return found


def _git(*arguments: str) -> bytes:
    run = subprocess.run([GIT, "-C", str(ROOT), *arguments], capture_output=True)
    if run.returncode:
        sys.exit(f"error: git {arguments[0]}: {run.stderr.decode(errors='replace').strip()}")
    return run.stdout


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="figures.py", description="Prints how large the project is.")
    parser.add_argument("--against", metavar="COMMIT", help="also measure this commit")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    arguments = parser.parse_args()
    sources = {} if arguments.against is None else {arguments.against: in_commit(arguments.against)}
    columns = {name: measure(texts) for name, texts in {**sources, "now": in_work_tree()}.items()}
    if arguments.output == "json":
        document = {name: dataclasses.asdict(each) for name, each in columns.items()}
        print(json.dumps(document, indent=2))  # noqa: T201
    else:
        print(as_text(columns), end="")  # noqa: T201


if __name__ == "__main__":
    main()
