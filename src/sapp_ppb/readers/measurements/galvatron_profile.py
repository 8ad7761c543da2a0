"""The two files in which Galvatron keeps its profile of a model: times and memory."""

from os import PathLike

from sapp_ppb.costs.checks import listed
from sapp_ppb.costs.profiled import GalvatronProfile
from sapp_ppb.errors import InputError
from sapp_ppb.readers.measurements.galvatron_memory import read_galvatron_memory
from sapp_ppb.readers.measurements.galvatron_times import read_galvatron_times


def read_galvatron(
    computation: str | PathLike[str],
    memory: str | PathLike[str],
    *,
    sequence_parallel: bool | None = None,
) -> GalvatronProfile:
    """
    Profile of a model out of Galvatron's two files.

    Parameters
    ----------
    computation
        ``computation_profiling_*.json``.
    memory
        ``memory_profiling_*.json``.
    sequence_parallel
        Whether to read the memory with sequence parallelism or that without; None for
        whichever the file has.

    Warns
    -----
    FileNote
        For keys that are not read.

    Raises
    ------
    InputError
        If a file can not be read, has no times of layers or no memory of layers and of the
        first and last stage, or if a value is not allowed; with all faults of a file at once.
    """
    times = read_galvatron_times(computation)
    found = read_galvatron_memory(memory, sequence_parallel)
    timed, weighed = ({kind for kind, *_ in keys} for keys in (times.layer_ms, found.layers))
    last = max(timed | weighed)
    faults = []
    for path, what, kinds in ((computation, "times", timed), (memory, "memory", weighed)):
        missing = [f"layertype_{kind}" for kind in range(last + 1) if kind not in kinds]
        if missing:
            faults.append(f"{path} has no {what} of {listed(missing, 8)}, and there is a layertype_{last}")
    if faults:
        raise InputError("profile", faults)
    return GalvatronProfile(
        source=str(computation),
        kinds=len(timed),
        layer_ms=times.layer_ms,
        other_ms=times.other_ms,
        layer_memory=found.layers,
        first=found.first,
        last=found.last,
        sequence_parallel=found.sequence_parallel,
        profiled_layers=times.profiled_layers,
    )
