"""What no framework here has words for: strategies beside recomputation."""

from sapp_ppb.plan import Plan


def strategy_faults(plan: Plan, title: str) -> tuple[str, ...]:
    """
    Say which strategies of a plan a framework has no setting for, a sentence for each.

    Parameters
    ----------
    title
        Name of the framework.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, LayerStrategy, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> swap = LayerStrategy(name="swap", backward_ms=3, activation_mb=1)
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1, strategies=[swap])
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> strategy_faults(plan_from_matrices(problem, {"Dec": {"swap": [[1, 1]]}}), "Megatron-LM")
    ("Megatron-LM has no setting for 'swap', which 2 layers are under; plan with --target",)
    """
    return tuple(
        f"{title} has no setting for {strategy.label!r}, which {layers} layers are under; plan with --target"
        for strategy, layers in zip(plan.strategies, plan.strategy_layers.values(), strict=True)
    )
