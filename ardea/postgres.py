"""A sink that writes tables of PostgreSQL (docs/sinks.md).  psycopg is loaded by the tasks that use it.

from ardea.postgres import PostgresSink
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import itertools
import json
import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from ardea.client_settings import client_settings
from ardea.component import Inputs, Spec
from ardea.context import TopologyContext
from ardea.errors import ClusterError, ConfigError, TopologyError, printable
from ardea.metrics.user import CountMetric
from ardea.rejections import RejectedError, Rejections, problems
from ardea.sinks import Mark, Row, TwoPhaseSink
from ardea.tuples import Tuple

PREFIX = "postgres."
REFUSED = {
    "conninfo": "write its parts, postgres.host, postgres.dbname, postgres.password",
    "autocommit": "an interval is one transaction",
}
DEFAULTS = {"connect_timeout": 10, "tcp_user_timeout": 30_000, "application_name": "ardea"}
"""What a connection is given, unless ``postgres.*`` says otherwise: a server that is silent is noticed."""
CHUNK = 500
"""Rows of one statement; each has a deadline of its own."""
LEAST, MOST = 0.001, 2_000_000
"""Seconds of a deadline: PostgreSQL counts milliseconds in 31 bits, and takes 0 for none."""
LATER = 5.0
"""Seconds after its own deadline in which the server may still say that it was met."""
OF_ROWS = ("22", "23", "44", "54", "P0", "42804")
"""How SQLSTATEs about a row begin: values, constraints, a view's check, limits, what a trigger raises, types."""
MARKS = "(owner text PRIMARY KEY, number bigint NOT NULL)"
LETTERS = """(owner text NOT NULL, number bigint NOT NULL, content text NOT NULL, error text NOT NULL,
 at timestamptz NOT NULL DEFAULT now())"""


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
        rejected: Literal["fail", "dead-letter"] = "fail",
        dead_letters: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        """Nothing is opened.

        Args:
            table: its name, or ``schema.name``.
            columns: those that are written, in the order of ``row``.
            row: their values for a tuple; None: nothing is written.  By default the fields with the columns' names.
            key: columns of a unique index: a row that is there already is replaced.  Without them rows are added.
            marks: the table that remembers what is written, likewise; made if it is not there.
            rejected: what becomes of a row that the database refuses for itself, where snapshots are taken: ``fail``
                keeps it and all after it until the database takes it, ``dead-letter`` writes it elsewhere.
            dead_letters: the table for that, likewise.
            timeout: seconds that a statement may take, of 500 rows for example; from 0.001 to 2,000,000.

        Raises:
            TopologyError: an argument is wrong.
        """
        letters = {} if dead_letters is None else {"dead_letters=": dead_letters}
        names = {
            "table": table,
            "marks=": marks,
            **letters,
            **{f"column {place}": name for place, name in enumerate(columns)},
        }
        wrong = [f"{what} is a name, not {name!r}" for what, name in names.items() if not _is_name(name)]
        if isinstance(columns, str) or isinstance(key, str) or not columns:
            wrong = ["columns and key= are lists of names, and there is a column"]
        elif strangers := [name for name in key if name not in columns]:
            wrong.append(f"key= names {', '.join(map(repr, strangers))}, which are no columns")
        wrong += problems(rejected, dead_letters)
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not LEAST <= timeout <= MOST:
            wrong.append(f"timeout= takes seconds from {LEAST} to {MOST:,}, not {timeout!r}")
        if wrong:
            raise TopologyError([f"PostgresSink: {each}" for each in wrong])
        self._given: dict[str, Any] = {"table": table, "columns": tuple(columns), "key": tuple(key), "marks": marks}
        self._given |= {"dead_letters": dead_letters, "timeout": timeout}
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
    """One transaction for an interval, or without snapshots for a batch.

    An interval of which a row was refused is tried again in parts, each after a savepoint, until the row is found.
    """

    table: str
    columns: Sequence[str]
    key: Sequence[str]
    marks: str
    dead_letters: str | None
    timeout: float
    _connection: Any = None

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Reads the settings."""
        self._lib = _psycopg()
        self._settings = {**DEFAULTS, **client_settings(config, PREFIX, REFUSED)}
        self._written = context.register_metric("postgres-rows", CountMetric())
        self._set_aside = context.register_metric("postgres-rejected", CountMetric())
        self._rejections = Rejections(self.dead_letters)
        self._table = _Table(self._lib.sql, self.table, self.columns, self.key)

    def row(self, tup: Tuple) -> Row | None:
        """By default."""
        return tuple(tup[name] for name in self.columns)

    def commit(self, mark: Mark | None, rows: Iterable[Row]) -> None:
        """After an error the connection is another one: what became of the transaction, the mark says."""
        connection, self._connection = self._connection or self._connect(), None
        try:
            written = self._transact(connection, mark, rows)
        except BaseException as error:
            connection.close()
            if isinstance(error, RejectedError) or self._is_of_row(error):
                self._rejections.count(mark)
            raise
        self._connection = connection
        self._written.value += written

    def disconnect(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> Any:
        connection = self._lib.connect(**self._settings)
        try:
            with self._deadline(connection):
                if self.two_phase:
                    self._make(connection, self.marks, MARKS)
                if self.dead_letters is not None:
                    self._make(connection, self.dead_letters, LETTERS)
                connection.commit()
        except BaseException:
            connection.close()
            raise
        return connection

    def _make(self, connection: Any, table: str, columns: str) -> None:
        """Where the table is there, nobody needs the right to make one."""
        sql, name = self._lib.sql.SQL, _identifier(self._lib.sql, table)
        known = connection.execute("SELECT to_regclass(%s)", [name.as_string(connection)]).fetchone()
        if known[0] is None:
            connection.execute(sql("CREATE TABLE IF NOT EXISTS {} {}").format(name, sql(columns)))

    # --- a transaction ----------------------------------------------------------------------------------------

    def _transact(self, connection: Any, mark: Mark | None, rows: Iterable[Row]) -> int:
        """Returns how many rows were written."""
        cursor, count = connection.cursor(), 0
        with self._deadline(connection):
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(int(self.timeout * 1000))])
            if mark is not None and not self._advance(cursor, mark):
                connection.rollback()
                return 0
        for part in _parts(rows):
            if mark is not None and self._rejections.careful(mark):
                count += self._try(cursor, mark, part)
                continue
            with self._deadline(connection):
                count += self._table.write(cursor, part)
        with self._deadline(connection):
            connection.commit()
        return count

    def _advance(self, cursor: Any, mark: Mark) -> bool:
        """Whether the interval is not there yet; whoever writes it as well waits here until the transaction is over."""
        statement = (
            "INSERT INTO {} AS known (owner, number) VALUES (%s, %s) ON CONFLICT (owner)"
            " DO UPDATE SET number = excluded.number WHERE known.number < excluded.number"
        )
        name = _identifier(self._lib.sql, self.marks)
        cursor.execute(self._lib.sql.SQL(statement).format(name), [mark.owner, mark.number])
        return bool(cursor.rowcount)

    def _try(self, cursor: Any, mark: Mark, rows: Sequence[Row]) -> int:
        """Writes these rows but for those that are set aside; returns how many."""
        connection = cursor.connection
        try:
            with self._deadline(connection), connection.transaction():
                return self._table.write(cursor, rows)
        except Exception as error:
            if not self._is_of_row(error):
                raise
            if len(rows) == 1:
                self._refused(cursor, mark, rows[0], error)
                return 0
        half = len(rows) // 2
        return self._try(cursor, mark, rows[:half]) + self._try(cursor, mark, rows[half:])

    def _refused(self, cursor: Any, mark: Mark, row: Row, error: Exception) -> None:
        refusal = RejectedError(row, f"table {self.table}", error)
        if not self._rejections.gives_up(mark):
            raise refusal from error
        letters = self.dead_letters or ""
        name = _identifier(self._lib.sql, letters)
        statement = self._lib.sql.SQL("INSERT INTO {} (owner, number, content, error) VALUES (%s, %s, %s, %s)")
        content = _content(row)
        with self._deadline(cursor.connection):
            cursor.execute(statement.format(name), [mark.owner, mark.number, content, printable(error)])
        self.logger.error("%s; it goes to table %s", refusal, letters)
        self._set_aside.value += 1

    def _is_of_row(self, error: BaseException) -> bool:
        """Whether the row is the reason, and not the server, the table or the permissions."""
        if isinstance(error, self._lib.Error) and error.sqlstate:
            return str(error.sqlstate).startswith(OF_ROWS)
        return isinstance(error, (self._lib.DataError, self._lib.ProgrammingError, ValueError, OverflowError))

    @contextlib.contextmanager
    def _deadline(self, connection: Any) -> Iterator[None]:
        """The server's own is shorter: this one is for a server that does not even say that it was met."""
        seconds, cut = self.timeout + LATER, threading.Event()
        timer = threading.Timer(seconds, _cut, [connection, cut])
        timer.daemon = True
        timer.start()
        try:
            yield
        except self._lib.Error as error:
            if cut.is_set():
                raise ClusterError(f"the server has not answered for {seconds:g} s") from error
            raise
        finally:
            timer.cancel()


