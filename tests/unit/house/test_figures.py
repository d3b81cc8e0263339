"""What scripts/figures.py counts and lists, and what it prints of it."""

from __future__ import annotations

import pytest

from scripts.figures import Size, as_text, measure

PATH = "ardea/a.py"


def one(source: str):
    return measure({PATH: source})


def lines(number: int, indent: int = 4) -> str:
    return f"{' ' * indent}x = 1\n" * number


def parameters(number: int) -> str:
    return ", ".join(f"p{n}" for n in range(number))


def test_sizes_are_of_each_folder_and_leave_out_what_is_generated_or_no_python():
    texts = {
        "ardea/a.py": "a = 1\n\n# b\n",
        "scheduler/b.py": "b = 1",
        "ardea/c_pb2.py": "c = 1\n",
        "ardea/d.pyi": "d: int\n",
        "tests/unit/e.py": "e = 1\ne = 2\n",
        "tests/fixtures/broken.py": "of these (only the lines\n",
        "examples/f.py": "f = 1\n",
        "docs/g.py": "g = 1\n",
    }
    found = measure(texts)
    assert found.product == Size(2, 4)
    assert found.beside == {"tests": Size(2, 3), "benchmarks": Size(0, 0), "examples": Size(1, 1)}


@pytest.mark.parametrize(("length", "listed"), [(250, {}), (251, {f"{PATH} C": 251})])
def test_a_class_is_measured_from_its_name_to_its_end(length, listed):
    source = f"@decorated\nclass C:\n{lines(length - 1)}\n\ny = 1\n"
    assert one(source).long_classes == listed


@pytest.mark.parametrize(("length", "listed"), [(40, {}), (41, {f"{PATH} C.f": 41})])
def test_a_function_is_measured_without_signature_and_docstring(length, listed):
    source = f'class C:\n    async def f(\n        self,\n    ):\n        """Two\n        lines."""\n{lines(length, 8)}'
    assert one(source).long_functions == listed


def test_a_decorator_belongs_to_the_body_that_it_begins_and_inner_functions_are_measured_too():
    source = f"def f():\n    @decorated\n    def g():\n{lines(41, 8)}    return g\n"
    assert one(source).long_functions == {f"{PATH} f": 44, f"{PATH} f.g": 41}


def test_definitions_of_one_name_are_listed_once():
    source = f"class C:\n    def f(self):\n{lines(42, 8)}    def f(self, new):\n{lines(41, 8)}"
    assert one(source).long_functions == {f"{PATH} C.f": 42}


def test_what_stands_under_a_condition_is_found():
    source = f"if a:\n    pass\nelse:\n    try:\n        pass\n    except E:\n        def f({parameters(8)}): pass\n"
    assert one(source).wide_functions == {f"{PATH} f": 8}


@pytest.mark.parametrize(
    ("signature", "number"),
    [
        (f"def f({parameters(8)})", 8),
        (f"def f({parameters(7)})", None),
        ("def f(a, /, b, *c, d, e, f, g, **h)", 8),
        (f"class C:\n  def f(self, {parameters(8)})", 8),
        (f"class C:\n  def f(self, {parameters(7)})", None),
        (f"class C:\n  @classmethod\n  def f(cls, {parameters(7)})", None),
        (f"class C:\n  @staticmethod\n  def f({parameters(8)})", 8),
        (f"class C:\n  def g(self):\n    def f({parameters(8)})", 8),
    ],
)
def test_parameters_are_counted_without_self(signature, number):
    found = one(f"{signature}: pass\n")
    assert list(found.wide_functions.values()) == ([] if number is None else [number])
    assert found.wide_constructors == {}


def test_constructors_are_listed_apart():
    source = f"class C:\n    def __new__(cls, {parameters(9)}): pass\n    def __init__(self, {parameters(8)}): pass\n"
    found = one(f"{source}class D:\n    def __init__(self, {parameters(7)}): pass\n")
    assert found.wide_constructors == {f"{PATH} C.__new__": 9, f"{PATH} C.__init__": 8}
    assert found.wide_functions == {}
    bare = one(f"def __init__({parameters(8)}): pass\n")
    assert (bare.wide_constructors, bare.wide_functions) == ({}, {f"{PATH} __init__": 8})


