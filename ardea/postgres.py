"""A sink that writes tables of PostgreSQL (docs/sinks.md).  psycopg is loaded by the tasks that use it.

from ardea.postgres import PostgresSink
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ardea.client_settings import client_settings
from ardea.component import Inputs, Spec
from ardea.context import TopologyContext
from ardea.errors import ConfigError, TopologyError
from ardea.metrics.user import CountMetric
from ardea.sinks import Mark, Row, TwoPhaseSink
from ardea.tuples import Tuple

PREFIX = "postgres."
REFUSED = {
    "conninfo": "write its parts, postgres.host, postgres.dbname, postgres.password",
    "autocommit": "an interval is one transaction",
}
DEFAULTS = {"connect_timeout": 10, "tcp_user_timeout": 30_000, "application_name": "ardea"}
"""What a connection is given, unless ``postgres.*`` says otherwise: a server that is silent is noticed."""


class PostgresSink:
    """Writes rows of a table: ``PostgresSink("totals", ["word", "count"], key=["word"]).spec(inputs=[count])``."""

    def __init__(
        self,
        table: str,
        columns: Sequence[str],
        row: Callable[[Tuple], Row | None] | None = None,
        *,
        key: Sequence[str] = (),
        marks: str = "ardea_marks",
    ) -> None:
        """Nothing is opened.

        Args:
            table: its name, or ``schema.name``.
            columns: those that are written, in the order of ``row``.
            row: their values for a tuple; None: nothing is written.  By default the fields with the columns' names.
            key: columns of a unique index: a row that is there already is replaced.  Without them rows are added.
            marks: the table that remembers what is written, likewise; made if it is not there.

        Raises:
            TopologyError: an argument is wrong.
        """
        names = {"table": table, "marks=": marks, **{f"column {place}": name for place, name in enumerate(columns)}}
        wrong = [f"{what} is a name, not {name!r}" for what, name in names.items() if not _is_name(name)]
        if isinstance(columns, str) or isinstance(key, str) or not columns:
            wrong = ["columns and key= are lists of names, and there is a column"]
        elif strangers := [name for name in key if name not in columns]:
            wrong.append(f"key= names {', '.join(map(repr, strangers))}, which are no columns")
        if wrong:
            raise TopologyError([f"PostgresSink: {each}" for each in wrong])
        self._given = {"table": table, "columns": tuple(columns), "key": tuple(key), "marks": marks}
        self._row = row

    def spec(
        self,
        name: str | None = None,
        par: int = 1,
        inputs: Inputs | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        tasks: int | None = None,
        cpu: float | None = None,
        ram: int | str | None = None,
        disk: int | str | None = None,
    ) -> Spec:
        """Places it in a topology, as :meth:`ardea.Component.spec` does."""
        attributes = {**self._given, **({} if self._row is None else {"row": staticmethod(self._row)})}
        cls: type[PostgresBolt] = type("PostgresSink", (PostgresBolt,), attributes)
        return cls.spec(name, par, inputs, config, tasks=tasks, cpu=cpu, ram=ram, disk=disk)


class PostgresBolt(TwoPhaseSink):
    """One transaction for an interval, or without snapshots for a batch."""

    table: str
    columns: Sequence[str]
    key: Sequence[str]
    marks: str
    _connection: Any = None

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Reads the settings."""
        self._lib = _psycopg()
        self._settings = {**DEFAULTS, **client_settings(config, PREFIX, REFUSED)}
        self._written = context.register_metric("postgres-rows", CountMetric())
        identifier = self._lib.sql.Identifier
        self._table, self._marks = (identifier(*name.split(".")) for name in (self.table, self.marks))

    def row(self, tup: Tuple) -> Row | None:
        """By default."""
        return tuple(tup[name] for name in self.columns)

    def commit(self, mark: Mark | None, rows: Iterable[Row]) -> None:
        """After an error the connection is another one: what became of the transaction, the mark says."""
        connection, self._connection = self._connection or self._connect(), None
        try:
            with connection.transaction(), connection.cursor() as cursor:
                written = self._insert(cursor, rows) if mark is None or self._advance(cursor, mark) else 0
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._written.value += written

    def disconnect(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> Any:
        connection = self._lib.connect(**self._settings, autocommit=True)
        if self.two_phase:
            sql = self._lib.sql.SQL
            # Where the table is there, nobody needs the right to make one.
            known = connection.execute("SELECT to_regclass(%s)", [self._marks.as_string(connection)]).fetchone()
            if known[0] is None:
                made = "CREATE TABLE IF NOT EXISTS {} (owner text PRIMARY KEY, number bigint NOT NULL)"
                connection.execute(sql(made).format(self._marks))
        return connection

    def _advance(self, cursor: Any, mark: Mark) -> bool:
        """Whether the interval is not there yet; whoever writes it as well waits here until the transaction is over."""
        statement = (
            "INSERT INTO {} AS known (owner, number) VALUES (%s, %s) ON CONFLICT (owner)"
            " DO UPDATE SET number = excluded.number WHERE known.number < excluded.number"
        )
        cursor.execute(self._lib.sql.SQL(statement).format(self._marks), [mark.owner, mark.number])
        return bool(cursor.rowcount)

    def _insert(self, cursor: Any, rows: Iterable[Row]) -> int:
        sql, count = self._lib.sql.SQL, 0
        columns = sql(", ").join(map(self._lib.sql.Identifier, self.columns))
        if self.key:
            statement = self._upsert(sql, columns)
            for count, row in enumerate(rows, 1):  # noqa: B007 -- counts
                cursor.execute(statement, row)
            return count
        with cursor.copy(sql("COPY {} ({}) FROM STDIN").format(self._table, columns)) as copy:
            for row in rows:
                copy.write_row(row)
                count += 1
        return count

    def _upsert(self, sql: Any, columns: Any) -> Any:
        identifier = self._lib.sql.Identifier
        others = [name for name in self.columns if name not in self.key]
        changes = [sql("{} = excluded.{}").format(identifier(name), identifier(name)) for name in others]
        return sql("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT ({}) DO {}").format(
            self._table,
            columns,
            sql(", ").join(self._lib.sql.Placeholder() * len(self.columns)),
            sql(", ").join(map(identifier, self.key)),
            sql("UPDATE SET {}").format(sql(", ").join(changes)) if changes else sql("NOTHING"),
        )


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and all(name.split("."))


def _psycopg() -> Any:
    try:
        importlib.import_module("psycopg.sql")
        return importlib.import_module("psycopg")
    except ImportError as error:
        raise ConfigError("psycopg is not installed", hint="pip install 'ardea[postgres]'") from error