class _Table:
    """Where rows go: added, or with a key in place of those that are there."""

    def __init__(self, sql: Any, table: str, columns: Sequence[str], key: Sequence[str]) -> None:
        name, names = _identifier(sql, table), list(map(sql.Identifier, columns))
        self._copy = sql.SQL("COPY {} ({}) FROM STDIN").format(name, sql.SQL(", ").join(names))
        self._upsert = _upsert(sql, name, columns, key) if key else None

    def write(self, cursor: Any, rows: Sequence[Row]) -> int:
        """Returns how many."""
        if self._upsert is not None:
            cursor.executemany(self._upsert, rows)
            return len(rows)
        with cursor.copy(self._copy) as copy:
            for row in rows:
                copy.write_row(row)
        return len(rows)


def _upsert(sql: Any, table: Any, columns: Sequence[str], key: Sequence[str]) -> Any:
    changes = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in columns if name not in key]
    return sql.SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT ({}) DO {}").format(
        table,
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(", ").join(sql.Placeholder() * len(columns)),
        sql.SQL(", ").join(map(sql.Identifier, key)),
        sql.SQL("UPDATE SET {}").format(sql.SQL(", ").join(changes)) if changes else sql.SQL("NOTHING"),
    )


def _parts(rows: Iterable[Row]) -> Iterator[Sequence[Row]]:
    left = iter(rows)
    while part := list(itertools.islice(left, CHUNK)):
        yield part


def _cut(connection: Any, cut: threading.Event) -> None:
    """Ends all waits for the server."""
    cut.set()
    with contextlib.suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as end:
        end.shutdown(socket.SHUT_RDWR)


def _identifier(sql: Any, name: str) -> Any:
    return sql.Identifier(*name.split("."))


def _content(row: Row) -> str:
    """As a JSON list; a key of a dict that JSON does not have is there as Python writes it."""
    return json.dumps(_with_keys_of_json(list(row)), default=_plain)


def _with_keys_of_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key if key is None or isinstance(key, (str, int, float)) else repr(key): _with_keys_of_json(each)
            for key, each in value.items()
        }
    return [*map(_with_keys_of_json, value)] if isinstance(value, (list, tuple)) else value


def _plain(value: Any) -> str:
    """What JSON does not have."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and all(name.split("."))


def _psycopg() -> Any:
    try:
        importlib.import_module("psycopg.sql")
        return importlib.import_module("psycopg")
    except ImportError as error:
        raise ConfigError("psycopg is not installed", hint="pip install 'ardea[postgres]'") from error