FIELDS = [
    # All that methods assign on self, each name once.
    ("class C:\n  def f(self):\n    self.a = self.b = 1\n    self.a += self.c\n    (self.d, [self.e]) = x", 4),
    ("class C:\n  def f(me):\n    with x as me.a:\n      for me.b in y: me.c: int = 1\n    me.d.e = me.f[0] = 1", 3),
    ("class C:\n  def f(self):\n    def g():\n      self.a = 1\n    class D:\n      def h(self): self.b = 1", 1),
    ("class C:\n  @classmethod\n  def f(cls): cls.a = 1\n  @staticmethod\n  def g(x): x.b = 1", 0),
    ("class C:\n  __slots__ = ('a', '__weakref__')\n  b: int\n  c = 1\n  def f(self): self.d = 1", 2),
    ("@dataclass(slots=True)\nclass C:\n  a: int\n  b: int = 1\n  c = 1\n  def f(self): self.d = 1", 3),
    ("@dataclasses.dataclass\nclass C:\n  a: int\n  b: ClassVar[int] = 1\n  c: InitVar[int] = 1\n  _: KW_ONLY", 1),
    ("class B(msgspec.Struct): pass\nclass C(B, frozen=True):\n  a: int\n  b: list[int] = []", 2),
    ("class B(NamedTuple):\n  z: int\nclass C(B):\n  a: int", 0),
]


@pytest.mark.parametrize(("source", "number"), FIELDS)
def test_fields_of_a_class(source, number):
    """Shown by how many more it takes until the class is listed."""

    def listed(more: int) -> int | None:
        added = "".join(f"    self.more{n} = 1\n" for n in range(more))
        return one(f"{source}\n  def more(self):\n    pass\n{added}").wide_classes.get(f"{PATH} C")

    assert (listed(15 - number), listed(16 - number)) == (None, 16)


SHAPE = """
def f(self, key, default=None):
    found = self.table.get(key)
    if found is None:
        found = default
        self.missing += 1
    else:
        self.hits += 1
    return found
"""
RENAMED = '''
class C:
    @decorated
    def g(me, word: str, other: int = 7) -> int:
        """Says something."""
        place = me.words.find(word)
        if place is 0:
            place = other
            me.a += "b"
        else:
            me.c += 2
        return place
'''


def test_functions_that_differ_in_names_and_constants_are_one_repeated_shape():
    found = measure({"ardea/a.py": SHAPE, "scheduler/b.py": RENAMED, "tests/c.py": SHAPE})
    assert found.repeated == {"ardea/a.py f, scheduler/b.py C.g": 2}


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ("def f", "async def f"),
        ("is None", "is not None"),
        ("default=None", "default"),
        ("(self, key, ", "(self, key, more, "),
        ("self.table.get(key)", "self.table[key]"),
        ("return found", "return"),
    ],
)
def test_functions_that_differ_in_syntax_are_no_repeated_shape(there, instead):
    assert there in SHAPE
    assert measure({"ardea/a.py": SHAPE, "ardea/b.py": SHAPE.replace(there, instead)}).repeated == {}


@pytest.mark.parametrize(("statements", "repeated"), [(5, {}), (6, {f"{PATH} f, {PATH} g": 2})])
def test_short_functions_repeat_nothing(statements, repeated):
    inner = f"    try:\n        while a:\n{lines(statements - 3, 12)}    except E:\n        return b\n"
    body = f'():\n    """This is none."""\n{inner}'
    assert one(f"def f{body}def g{body}").repeated == repeated


