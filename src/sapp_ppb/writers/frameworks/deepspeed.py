"""A plan in DeepSpeed's words: boundaries, and a ``PipelineModule`` that takes them."""

from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.targets.deepspeed import DEEPSPEED, INTERVALS, entries_beside, parts_of
from sapp_ppb.targets.recompute_modes import only_type
from sapp_ppb.writers.frameworks.python_edit import with_values

_INTERVAL = "activation_checkpoint_interval"
_CLASS = '''

class PlannedPipelineModule(PipelineModule):
    """PipelineModule that is cut at PARTS."""

    def __init__(self, layers, **settings):
        settings.setdefault("activation_checkpoint_interval", ACTIVATION_CHECKPOINT_INTERVAL)
        super().__init__(layers, num_stages=len(PARTS) - 1, **settings)

    def _partition_layers(self, method="planned"):
        if len(self._layer_specs) != PARTS[-1]:
            raise ValueError(f"PARTS is for {PARTS[-1]} entries, and the list has {len(self._layer_specs)}")
        self.parts = list(PARTS)
        stage = self._topo.get_coord(self.global_rank).pipe
        self._set_bounds(start=self.parts[stage], stop=self.parts[stage + 1])
'''


def deepspeed_text(plan: Plan) -> str:
    """
    Python file for DeepSpeed: the boundaries of the stages and a class that takes them.

    Raises
    ------
    InputError
        If DeepSpeed can not express the plan.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> layers = (layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=1),
    ...           layer_from_times(name="Dec", kind=LayerKind.BODY, count=5, forward_ms=1))
    >>> problem = Problem(model=Model(name="tiny", layers=layers), stages=2, micro_batches=4)
    >>> text = deepspeed_text(plan_from_matrices(problem, {"Dec": {"none": [[2, 3]]}}))
    >>> print("".join(text.splitlines(keepends=True)[2:7]), end="")
    # Stage s holds entries PARTS[s] to PARTS[s + 1] - 1 of the list of layers.
    PARTS = [0, 3, 6]
    ENTRIES_BEFORE = 1  # of them before the transformer layers
    ENTRIES_BEHIND = 0  # and behind them
    ACTIVATION_CHECKPOINT_INTERVAL = 0
    """
    values = _values(plan)
    lines = [
        "from deepspeed.pipe import PipelineModule",
        "",
        "# Stage s holds entries PARTS[s] to PARTS[s + 1] - 1 of the list of layers.",
        f"PARTS = {values['parts']}",
        f"ENTRIES_BEFORE = {values['entries_before']}  # of them before the transformer layers",
        f"ENTRIES_BEHIND = {values['entries_behind']}  # and behind them",
        f"ACTIVATION_CHECKPOINT_INTERVAL = {values[_INTERVAL]}",
        f"MICRO_BATCHES = {values['micro_batches']}  # gradient_accumulation_steps of the JSON",
    ]
    return "\n".join(lines) + "\n" + _CLASS


def _values(plan: Plan) -> dict[str, str]:
    """
    Expressions by name.

    Raises
    ------
    InputError
        If the plan can not be said, with the reasons.
    """
    unsaid, kind = DEEPSPEED.unsaid(plan), only_type(plan)
    if unsaid or kind is None:
        raise InputError("plan", unsaid)
    before, behind = entries_beside(plan.problem)
    return {
        "parts": str(parts_of(plan)),
        "entries_before": str(before),
        "entries_behind": str(behind),
        _INTERVAL: str(INTERVALS[kind]),
        "micro_batches": str(plan.problem.micro_batches),
    }


def deepspeed_into(text: str, plan: Plan, where: str) -> str:
    """
    Text of such a file with the values of a plan, every other byte kept.

    Raises
    ------
    InputError
        If DeepSpeed can not express the plan, or the text is no Python that gives all of them.
    """
    return with_values(text, where, _values(plan))
