from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Tensor(_message.Message):
    __slots__ = ("dtype", "shape", "content", "strings")
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    dtype: int
    shape: _containers.RepeatedScalarFieldContainer[int]
    content: bytes
    strings: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, dtype: _Optional[int] = ..., shape: _Optional[_Iterable[int]] = ..., content: _Optional[bytes] = ..., strings: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("code", "message", "op", "op_type", "site", "task")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    OP_TYPE_FIELD_NUMBER: _ClassVar[int]
    SITE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    op: str
    op_type: str
    site: _containers.RepeatedScalarFieldContainer[str]
    task: str
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., op: _Optional[str] = ..., op_type: _Optional[str] = ..., site: _Optional[_Iterable[str]] = ..., task: _Optional[str] = ...) -> None: ...

class CreateSessionRequest(_message.Message):
    __slots__ = ("version", "graph_def", "config")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    GRAPH_DEF_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    version: int
    graph_def: bytes
    config: bytes
    def __init__(self, version: _Optional[int] = ..., graph_def: _Optional[bytes] = ..., config: _Optional[bytes] = ...) -> None: ...

class CreateSessionReply(_message.Message):
    __slots__ = ("session", "graph_version")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    GRAPH_VERSION_FIELD_NUMBER: _ClassVar[int]
    session: int
    graph_version: int
    def __init__(self, session: _Optional[int] = ..., graph_version: _Optional[int] = ...) -> None: ...

class ExtendSessionRequest(_message.Message):
    __slots__ = ("session", "graph_def", "graph_version")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    GRAPH_DEF_FIELD_NUMBER: _ClassVar[int]
    GRAPH_VERSION_FIELD_NUMBER: _ClassVar[int]
    session: int
    graph_def: bytes
    graph_version: int
    def __init__(self, session: _Optional[int] = ..., graph_def: _Optional[bytes] = ..., graph_version: _Optional[int] = ...) -> None: ...

class ExtendSessionReply(_message.Message):
    __slots__ = ("graph_version",)
    GRAPH_VERSION_FIELD_NUMBER: _ClassVar[int]
    graph_version: int
    def __init__(self, graph_version: _Optional[int] = ...) -> None: ...

class Feed(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: Tensor
    def __init__(self, name: _Optional[str] = ..., value: _Optional[_Union[Tensor, _Mapping]] = ...) -> None: ...

class RunRequest(_message.Message):
    __slots__ = ("session", "feeds", "fetches", "targets", "timeout_ms", "trace", "partial_run")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    FETCHES_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_RUN_FIELD_NUMBER: _ClassVar[int]
    session: int
    feeds: _containers.RepeatedCompositeFieldContainer[Feed]
    fetches: _containers.RepeatedScalarFieldContainer[str]
    targets: _containers.RepeatedScalarFieldContainer[str]
    timeout_ms: int
    trace: bool
    partial_run: int
    def __init__(self, session: _Optional[int] = ..., feeds: _Optional[_Iterable[_Union[Feed, _Mapping]]] = ..., fetches: _Optional[_Iterable[str]] = ..., targets: _Optional[_Iterable[str]] = ..., timeout_ms: _Optional[int] = ..., trace: bool = ..., partial_run: _Optional[int] = ...) -> None: ...

class RunReply(_message.Message):
    __slots__ = ("values", "run_metadata")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    RUN_METADATA_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[Tensor]
    run_metadata: bytes
    def __init__(self, values: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ..., run_metadata: _Optional[bytes] = ...) -> None: ...

class MakeCallableRequest(_message.Message):
    __slots__ = ("session", "feeds", "fetches", "targets")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    FETCHES_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    session: int
    feeds: _containers.RepeatedScalarFieldContainer[str]
    fetches: _containers.RepeatedScalarFieldContainer[str]
    targets: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session: _Optional[int] = ..., feeds: _Optional[_Iterable[str]] = ..., fetches: _Optional[_Iterable[str]] = ..., targets: _Optional[_Iterable[str]] = ...) -> None: ...

class MakeCallableReply(_message.Message):
    __slots__ = ("callable",)
    CALLABLE_FIELD_NUMBER: _ClassVar[int]
    callable: int
    def __init__(self, callable: _Optional[int] = ...) -> None: ...

class RunCallableRequest(_message.Message):
    __slots__ = ("session", "callable", "feeds", "timeout_ms", "trace")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    CALLABLE_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    session: int
    callable: int
    feeds: _containers.RepeatedCompositeFieldContainer[Tensor]
    timeout_ms: int
    trace: bool
    def __init__(self, session: _Optional[int] = ..., callable: _Optional[int] = ..., feeds: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ..., timeout_ms: _Optional[int] = ..., trace: bool = ...) -> None: ...

class ReleaseCallableRequest(_message.Message):
    __slots__ = ("session", "callable")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    CALLABLE_FIELD_NUMBER: _ClassVar[int]
    session: int
    callable: int
    def __init__(self, session: _Optional[int] = ..., callable: _Optional[int] = ...) -> None: ...

class PartitionGraphsRequest(_message.Message):
    __slots__ = ("session", "callable")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    CALLABLE_FIELD_NUMBER: _ClassVar[int]
    session: int
    callable: int
    def __init__(self, session: _Optional[int] = ..., callable: _Optional[int] = ...) -> None: ...

class PartitionGraphsReply(_message.Message):
    __slots__ = ("graph_defs",)
    GRAPH_DEFS_FIELD_NUMBER: _ClassVar[int]
    graph_defs: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, graph_defs: _Optional[_Iterable[bytes]] = ...) -> None: ...

class PartialRunSetupRequest(_message.Message):
    __slots__ = ("session", "feeds", "fetches", "targets")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    FETCHES_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    session: int
    feeds: _containers.RepeatedScalarFieldContainer[str]
    fetches: _containers.RepeatedScalarFieldContainer[str]
    targets: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session: _Optional[int] = ..., feeds: _Optional[_Iterable[str]] = ..., fetches: _Optional[_Iterable[str]] = ..., targets: _Optional[_Iterable[str]] = ...) -> None: ...

class PartialRunSetupReply(_message.Message):
    __slots__ = ("partial_run",)
    PARTIAL_RUN_FIELD_NUMBER: _ClassVar[int]
    partial_run: int
    def __init__(self, partial_run: _Optional[int] = ...) -> None: ...

class SessionRequest(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: int
    def __init__(self, session: _Optional[int] = ...) -> None: ...

class ResetRequest(_message.Message):
    __slots__ = ("containers",)
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    containers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, containers: _Optional[_Iterable[str]] = ...) -> None: ...

class Device(_message.Message):
    __slots__ = ("name", "type", "memory", "incarnation")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    memory: int
    incarnation: int
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., memory: _Optional[int] = ..., incarnation: _Optional[int] = ...) -> None: ...

class ListDevicesReply(_message.Message):
    __slots__ = ("devices",)
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedCompositeFieldContainer[Device]
    def __init__(self, devices: _Optional[_Iterable[_Union[Device, _Mapping]]] = ...) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: str
    def __init__(self, json: _Optional[str] = ...) -> None: ...

class Empty(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
