from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KIND_UNSET: _ClassVar[Kind]
    HELLO: _ClassVar[Kind]
    REFUSED: _ClassVar[Kind]
    HEARTBEAT: _ClassVar[Kind]
    RESEND: _ClassVar[Kind]
    INIT: _ClassVar[Kind]
    ROWS: _ClassVar[Kind]
    MARKER: _ClassVar[Kind]
    BARRIER: _ClassVar[Kind]
    WATERMARK: _ClassVar[Kind]
    ACKS: _ClassVar[Kind]
    VERDICTS: _ClassVar[Kind]
    CREDITS: _ClassVar[Kind]
    PAUSE: _ClassVar[Kind]
    PLAN: _ClassVar[Kind]
    TASKS: _ClassVar[Kind]
    REPORT: _ClassVar[Kind]
    ORDER: _ClassVar[Kind]
    REGISTER: _ClassVar[Kind]
    ADMITTED: _ClassVar[Kind]
    ASK: _ClassVar[Kind]
    ANSWER: _ClassVar[Kind]
    SUMMARY: _ClassVar[Kind]
    LEAVING: _ClassVar[Kind]

class Codec(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MSGPACK: _ClassVar[Codec]
    ARROW: _ClassVar[Codec]

class Ids(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNTRACKED: _ClassVar[Ids]
    ONE: _ClassVar[Ids]
    MANY: _ClassVar[Ids]

class TaskState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACTIVE: _ClassVar[TaskState]
    RESTING: _ClassVar[TaskState]
    DONE: _ClassVar[TaskState]
    ENDED: _ClassVar[TaskState]
    REOPENED: _ClassVar[TaskState]

class OrderKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ORDER_UNSET: _ClassVar[OrderKind]
    ACTIVATE: _ClassVar[OrderKind]
    DEACTIVATE: _ClassVar[OrderKind]
    END: _ClassVar[OrderKind]
    EXIT: _ClassVar[OrderKind]
    DRAIN: _ClassVar[OrderKind]
    DEBUG: _ClassVar[OrderKind]
    HOLD: _ClassVar[OrderKind]
    RESUME: _ClassVar[OrderKind]
    LEAVE: _ClassVar[OrderKind]
    SNAPSHOTS: _ClassVar[OrderKind]
KIND_UNSET: Kind
HELLO: Kind
REFUSED: Kind
HEARTBEAT: Kind
RESEND: Kind
INIT: Kind
ROWS: Kind
MARKER: Kind
BARRIER: Kind
WATERMARK: Kind
ACKS: Kind
VERDICTS: Kind
CREDITS: Kind
PAUSE: Kind
PLAN: Kind
TASKS: Kind
REPORT: Kind
ORDER: Kind
REGISTER: Kind
ADMITTED: Kind
ASK: Kind
ANSWER: Kind
SUMMARY: Kind
LEAVING: Kind
MSGPACK: Codec
ARROW: Codec
UNTRACKED: Ids
ONE: Ids
MANY: Ids
ACTIVE: TaskState
RESTING: TaskState
DONE: TaskState
ENDED: TaskState
REOPENED: TaskState
ORDER_UNSET: OrderKind
ACTIVATE: OrderKind
DEACTIVATE: OrderKind
END: OrderKind
EXIT: OrderKind
DRAIN: OrderKind
DEBUG: OrderKind
HOLD: OrderKind
RESUME: OrderKind
LEAVE: OrderKind
SNAPSHOTS: OrderKind

class Credit(_message.Message):
    __slots__ = ("task", "task_life", "container", "container_life", "rows", "bytes", "window_rows", "window_bytes", "high_rows", "pace", "aside_rows", "aside_bytes")
    TASK_FIELD_NUMBER: _ClassVar[int]
    TASK_LIFE_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_LIFE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    WINDOW_ROWS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_BYTES_FIELD_NUMBER: _ClassVar[int]
    HIGH_ROWS_FIELD_NUMBER: _ClassVar[int]
    PACE_FIELD_NUMBER: _ClassVar[int]
    ASIDE_ROWS_FIELD_NUMBER: _ClassVar[int]
    ASIDE_BYTES_FIELD_NUMBER: _ClassVar[int]
    task: int
    task_life: int
    container: int
    container_life: int
    rows: int
    bytes: int
    window_rows: int
    window_bytes: int
    high_rows: int
    pace: int
    aside_rows: int
    aside_bytes: int
    def __init__(self, task: _Optional[int] = ..., task_life: _Optional[int] = ..., container: _Optional[int] = ..., container_life: _Optional[int] = ..., rows: _Optional[int] = ..., bytes: _Optional[int] = ..., window_rows: _Optional[int] = ..., window_bytes: _Optional[int] = ..., high_rows: _Optional[int] = ..., pace: _Optional[int] = ..., aside_rows: _Optional[int] = ..., aside_bytes: _Optional[int] = ...) -> None: ...

class Pace(_message.Message):
    __slots__ = ("task", "rows")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    task: int
    rows: int
    def __init__(self, task: _Optional[int] = ..., rows: _Optional[int] = ...) -> None: ...

class Load(_message.Message):
    __slots__ = ("task", "load")
    TASK_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    task: int
    load: float
    def __init__(self, task: _Optional[int] = ..., load: _Optional[float] = ...) -> None: ...

class Demand(_message.Message):
    __slots__ = ("task", "held_rows", "held_bytes")
    TASK_FIELD_NUMBER: _ClassVar[int]
    HELD_ROWS_FIELD_NUMBER: _ClassVar[int]
    HELD_BYTES_FIELD_NUMBER: _ClassVar[int]
    task: int
    held_rows: int
    held_bytes: int
    def __init__(self, task: _Optional[int] = ..., held_rows: _Optional[int] = ..., held_bytes: _Optional[int] = ...) -> None: ...

class Trace(_message.Message):
    __slots__ = ("row", "trace_high", "trace_low", "span", "sent")
    ROW_FIELD_NUMBER: _ClassVar[int]
    TRACE_HIGH_FIELD_NUMBER: _ClassVar[int]
    TRACE_LOW_FIELD_NUMBER: _ClassVar[int]
    SPAN_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    row: int
    trace_high: int
    trace_low: int
    span: int
    sent: int
    def __init__(self, row: _Optional[int] = ..., trace_high: _Optional[int] = ..., trace_low: _Optional[int] = ..., span: _Optional[int] = ..., sent: _Optional[int] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("kind", "sequence", "confirmed_data", "confirmed_control", "sender", "receiver", "epoch", "source", "target", "stream", "rows", "codec", "ids", "source_life", "target_life", "container", "container_life", "round", "end", "targets", "target_lives", "opens", "void", "head", "timeline", "snapshot", "watermark", "idle", "traces", "paused", "sequence_data", "sequence_control", "credits", "paces", "demands", "loads", "all_held", "asks", "protocol")
    KIND_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_DATA_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_CONTROL_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    CODEC_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LIFE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LIFE_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_LIFE_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    TARGET_LIVES_FIELD_NUMBER: _ClassVar[int]
    OPENS_FIELD_NUMBER: _ClassVar[int]
    VOID_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    TIMELINE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    IDLE_FIELD_NUMBER: _ClassVar[int]
    TRACES_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DATA_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_CONTROL_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    PACES_FIELD_NUMBER: _ClassVar[int]
    DEMANDS_FIELD_NUMBER: _ClassVar[int]
    LOADS_FIELD_NUMBER: _ClassVar[int]
    ALL_HELD_FIELD_NUMBER: _ClassVar[int]
    ASKS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    kind: Kind
    sequence: int
    confirmed_data: int
    confirmed_control: int
    sender: int
    receiver: int
    epoch: int
    source: int
    target: int
    stream: int
    rows: int
    codec: Codec
    ids: Ids
    source_life: int
    target_life: int
    container: int
    container_life: int
    round: int
    end: bool
    targets: _containers.RepeatedScalarFieldContainer[int]
    target_lives: _containers.RepeatedScalarFieldContainer[int]
    opens: bool
    void: bool
    head: bytes
    timeline: int
    snapshot: int
    watermark: float
    idle: bool
    traces: _containers.RepeatedCompositeFieldContainer[Trace]
    paused: bool
    sequence_data: int
    sequence_control: int
    credits: _containers.RepeatedCompositeFieldContainer[Credit]
    paces: _containers.RepeatedCompositeFieldContainer[Pace]
    demands: _containers.RepeatedCompositeFieldContainer[Demand]
    loads: _containers.RepeatedCompositeFieldContainer[Load]
    all_held: bool
    asks: bool
    protocol: int
    def __init__(self, kind: _Optional[_Union[Kind, str]] = ..., sequence: _Optional[int] = ..., confirmed_data: _Optional[int] = ..., confirmed_control: _Optional[int] = ..., sender: _Optional[int] = ..., receiver: _Optional[int] = ..., epoch: _Optional[int] = ..., source: _Optional[int] = ..., target: _Optional[int] = ..., stream: _Optional[int] = ..., rows: _Optional[int] = ..., codec: _Optional[_Union[Codec, str]] = ..., ids: _Optional[_Union[Ids, str]] = ..., source_life: _Optional[int] = ..., target_life: _Optional[int] = ..., container: _Optional[int] = ..., container_life: _Optional[int] = ..., round: _Optional[int] = ..., end: bool = ..., targets: _Optional[_Iterable[int]] = ..., target_lives: _Optional[_Iterable[int]] = ..., opens: bool = ..., void: bool = ..., head: _Optional[bytes] = ..., timeline: _Optional[int] = ..., snapshot: _Optional[int] = ..., watermark: _Optional[float] = ..., idle: bool = ..., traces: _Optional[_Iterable[_Union[Trace, _Mapping]]] = ..., paused: bool = ..., sequence_data: _Optional[int] = ..., sequence_control: _Optional[int] = ..., credits: _Optional[_Iterable[_Union[Credit, _Mapping]]] = ..., paces: _Optional[_Iterable[_Union[Pace, _Mapping]]] = ..., demands: _Optional[_Iterable[_Union[Demand, _Mapping]]] = ..., loads: _Optional[_Iterable[_Union[Load, _Mapping]]] = ..., all_held: bool = ..., asks: bool = ..., protocol: _Optional[int] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol", "topology", "digest", "digests", "task", "container", "tasks", "holder", "died_on", "epoch", "build", "admission", "leaving", "term", "known", "paused", "ending")
    class DigestsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class TasksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    class KnownEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    DIGESTS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    DIED_ON_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    ADMISSION_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    ENDING_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    topology: str
    digest: str
    digests: _containers.ScalarMap[str, str]
    task: int
    container: int
    tasks: _containers.ScalarMap[int, int]
    holder: str
    died_on: bytes
    epoch: int
    build: int
    admission: int
    leaving: bool
    term: int
    known: _containers.ScalarMap[int, int]
    paused: bool
    ending: bool
    def __init__(self, protocol: _Optional[int] = ..., topology: _Optional[str] = ..., digest: _Optional[str] = ..., digests: _Optional[_Mapping[str, str]] = ..., task: _Optional[int] = ..., container: _Optional[int] = ..., tasks: _Optional[_Mapping[int, int]] = ..., holder: _Optional[str] = ..., died_on: _Optional[bytes] = ..., epoch: _Optional[int] = ..., build: _Optional[int] = ..., admission: _Optional[int] = ..., leaving: bool = ..., term: _Optional[int] = ..., known: _Optional[_Mapping[int, int]] = ..., paused: bool = ..., ending: bool = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("code", "message", "definite")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DEFINITE_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    definite: bool
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., definite: bool = ...) -> None: ...

class Address(_message.Message):
    __slots__ = ("container", "host", "data_port", "control_port", "incarnation")
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    DATA_PORT_FIELD_NUMBER: _ClassVar[int]
    CONTROL_PORT_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    container: int
    host: str
    data_port: int
    control_port: int
    incarnation: int
    def __init__(self, container: _Optional[int] = ..., host: _Optional[str] = ..., data_port: _Optional[int] = ..., control_port: _Optional[int] = ..., incarnation: _Optional[int] = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("epoch", "packing", "addresses", "tasks", "active", "term", "shape", "build", "keys", "master", "version", "base", "gone")
    class TasksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    class KeysEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PACKING_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    MASTER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    packing: bytes
    addresses: _containers.RepeatedCompositeFieldContainer[Address]
    tasks: _containers.ScalarMap[int, int]
    active: bool
    term: int
    shape: bytes
    build: int
    keys: _containers.ScalarMap[str, str]
    master: str
    version: int
    base: int
    gone: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, epoch: _Optional[int] = ..., packing: _Optional[bytes] = ..., addresses: _Optional[_Iterable[_Union[Address, _Mapping]]] = ..., tasks: _Optional[_Mapping[int, int]] = ..., active: bool = ..., term: _Optional[int] = ..., shape: _Optional[bytes] = ..., build: _Optional[int] = ..., keys: _Optional[_Mapping[str, str]] = ..., master: _Optional[str] = ..., version: _Optional[int] = ..., base: _Optional[int] = ..., gone: _Optional[_Iterable[int]] = ...) -> None: ...

class Tasks(_message.Message):
    __slots__ = ("lives", "again")
    class LivesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    LIVES_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    lives: _containers.ScalarMap[int, int]
    again: bool
    def __init__(self, lives: _Optional[_Mapping[int, int]] = ..., again: bool = ...) -> None: ...

class TaskReport(_message.Message):
    __slots__ = ("task", "life", "state", "round", "seen", "given_up", "version", "failure", "error", "open", "waiting", "epoch", "hold", "error_tree", "broken", "snapshots", "raised", "inspected")
    class BrokenEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: str
        def __init__(self, key: _Optional[int] = ..., value: _Optional[str] = ...) -> None: ...
    TASK_FIELD_NUMBER: _ClassVar[int]
    LIFE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    GIVEN_UP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    ERROR_TREE_FIELD_NUMBER: _ClassVar[int]
    BROKEN_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    RAISED_FIELD_NUMBER: _ClassVar[int]
    INSPECTED_FIELD_NUMBER: _ClassVar[int]
    task: int
    life: int
    state: TaskState
    round: int
    seen: int
    given_up: int
    version: int
    failure: str
    error: str
    open: int
    waiting: int
    epoch: int
    hold: int
    error_tree: int
    broken: _containers.ScalarMap[int, str]
    snapshots: SnapshotReport
    raised: _containers.RepeatedCompositeFieldContainer[RaisedGroup]
    inspected: Inspected
    def __init__(self, task: _Optional[int] = ..., life: _Optional[int] = ..., state: _Optional[_Union[TaskState, str]] = ..., round: _Optional[int] = ..., seen: _Optional[int] = ..., given_up: _Optional[int] = ..., version: _Optional[int] = ..., failure: _Optional[str] = ..., error: _Optional[str] = ..., open: _Optional[int] = ..., waiting: _Optional[int] = ..., epoch: _Optional[int] = ..., hold: _Optional[int] = ..., error_tree: _Optional[int] = ..., broken: _Optional[_Mapping[int, str]] = ..., snapshots: _Optional[_Union[SnapshotReport, _Mapping]] = ..., raised: _Optional[_Iterable[_Union[RaisedGroup, _Mapping]]] = ..., inspected: _Optional[_Union[Inspected, _Mapping]] = ...) -> None: ...

class RaisedGroup(_message.Message):
    __slots__ = ("digest", "count", "type", "message", "stack", "row")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STACK_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    digest: int
    count: int
    type: str
    message: str
    stack: str
    row: str
    def __init__(self, digest: _Optional[int] = ..., count: _Optional[int] = ..., type: _Optional[str] = ..., message: _Optional[str] = ..., stack: _Optional[str] = ..., row: _Optional[str] = ...) -> None: ...

class SnapshotReport(_message.Message):
    __slots__ = ("timeline", "moved", "number", "files", "aligned", "aside", "broken", "lost", "gives_up", "why", "bound", "blamed", "died_on", "waits", "too_much", "unwritten", "oldest", "kept", "unreadable", "owes")
    TIMELINE_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    ALIGNED_FIELD_NUMBER: _ClassVar[int]
    ASIDE_FIELD_NUMBER: _ClassVar[int]
    BROKEN_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    GIVES_UP_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    BLAMED_FIELD_NUMBER: _ClassVar[int]
    DIED_ON_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    TOO_MUCH_FIELD_NUMBER: _ClassVar[int]
    UNWRITTEN_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    UNREADABLE_FIELD_NUMBER: _ClassVar[int]
    OWES_FIELD_NUMBER: _ClassVar[int]
    timeline: int
    moved: int
    number: int
    files: _containers.RepeatedCompositeFieldContainer[StateFile]
    aligned: float
    aside: int
    broken: str
    lost: bool
    gives_up: int
    why: str
    bound: bool
    blamed: int
    died_on: int
    waits: str
    too_much: bool
    unwritten: int
    oldest: int
    kept: str
    unreadable: str
    owes: bool
    def __init__(self, timeline: _Optional[int] = ..., moved: _Optional[int] = ..., number: _Optional[int] = ..., files: _Optional[_Iterable[_Union[StateFile, _Mapping]]] = ..., aligned: _Optional[float] = ..., aside: _Optional[int] = ..., broken: _Optional[str] = ..., lost: bool = ..., gives_up: _Optional[int] = ..., why: _Optional[str] = ..., bound: bool = ..., blamed: _Optional[int] = ..., died_on: _Optional[int] = ..., waits: _Optional[str] = ..., too_much: bool = ..., unwritten: _Optional[int] = ..., oldest: _Optional[int] = ..., kept: _Optional[str] = ..., unreadable: _Optional[str] = ..., owes: bool = ...) -> None: ...

class Blamed(_message.Message):
    __slots__ = ("component", "row", "times")
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    component: str
    row: int
    times: int
    def __init__(self, component: _Optional[str] = ..., row: _Optional[int] = ..., times: _Optional[int] = ...) -> None: ...

class StateFile(_message.Message):
    __slots__ = ("name", "checksum", "bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    checksum: int
    bytes: int
    def __init__(self, name: _Optional[str] = ..., checksum: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class Order(_message.Message):
    __slots__ = ("kind", "term", "version", "target", "seconds", "components", "leaving", "settle", "containers", "snapshots", "inspect")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    COMPONENTS_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    SETTLE_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    INSPECT_FIELD_NUMBER: _ClassVar[int]
    kind: OrderKind
    term: int
    version: int
    target: str
    seconds: int
    components: _containers.RepeatedScalarFieldContainer[str]
    leaving: _containers.RepeatedScalarFieldContainer[int]
    settle: bool
    containers: _containers.RepeatedScalarFieldContainer[int]
    snapshots: SnapshotOrder
    inspect: Inspect
    def __init__(self, kind: _Optional[_Union[OrderKind, str]] = ..., term: _Optional[int] = ..., version: _Optional[int] = ..., target: _Optional[str] = ..., seconds: _Optional[int] = ..., components: _Optional[_Iterable[str]] = ..., leaving: _Optional[_Iterable[int]] = ..., settle: bool = ..., containers: _Optional[_Iterable[int]] = ..., snapshots: _Optional[_Union[SnapshotOrder, _Mapping]] = ..., inspect: _Optional[_Union[Inspect, _Mapping]] = ...) -> None: ...

class Inspect(_message.Message):
    __slots__ = ("id", "what", "seconds")
    ID_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    id: str
    what: str
    seconds: int
    def __init__(self, id: _Optional[str] = ..., what: _Optional[str] = ..., seconds: _Optional[int] = ...) -> None: ...

class Inspected(_message.Message):
    __slots__ = ("id", "document", "refused")
    ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    id: str
    document: bytes
    refused: str
    def __init__(self, id: _Optional[str] = ..., document: _Optional[bytes] = ..., refused: _Optional[str] = ...) -> None: ...

class SnapshotOrder(_message.Message):
    __slots__ = ("timeline", "restore", "lives", "begun", "committed", "abandoned", "managers", "final", "blamed")
    class LivesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    class ManagersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    TIMELINE_FIELD_NUMBER: _ClassVar[int]
    RESTORE_FIELD_NUMBER: _ClassVar[int]
    LIVES_FIELD_NUMBER: _ClassVar[int]
    BEGUN_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    ABANDONED_FIELD_NUMBER: _ClassVar[int]
    MANAGERS_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    BLAMED_FIELD_NUMBER: _ClassVar[int]
    timeline: int
    restore: int
    lives: _containers.ScalarMap[int, int]
    begun: int
    committed: int
    abandoned: int
    managers: _containers.ScalarMap[int, int]
    final: int
    blamed: _containers.RepeatedCompositeFieldContainer[Blamed]
    def __init__(self, timeline: _Optional[int] = ..., restore: _Optional[int] = ..., lives: _Optional[_Mapping[int, int]] = ..., begun: _Optional[int] = ..., committed: _Optional[int] = ..., abandoned: _Optional[int] = ..., managers: _Optional[_Mapping[int, int]] = ..., final: _Optional[int] = ..., blamed: _Optional[_Iterable[_Union[Blamed, _Mapping]]] = ...) -> None: ...

class Registration(_message.Message):
    __slots__ = ("topology", "digest", "container", "holder", "address", "tasks")
    class TasksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    topology: str
    digest: str
    container: int
    holder: str
    address: Address
    tasks: _containers.ScalarMap[int, int]
    def __init__(self, topology: _Optional[str] = ..., digest: _Optional[str] = ..., container: _Optional[int] = ..., holder: _Optional[str] = ..., address: _Optional[_Union[Address, _Mapping]] = ..., tasks: _Optional[_Mapping[int, int]] = ...) -> None: ...

class Admission(_message.Message):
    __slots__ = ("admission", "term")
    ADMISSION_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    admission: int
    term: int
    def __init__(self, admission: _Optional[int] = ..., term: _Optional[int] = ...) -> None: ...

class Ask(_message.Message):
    __slots__ = ("verb", "token", "arguments", "body")
    class ArgumentsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERB_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    verb: str
    token: str
    arguments: _containers.ScalarMap[str, str]
    body: bytes
    def __init__(self, verb: _Optional[str] = ..., token: _Optional[str] = ..., arguments: _Optional[_Mapping[str, str]] = ..., body: _Optional[bytes] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("ok", "code", "message", "body")
    OK_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    code: str
    message: str
    body: bytes
    def __init__(self, ok: bool = ..., code: _Optional[str] = ..., message: _Optional[str] = ..., body: _Optional[bytes] = ...) -> None: ...
