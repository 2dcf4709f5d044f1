"""The embeddings of the Projector lie in one point, or along one or two directions.

## Why it matters

Vectors that are all alike, or that differ in one direction only, tell nothing apart: nearest neighbours are chance, and what is built on
them cannot work. In contrastive and metric learning this collapse is the usual failure, and the loss may look well all the while.

## How it is found

In the tensors that `projector_config.pbtxt` names, where they are files below it (TSV, or raw float32 with a shape); up to 4,096 vectors of
the first 32 MiB of each are looked at. There must be at least `min_vectors` (50) with at least `min_width` (8) dimensions.

- One point: the distance from the mean, taken as a root mean square, is below `max_spread` (1%) of the length of the mean: the cosine of
  any two vectors is then above 0.999.
- Few directions: the participation ratio of the variances along the principal directions, (Σλ)²/Σλ², which is d where all d are equal, is
  below `max_directions` (2): nearly all of the variance lies along one or two of the directions.

## When it is wrong

Data that has one or two degrees of freedom by itself, such as positions on a line, and dimensions of very different units, of which one
outweighs all others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity, TableExhibit
from tb_advisor.evidence.embeddings import Embedding
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule

_COLUMNS = ("embedding", "vectors", "dimensions", "spread", "directions")


@rule(category="model", fixes=("spread-embeddings", "lower-learning-rate", "check-labels"))
def embedding_collapse(
    embeddings: tuple[Embedding, ...],
    *,
    min_vectors: int = 50,
    min_width: int = 8,
    max_spread: float = 0.01,
    max_directions: float = 2.0,
) -> Iterator[Diagnosis]:
    """One diagnosis a tensor."""
    enough = [each for each in embeddings if len(each.vectors) >= min_vectors and each.vectors.shape[1] >= min_width]
    if not enough:
        raise Missing("no embedding with {count} vectors of {width} dimensions", count=min_vectors, width=min_width)
    for embedding in enough:
        spread, directions = _spread_and_directions(embedding)
        count, width = embedding.vectors.shape
        if spread < max_spread:
            message = Message(
                "The {count} vectors of {name} are nearly the same: they spread by {spread:%} of their length.",
                count=count,
                name=embedding.name,
                spread=spread,
            )
        elif directions < max_directions:
            message = Message(
                "The {count} vectors of {name} differ along {directions} of {width} directions only.",
                count=count,
                name=embedding.name,
                directions=directions,
                width=width,
            )
        else:
            continue
        row = (embedding.name, count, width, f"{spread:.2%}", round(directions, 1))
        yield Diagnosis(
            message,
            severity=Severity.INFO,
            confidence=Confidence.HIGH if spread < max_spread else Confidence.MEDIUM,
            exhibits=(TableExhibit(Message("Embeddings"), _COLUMNS, (row,), tab="projector", run=embedding.directory),),
        )


def _spread_and_directions(embedding: Embedding) -> tuple[float, float]:
    """The spread of the vectors against the length of their mean, and how many directions their variance has."""
    mean = embedding.vectors.mean(axis=0)
    away = embedding.vectors - mean
    scale = float(np.abs(away).max())
    length = float(np.linalg.norm(mean))
    if scale == 0:
        return 0.0, 0.0
    away = away / scale
    spread = scale * float(np.sqrt((away**2).sum(axis=1).mean()))
    gram = away.T @ away if away.shape[1] <= away.shape[0] else away @ away.T
    return spread / length if length > 0 else np.inf, float(np.trace(gram) ** 2 / (gram**2).sum())