CIRCLES = [
    # Absolute, of a module or of a name in it.
    ({"ardea/a.py": "import ardea.b", "ardea/b.py": "from ardea.a import x"}, "ardea.a, ardea.b"),
    ({"ardea/a.py": "from ardea import b as c", "ardea/b.py": "from ardea import a"}, "ardea.a, ardea.b"),
    ({"ardea/a.py": "if x:\n  class C:\n    import ardea.b", "ardea/b.py": "import ardea.a"}, "ardea.a, ardea.b"),
    # Relative, from a module and from a package.
    ({"ardea/a.py": "from . import b", "ardea/b.py": "from .a import x"}, "ardea.a, ardea.b"),
    ({"ardea/p/__init__.py": "from .b import x", "ardea/p/b.py": "from . import y"}, "ardea.p, ardea.p.b"),
    ({"ardea/p/a.py": "from .. import b", "ardea/b.py": "from .p.a import x"}, "ardea.b, ardea.p.a"),
    # The folders beside ardea/, by either name.
    ({"scheduler/a.py": "import ardea.b", "ardea/b.py": "import ardea.scheduler.a"}, "ardea.b, ardea.scheduler.a"),
    ({"scheduler/a.py": "import ardea.b", "ardea/b.py": "from scheduler import a"}, "ardea.b, ardea.scheduler.a"),
    ({"scheduler/a.py": "import ardea.b", "ardea/b.py": "import scheduler.a"}, "ardea.b, ardea.scheduler.a"),
    # Larger ones; who only leads to a circle, or is led to, does not belong to it.
    (
        {
            "ardea/a.py": "import ardea.b",
            "ardea/b.py": "import ardea.c\nimport ardea.e",
            "ardea/c.py": "import ardea.a",
            "ardea/d.py": "import ardea.a",
            "ardea/e.py": "import os",
        },
        "ardea.a, ardea.b, ardea.c",
    ),
]
NO_CIRCLES = [
    {"ardea/a.py": "import ardea.b", "ardea/b.py": "if TYPE_CHECKING:\n  import ardea.a"},
    {"ardea/a.py": "import ardea.b", "ardea/b.py": "if typing.TYPE_CHECKING:\n  from ardea import a"},
    {"ardea/a.py": "import ardea.b", "ardea/b.py": "class C:\n  async def f(self):\n    import ardea.a"},
    # A package is imported only where a name is taken from it.
    {"ardea/p/__init__.py": "from ardea.p.a import x", "ardea/p/a.py": "from ardea.p import b", "ardea/p/b.py": ""},
    {"ardea/a.py": "import ardea.a"},
]


@pytest.mark.parametrize(("sources", "circle"), CIRCLES)
def test_import_circles_are_found(sources, circle):
    assert measure(sources).circles == {circle: circle.count(",") + 1}


@pytest.mark.parametrize("sources", NO_CIRCLES)
def test_other_imports_are_no_circles(sources):
    assert measure(sources).circles == {}


def test_what_runs_beside_type_checking_is_followed():
    sources = {"ardea/a.py": "import ardea.b", "ardea/b.py": "if TYPE_CHECKING:\n  x\nelse:\n  import ardea.a"}
    assert measure(sources).circles == {"ardea.a, ardea.b": 2}


def test_two_circles_are_two():
    pairs = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("e", "a"), ("d", "e")]
    sources: dict[str, str] = {}
    for module, other in pairs:
        sources[f"ardea/{module}.py"] = f"{sources.get(f'ardea/{module}.py', '')}import ardea.{other}\n"
    assert measure(sources).circles == {"ardea.a, ardea.b": 2, "ardea.c, ardea.d": 2}


def test_configuration_keys_are_those_declared_wherever_they_stand():
    table = "class S:\n  a: int = _key('x.a', 'count')\n  b: int = _key('x.b')\n  c: int = other('x.c')\n  d: int = 1\n"
    more = "class T:\n  b: int = declared('x.b')\n  e: int = declared('x.e')\n"
    sources = {
        "ardea/config.py": f"from ardea.config_keys import declared as _key\n{table}",
        "ardea/more.py": f"from ardea.config_keys import declared\n{more}",
        "ardea/none.py": table,
    }
    assert measure(sources).keys == 3


def test_the_table_has_a_column_each_and_lists_what_any_of_them_has():
    before = measure({PATH: f"class C:\n{lines(260)}class D:\n{lines(251)}"})
    now = measure({PATH: f"class C:\n{lines(270)}class E:\n{lines(271)}", "tests/b.py": ""})
    text = as_text({"abc": before, "now": now}).splitlines()
    assert text[0].split() == ["abc", "now"]
    assert [line.split() for line in text[1:4]] == [
        ["modules", "1", "1"],
        ["lines", "513", "543"],
        ["tests:", "modules", "0", "1"],
    ]
    start = text.index("classes over 250 lines")
    assert [line.split() for line in text[start + 1 :]] == [
        ["abc", "now"],
        ["-", "272", PATH, "E"],
        ["261", "271", PATH, "C"],
        ["252", "-", PATH, "D"],
    ]


def test_the_table_of_one_column():
    text = as_text({"now": one("x = 1\n")}).splitlines()
    assert [line.split()[-1] for line in text] == ["now", "1", "1", *["0"] * 15]
