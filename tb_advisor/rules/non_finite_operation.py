"""An operation made NaN or infinite values, as a dump of TensorFlow's debugger shows.

## Why it matters

One such value reaches the loss and, through its gradients, every weight. The dump names the operation that made the first of them, the
layer it belongs to and the line of code it came from: that is where the cause lies, and not where the loss broke.

## How it is found

In dumps of `tf.debugging.experimental.enable_dump_debug_info` that lie in the log directory, with values of tensors (any
`tensor_debug_mode` but `NO_TENSOR` and `SHAPE`). The first operation whose output held NaN is named; an operation that made an infinite
value before it is named first, unless it is a constant or a selection, which hold infinite values on purpose in masks, or takes one of
these. Of the frames of its stack the innermost one outside of TensorFlow, Keras and the standard library is shown. Values that are only
infinite are an information, for a mask may be made in other ways; NaN is a warning. The first 64 MiB of each file of a dump are read.

The order of the fixes follows the operation: bad inputs where the data came in so, logarithms, roots and divisions away from zero, and for
everything else the size of the steps.

## When it is wrong

A dump that keeps the last 1,000 executions only (`circular_buffer_size`) may have lost the first ones. NaN that is computed on purpose
and masked out afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity, TextExhibit
from tb_advisor.evidence.debugger import cause_of, lines_about, sentence_about
from tb_advisor.logdir.debug_events import BadOperation, DebuggerDump
from tb_advisor.message import Missing
from tb_advisor.rule import rule

_FIXES = (
    "clean-rows",
    "check-inputs",
    "safe-log",
    "stable-loss",
    "lower-learning-rate",
    "clip-gradients",
    "loss-scaling",
    "find-first-nan",
)
_FIRST = {
    "input": ("clean-rows", "check-inputs"),
    "range": ("safe-log", "stable-loss"),
    "size": ("lower-learning-rate", "clip-gradients", "loss-scaling"),
}


@rule(category="stability", fixes=_FIXES)
def non_finite_operation(debugger_dump: tuple[tuple[str, DebuggerDump], ...]) -> Iterator[Diagnosis]:
    """One diagnosis a dump."""
    if not debugger_dump:
        raise Missing("no dump of TensorFlow's debugger (looked for tfdbg_events.*.metadata)")
    if not any(dump.values for _, dump in debugger_dump):
        raise Missing('the dump of the debugger holds no values of tensors (tensor_debug_mode="FULL_HEALTH")')
    for directory, dump in debugger_dump:
        if not dump.bad:
            continue
        yield Diagnosis(
            sentence_about(dump.bad[0]),
            severity=Severity.WARNING if any("NaN" in operation.value for operation in dump.bad) else Severity.INFO,
            confidence=Confidence.HIGH,
            exhibits=(exhibit_of(directory, dump),),
            fixes=in_order_of_cause(_FIXES, dump.bad[0]),
        )


def exhibit_of(directory: str, dump: DebuggerDump) -> TextExhibit:
    """The operations that broke. The Debugger V2 tab shows a dump only where it lies in the log directory itself."""
    return TextExhibit(
        tuple(line for operation in dump.bad for line in lines_about(operation)), tab="debugger-v2" if directory == "." else ""
    )


def in_order_of_cause(fixes: tuple[str, ...], operation: BadOperation) -> tuple[str, ...]:
    """The fixes, those for what broke this operation first; without the advice to record a dump."""
    first = [name for name in _FIRST[cause_of(operation)] if name in fixes]
    return (*first, *(name for name in fixes if name not in first and name != "debugger-dump"))
