"""Checks jobs in processes of its own, where a log directory is large enough to gain from it."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from itertools import accumulate
from queue import Empty, SimpleQueue

from tb_advisor.budget import memory_for
from tb_advisor.check import Checked, check_jobs, lean
from tb_advisor.config import Config
from tb_advisor.logdir.jobs import JobFiles, RunCache
from tb_advisor.process import can_start, questions_and_answers, start
from tb_advisor.rule import Rule
from tb_advisor.rules import all_rules

_BATCH_BYTES = 1 << 20
# Below this, starting the processes (0.3 s) takes longer than what they save.
_WORTHWHILE_BYTES = 64 << 20
# The processes send what they read to this one, which more of them could not keep busy; and the machine may be training.
_MOST_WORKERS = 8

Batch = list[JobFiles]
_How = tuple[list[str], Config, "float | None", int]
_Task = tuple[Batch, "Future[list[Checked] | None]"]


def batches_of(found: Sequence[JobFiles], count: int) -> list[Batch]:
    """Jobs in their order, small ones together, but several batches for each of `count` processes."""
    batches: list[Batch] = []
    least = min(_BATCH_BYTES, sum(files.bytes for files in found) // (4 * count))
    room = 0
    for files in found:
        if room <= 0:
            batches.append([])
            room = least
        batches[-1].append(files)
        room -= files.bytes
    return batches


def workers_for(found: Sequence[JobFiles], budget: int) -> int:
    """How many processes are worth starting for these jobs; 1 means none beside this one. No more than may read a job each
    within the `budget` of memory in bytes.
    """
    if sum(files.bytes for files in found) < _WORTHWHILE_BYTES:
        return 1
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    largest = sorted((memory_for(files, budget) for files in found), reverse=True)
    fitting = sum(together <= budget for together in accumulate(largest))
    return max(1, min(cpus, _MOST_WORKERS, fitting))


def can_check(rules: Sequence[Rule], config: Config) -> bool:
    """Whether processes can be started and know these rules: they know those of `all_rules` only, with the thresholds of `config`."""
    known = config.applied_to(all_rules())
    return can_start() and all(rule in known for rule in rules)


def check_in_processes(
    batches: Sequence[Batch], rules: Sequence[Rule], config: Config, share: float | None, memory_bytes: int, count: int
) -> Iterator[list[Checked] | None]:
    """Check batches of jobs in `count` processes: the results in the order of the batches, None for a batch whose
    process died.

    Each process has a thread that gives it the next batch and waits for the answer. The threads are daemons, so that they
    do not keep a program that ends from ending, as those of a `ThreadPoolExecutor` would.
    """
    results: list[Future[list[Checked] | None]] = [Future() for _ in batches]
    tasks: SimpleQueue[_Task] = SimpleQueue()
    for task in zip(batches, results, strict=True):
        tasks.put(task)
    processes = [process for process in (start("tb_advisor.pool", "work") for _ in range(count)) if process]
    how = ([rule.id for rule in rules], config, share, memory_bytes)
    threads = [threading.Thread(target=_hand_out, args=(tasks, how, process), daemon=True) for process in processes]
    try:
        for thread in threads:
            thread.start()
        for result in results:
            while not result.done() and any(thread.is_alive() for thread in threads):
                wait([result], timeout=1)
            yield result.result() if result.done() else None
    finally:
        for process in processes:
            process.kill()
        for thread in threads:
            thread.join()


def _hand_out(tasks: SimpleQueue[_Task], how: _How, process: subprocess.Popen[bytes]) -> None:
    """Give `process` one task after the other, until there are no more or it dies."""
    assert process.stdin and process.stdout
    with suppress(OSError), process:  # closing a broken pipe fails
        while True:
            try:
                batch, result = tasks.get_nowait()
            except Empty:
                return
            try:
                pickle.dump((batch, *how), process.stdin)
                process.stdin.flush()
                checked = pickle.load(process.stdout)
            except (OSError, EOFError, pickle.PickleError) as error:
                logging.getLogger("tb_advisor").warning("A process of the Advisor died (%r), the others go on", error)
                result.set_result(None)
                return
            result.set_result(checked)


def work() -> None:
    """What a process does: answers each batch of jobs on its standard input with what the rules say of them."""
    questions, answers = questions_and_answers()
    runs = RunCache()
    while True:
        try:
            batch, rule_ids, config, share, memory_bytes = pickle.load(questions)
        except EOFError:
            return
        rules = config.applied_to(rule for rule in all_rules() if rule.id in rule_ids)
        checked = [lean(job) for job in check_jobs(batch, rules, runs, config, share, memory_bytes)]
        runs.forget_all_but(())
        try:
            pickle.dump(checked, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
        except BrokenPipeError:  # who asked is gone
            os._exit(1)
