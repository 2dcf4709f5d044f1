"""The model computes in float64.

## Why it matters

On GPUs for graphics and inference float64 runs at 1/32 to 1/64 of the speed of float32, on TPUs not at all, and everywhere it takes twice
the memory and bandwidth. Training gains nothing from it: the noise of a batch is larger than the rounding of float32. It usually comes in
by accident, with inputs that NumPy made.

## How it is found

In the Keras model config (the layers' dtype) or the graph of the log (the type of matrix products and convolutions, without those of
gradients and optimizer). At least `min_share` (50%) of the layers with weights compute in float64: single casts, as metrics make them,
stay silent.

## When it is wrong

Solvers, Gaussian processes and other models whose matrices are nearly singular need float64.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity, TableExhibit
from tb_advisor.evidence.layers import COLUMNS, WEIGHTED, Model
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule


@rule(category="model", fixes=("float32-inputs",))
def double_precision(model: Model, *, min_share: float = 0.5) -> Iterator[Diagnosis]:
    """One diagnosis for the model."""
    typed = [at for at, layer in enumerate(model.layers) if layer.dtype and layer.role in WEIGHTED | {"recurrent", "embedding"}]
    if not typed:
        raise Missing("no types of numbers of the layers in the log")
    double = [at for at in typed if model.layers[at].dtype == "float64"]
    if not double or len(double) < min_share * len(typed):
        return
    yield Diagnosis(
        Message(
            "{count} of {total} layers compute in float64, {first} the first.",
            count=len(double),
            total=len(typed),
            first=model.layers[double[0]].name,
        ),
        severity=Severity.WARNING,
        confidence=Confidence.HIGH,
        exhibits=(TableExhibit(Message("Layers in float64"), COLUMNS, model.rows(double[:20]), tab="graphs", run=model.run),),
    )
