"""The dumps of TensorFlow's debugger that lie with a job: which operation was the first to break, and whose line of code made it."""

from __future__ import annotations

import re

from tb_advisor.logdir.attachments import DUMP
from tb_advisor.logdir.debug_events import BadOperation, DebuggerDump, Frame, read_dump
from tb_advisor.logdir.jobs import Job
from tb_advisor.message import Message

_LIBRARY = re.compile(r"[\\/](site-packages|dist-packages|tensorflow[\\/]python|(tf_)?keras[\\/]src|lib[\\/]python\d[\d.]*)[\\/]|^<")
_LEFT_OUT = "gradient_tape"
# What makes values out of their range: the operation's inputs, not their size, are at fault.
_OUT_OF_RANGE = frozenset(
    "Log Log1p Sqrt Rsqrt Div RealDiv Reciprocal Inv Pow Xdivy Xlogy Xlog1py Acos Asin Atanh Acosh Digamma Lgamma".split()
)
_INPUTS = frozenset("IteratorGetNext IteratorGetNextSync IteratorGetNextAsOptional OptionalGetValue InfeedDequeueTuple Placeholder".split())


def debugger_dump(job: Job) -> tuple[tuple[str, DebuggerDump], ...]:
    """(directory, dump) pairs of the debugger's dumps with the job, in the order of their names; empty where there is none."""
    return tuple((attached.directory, read_dump(attached.files)) for attached in job.attachments if attached.kind == DUMP)


def layer_of(operation: BadOperation) -> str:
    """The layer in which the operation ran, as its name says; empty where it names none: ``model/dense`` for ``model/dense/MatMul``."""
    return "/".join(part for part in operation.name.split("/")[:-1] if part != _LEFT_OUT)


def own_frames(operation: BadOperation) -> tuple[Frame, ...]:
    """The frames of its stack in the user's own code, the outermost first."""
    return tuple(frame for frame in operation.stack if not _LIBRARY.search(frame.file))


def place_of(operation: BadOperation) -> Frame | None:
    """Where in the user's code it was made; the innermost line of a library where none is the user's."""
    frames = own_frames(operation)
    return frames[-1] if frames else operation.stack[-1] if operation.stack else None


def cause_of(operation: BadOperation) -> str:
    """Why it may have broken: ``input`` where the data came in so, ``range`` where it is not defined for its input, else ``size``."""
    kind = operation.type.removesuffix("Grad").removesuffix("V2")
    return "input" if operation.type in _INPUTS else "range" if kind in _OUT_OF_RANGE else "size"


def sentence_about(operation: BadOperation) -> Message:
    """Where the first bad value came from."""
    sentence = Message(
        "In the debugger's dump the first {bad_value} came out of {operation}", bad_value=operation.value, operation=operation.type or "?"
    )
    layer, place = layer_of(operation), place_of(operation)
    if layer:
        sentence += Message(" in layer {layer}", layer=layer)
    if place:
        sentence += Message(", made by {file}:{line:d}", file=re.split(r"[\\/]", place.file)[-1], line=place.line)
    return sentence + Message(".")


def lines_about(operation: BadOperation) -> tuple[str, ...]:
    """What there is to say of it, a line each."""
    lines = [f"first {operation.value}: {operation.type} {operation.name}".rstrip()]
    if layer_of(operation):
        lines.append(f"  layer: {layer_of(operation)}")
    if operation.inputs:
        lines.append(f"  inputs: {', '.join(operation.inputs[:8])}")
    lines.append(f"  run {operation.execution} of this operation in the dump")
    frames = own_frames(operation)
    for frame in frames[-8:] or operation.stack[-3:]:
        lines.append(f"  {frame.file}:{frame.line} in {frame.function}: {frame.code}".rstrip(": "))
    return tuple(lines)
