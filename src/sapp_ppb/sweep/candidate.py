"""Candidate: a problem of a sweep, how it came about, and what it may be compared with."""

import copy
import json
from collections.abc import Hashable
from dataclasses import dataclass

from sapp_ppb.costs import Model
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.writers.plan_file import problem_object

# What a sweep chooses; candidates that differ in nothing else answer the same question.
_CHOSEN = (
    "stages",
    "interleave",
    "micro_batches",
    "schedule",
    "micro_batch_group",
    "sequence_chunks",
    "p2p_ms",  # it grows with the micro-batch size
    "estimate",  # what is scaled to another size is one
)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """
    A problem, and the training that it is a part of.

    Attributes
    ----------
    problem
        One pipeline: its model at this micro-batch size, S, V, M and limits.
    micro_batch_size
        Samples of a micro-batch.
    tensor_parallel, data_parallel
        Devices of a stage, and pipelines side by side.
    base
        The model before its costs were scaled to the micro-batch size; None for
        the problem's own.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=4, micro_batches=16)
    >>> candidate = Candidate(problem=problem, micro_batch_size=2, data_parallel=8)
    >>> candidate.devices, candidate.global_batch  # 4 stages x 1 x 8; 16 x 2 x 8
    (32, 256)
    >>> candidate.text
    '4 stages, 16 micro-batches, 1f1b, micro-batch size 2'
    """

    problem: Problem
    micro_batch_size: int = 1
    tensor_parallel: int = 1
    data_parallel: int = 1
    base: Model | None = None

    @property
    def devices(self) -> int:
        """Devices of all pipelines."""
        return self.problem.stages * self.tensor_parallel * self.data_parallel

    @property
    def global_batch(self) -> int:
        """Samples of one step."""
        return self.problem.micro_batches * self.micro_batch_size * self.data_parallel

    @property
    def text(self) -> str:
        """What was chosen, on one line."""
        problem = self.problem
        chunks = f" x {problem.interleave} chunks" if problem.interleave > 1 else ""
        size = f", micro-batch size {self.micro_batch_size}" if self.micro_batch_size > 1 else ""
        tensor = f", tensor parallel {self.tensor_parallel}" if self.tensor_parallel > 1 else ""
        return (
            f"{problem.stages} stages{chunks}, {problem.micro_batches} micro-batches, "
            f"{problem.schedule_name.value}{size}{tensor}"
        )

    @property
    def question(self) -> Hashable:
        """What candidates must have in common for the faster one to be the better: the limit too."""
        given = {key: value for key, value in problem_object(self.problem).items() if key not in _CHOSEN}
        return (self.devices, self.global_batch, self.base or self.problem.model, json.dumps(given))

    @property
    def scale(self) -> Hashable:
        """What candidates must have in common to stand in one picture of time against memory."""
        return (self.devices, self.global_batch, self.base or self.problem.model)

    @property
    def light(self) -> "Candidate":
        """
        The same without the order of its ops, which is made anew where it is needed.

        An order takes megabytes, and thousands of candidates are kept and sent to workers.
        That of ``zb-auto`` stays: it need not be the one that would be made.
        """
        problem = copy.copy(self.problem)
        if problem.schedule_name is not ScheduleName.ZB_AUTO:
            for made in ("order", "cell_at"):
                vars(problem).pop(made, None)
        return Candidate(
            problem=problem,
            micro_batch_size=self.micro_batch_size,
            tensor_parallel=self.tensor_parallel,
            data_parallel=self.data_parallel,
            base=self.base,
        )
