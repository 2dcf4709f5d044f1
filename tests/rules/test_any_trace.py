"""Whatever a capture holds, a rule says something or that it cannot; it never fails."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_advisor.evidence import Evidence
from tb_advisor.logdir.jobs import Job
from tb_advisor.message import Missing
from tb_advisor.rules import all_rules
from tests.trace_builders import E, capture, xplane_capture

NAMES = (
    "train", "f", "PjitFunction(f)", "EagerLocalExecute: Mul", "KernelAndDeviceFunc::Run", "IteratorGetNextOp::DoCompute", "Iterator::Root",
    "Iterator::Root::Map", "PyFunc:PyFunc", "tf.function-graph_building", "backend_compile_and_load", "cudaStreamSynchronize", "aten::item",
    "Optimizer.step#Adam.step", "ampere_sgemm_128x64_tn", "ncclDevKernel_AllReduce", "MemcpyH2D", "elementwise_kernel", "", "é<b>",
    "MemoryAllocation", "MemoryDeallocation",
)  # fmt: skip
TIMES = st.one_of(st.sampled_from([0.0, 1e-6, 1.0, 10.0, 1e5]), st.floats(0, 1e4))
STATS = st.dictionaries(
    st.sampled_from(
        "step_num tf_function_call tracing_count parallelism threadpool_size bytes_allocated bytes_reserved bytes_available"
        " fragmentation requested_bytes allocator_name tf_op data_type shape index_on_host".split()
    ),
    st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(), st.sampled_from(["traced-xla", "", "é", 10**9, 10**10])),
    max_size=6,
)
EVENTS = st.lists(st.builds(E, st.sampled_from(NAMES), TIMES, TIMES, STATS), max_size=25)
PLANES = st.dictionaries(
    st.sampled_from(["/host:CPU", "/device:GPU:0", "/device:GPU:1", "/device:TPU:0"]),
    st.dictionaries(st.sampled_from(["python", "Stream #1(Compute)", "XLA Ops", "Steps"]), EVENTS, max_size=3),
    min_size=1,
    max_size=3,
)


@given(planes=PLANES, periods=st.lists(TIMES, max_size=8))
@settings(max_examples=150, deadline=None)
def test_no_rule_fails_on_any_capture(planes, periods):
    markers = [E("train", float(start), 1.0, {"step_num": i}) for i, start in enumerate(np.cumsum(periods))]
    host = {**planes.get("/host:CPU", {}), "steps": markers}
    with TemporaryDirectory() as directory:
        evidence = Evidence(Job("exp", {}, (capture(xplane_capture(Path(directory), {**planes, "/host:CPU": host})),)))
        for rule in all_rules():
            with suppress(Missing), np.errstate(all="ignore"):
                if not rule.of_family:
                    for found in rule(*(evidence[name] for name in rule.evidence)):
                        assert found.summary and (found.impact is None or str(found.impact.text))
