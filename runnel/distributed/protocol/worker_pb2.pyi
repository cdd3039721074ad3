from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Failure(_message.Message):
    __slots__ = ("code", "message", "op", "op_type", "site", "task", "follows")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    OP_TYPE_FIELD_NUMBER: _ClassVar[int]
    SITE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    FOLLOWS_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    op: str
    op_type: str
    site: _containers.RepeatedScalarFieldContainer[str]
    task: str
    follows: bool
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., op: _Optional[str] = ..., op_type: _Optional[str] = ..., site: _Optional[_Iterable[str]] = ..., task: _Optional[str] = ..., follows: bool = ...) -> None: ...

class Device(_message.Message):
    __slots__ = ("name", "type", "memory", "hardware")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    HARDWARE_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    memory: int
    hardware: str
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., memory: _Optional[int] = ..., hardware: _Optional[str] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("version", "task", "incarnation", "host", "local_path", "nonce", "proof", "devices", "refused")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    LOCAL_PATH_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    version: int
    task: str
    incarnation: int
    host: str
    local_path: str
    nonce: bytes
    proof: bytes
    devices: _containers.RepeatedCompositeFieldContainer[Device]
    refused: str
    def __init__(self, version: _Optional[int] = ..., task: _Optional[str] = ..., incarnation: _Optional[int] = ..., host: _Optional[str] = ..., local_path: _Optional[str] = ..., nonce: _Optional[bytes] = ..., proof: _Optional[bytes] = ..., devices: _Optional[_Iterable[_Union[Device, _Mapping]]] = ..., refused: _Optional[str] = ...) -> None: ...

class CreateSession(_message.Message):
    __slots__ = ("session", "isolated")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ISOLATED_FIELD_NUMBER: _ClassVar[int]
    session: int
    isolated: bool
    def __init__(self, session: _Optional[int] = ..., isolated: bool = ...) -> None: ...

class Register(_message.Message):
    __slots__ = ("session", "part", "graph_def", "fetches", "feeds", "jit", "optimizer", "raises", "precision", "peers", "tensor_float_32")
    class PeersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    GRAPH_DEF_FIELD_NUMBER: _ClassVar[int]
    FETCHES_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    JIT_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    RAISES_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    PEERS_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FLOAT_32_FIELD_NUMBER: _ClassVar[int]
    session: int
    part: int
    graph_def: bytes
    fetches: _containers.RepeatedScalarFieldContainer[str]
    feeds: _containers.RepeatedScalarFieldContainer[str]
    jit: str
    optimizer: bool
    raises: bool
    precision: int
    peers: _containers.ScalarMap[str, str]
    tensor_float_32: bool
    def __init__(self, session: _Optional[int] = ..., part: _Optional[int] = ..., graph_def: _Optional[bytes] = ..., fetches: _Optional[_Iterable[str]] = ..., feeds: _Optional[_Iterable[str]] = ..., jit: _Optional[str] = ..., optimizer: bool = ..., raises: bool = ..., precision: _Optional[int] = ..., peers: _Optional[_Mapping[str, str]] = ..., tensor_float_32: bool = ...) -> None: ...

class Forget(_message.Message):
    __slots__ = ("session", "parts")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    session: int
    parts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, session: _Optional[int] = ..., parts: _Optional[_Iterable[int]] = ...) -> None: ...

class Abort(_message.Message):
    __slots__ = ("session", "step", "failure")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    session: int
    step: int
    failure: Failure
    def __init__(self, session: _Optional[int] = ..., step: _Optional[int] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class CloseSession(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: int
    def __init__(self, session: _Optional[int] = ...) -> None: ...

class Question(_message.Message):
    __slots__ = ("number", "about", "names")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    number: int
    about: str
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, number: _Optional[int] = ..., about: _Optional[str] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("number", "failure", "content")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    number: int
    failure: Failure
    content: bytes
    def __init__(self, number: _Optional[int] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., content: _Optional[bytes] = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ("sent_ns", "answers_ns", "received_ns")
    SENT_NS_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_NS_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_NS_FIELD_NUMBER: _ClassVar[int]
    sent_ns: int
    answers_ns: int
    received_ns: int
    def __init__(self, sent_ns: _Optional[int] = ..., answers_ns: _Optional[int] = ..., received_ns: _Optional[int] = ...) -> None: ...

class Envelope(_message.Message):
    __slots__ = ("hello", "create_session", "register", "abort", "close_session", "question", "answer", "ping", "forget")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    CREATE_SESSION_FIELD_NUMBER: _ClassVar[int]
    REGISTER_FIELD_NUMBER: _ClassVar[int]
    ABORT_FIELD_NUMBER: _ClassVar[int]
    CLOSE_SESSION_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    FORGET_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    create_session: CreateSession
    register: Register
    abort: Abort
    close_session: CloseSession
    question: Question
    answer: Answer
    ping: Ping
    forget: Forget
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., create_session: _Optional[_Union[CreateSession, _Mapping]] = ..., register: _Optional[_Union[Register, _Mapping]] = ..., abort: _Optional[_Union[Abort, _Mapping]] = ..., close_session: _Optional[_Union[CloseSession, _Mapping]] = ..., question: _Optional[_Union[Question, _Mapping]] = ..., answer: _Optional[_Union[Answer, _Mapping]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ..., forget: _Optional[_Union[Forget, _Mapping]] = ...) -> None: ...
