"""What a plan can be written for: the words of each framework, and the files that are edited."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.simulator import Timeline
from sapp_ppb.targets import target_named
from sapp_ppb.targets.target import Target
from sapp_ppb.writers.frameworks.colossalai import colossalai_into, colossalai_text
from sapp_ppb.writers.frameworks.deepspeed import deepspeed_into, deepspeed_text
from sapp_ppb.writers.frameworks.hyperparallel import (
    hyperparallel_into,
    hyperparallel_text,
    hyperparallel_timed_text,
)
from sapp_ppb.writers.frameworks.layer_list import layers_csv_text, layers_json_text
from sapp_ppb.writers.frameworks.megatron import megatron_into, megatron_text
from sapp_ppb.writers.frameworks.mindformers_config import mindformers_text
from sapp_ppb.writers.frameworks.mindformers_edit import mindformers_into
from sapp_ppb.writers.frameworks.mindspeed import mindspeed_into, mindspeed_text
from sapp_ppb.writers.frameworks.pytorch import CSV_FILE, pytorch_csv, pytorch_into, pytorch_text
from sapp_ppb.writers.frameworks.torchtitan import torchtitan_into, torchtitan_text


@dataclass(frozen=True, kw_only=True)
class Export:
    """
    One form of a plan.

    Attributes
    ----------
    name
        As ``--to`` takes it.
    title
        As people write it.
    file_name
        File of ``--output`` that holds it.
    text
        What to paste, or the whole file of a plain form.
    into
        Text of a configuration that exists, its name, and a plan give the text with the
        plan in it; None for a form that is always written whole.
    timed_text
        The same as ``text`` with what the simulator says of the plan; None where it says
        nothing to the framework.
    beside, beside_names
        Texts of further files that a folder gets, by name, and those names; None where
        there are none.
    """

    name: str
    title: str
    file_name: str
    text: Callable[[Plan], str]
    into: Callable[[str, Plan, str], str] | None = None
    beside: Callable[[Plan], Mapping[str, str]] | None = None
    beside_names: tuple[str, ...] = ()
    timed_text: Callable[[Timeline], str] | None = None

    @property
    def file_names(self) -> tuple[str, ...]:
        """Names of the files that a folder gets."""
        return (self.file_name, *self.beside_names)

    def written(self, plan: Plan, timeline: Timeline | None) -> str:
        """Text of a plan, with what is known of its timeline where there is a place for that."""
        if self.timed_text is None or timeline is None:
            return self.text(plan)
        return self.timed_text(timeline)

    def files(self, plan: Plan, timeline: Timeline | None) -> dict[str, str]:
        """Texts of a plan by the names of their files, for a folder."""
        more = {} if self.beside is None else self.beside(plan)
        return {self.file_name: self.written(plan, timeline), **more}

    @property
    def target(self) -> Target | None:
        """Framework whose rules the plan must obey; None for a plain form."""
        return None if self.into is None else target_named(self.name)

    def unsaid(self, plan: Plan) -> tuple[str, ...]:
        """Say why a plan can not be written so, a sentence each; none when it can."""
        if self.target is not None:
            return self.target.unsaid(plan)
        try:
            self.text(plan)
        except InputError as error:
            return error.faults
        return ()


EXPORTS = {
    export.name: export
    for export in (
        Export(
            name="mindformers",
            title="MindFormers",
            file_name="mindformers.yaml",
            text=mindformers_text,
            into=mindformers_into,
        ),
        Export(
            name="megatron",
            title="Megatron-LM",
            file_name="megatron.sh",
            text=megatron_text,
            into=megatron_into,
        ),
        Export(
            name="torchtitan",
            title="torchtitan",
            file_name="torchtitan.toml",
            text=torchtitan_text,
            into=torchtitan_into,
        ),
        Export(
            name="mindspeed",
            title="MindSpeed",
            file_name="mindspeed.sh",
            text=mindspeed_text,
            into=mindspeed_into,
        ),
        Export(
            name="hyperparallel",
            title="HyperParallel",
            file_name="hyperparallel.json",
            text=hyperparallel_text,
            timed_text=hyperparallel_timed_text,
            into=hyperparallel_into,
        ),
        Export(
            name="colossalai",
            title="Colossal-AI",
            file_name="colossalai_plan.py",
            text=colossalai_text,
            into=colossalai_into,
        ),
        Export(
            name="deepspeed",
            title="DeepSpeed",
            file_name="deepspeed_plan.py",
            text=deepspeed_text,
            into=deepspeed_into,
        ),
        Export(
            name="pytorch",
            title="PyTorch pipelining",
            file_name="pytorch.py",
            text=pytorch_text,
            into=pytorch_into,
            beside=pytorch_csv,
            beside_names=(CSV_FILE,),
        ),
        Export(name="csv", title="CSV of layers", file_name="layers.csv", text=layers_csv_text),
        Export(name="json", title="JSON of layers", file_name="layers.json", text=layers_json_text),
    )
}


def export_named(name: str) -> Export:
    """
    Form of a name.

    Raises
    ------
    InputError
        If it is unknown.

    Examples
    --------
    >>> export_named("megatron").file_name
    'megatron.sh'
    """
    if name not in EXPORTS:
        raise InputError("--to", [f"{name!r} is unknown; one of {', '.join(EXPORTS)}"])
    return EXPORTS[name]
