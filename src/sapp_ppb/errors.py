"""Every error that a user can meet, and the note that is no error."""

from collections.abc import Sequence

_MOST_SAID = 100  # faults; whoever has more mends those first


class PpbError(Exception):
    """Parent of every error that this package raises on purpose."""


class InputError(PpbError, ValueError):
    """
    Something given is wrong: a file, a value, or two values that do not fit.

    Parameters
    ----------
    where
        What was read: a path, an option or an object's name.
    faults
        One sentence a fault, each with what was found and what is allowed.

    Examples
    --------
    >>> print(InputError("model.json", ["layers_description is missing", "name must be text (got 3)"]))
    model.json: 2 faults
      layers_description is missing
      name must be text (got 3)
    >>> print(InputError("--stages", ["must be at least 1 (got 0)"]))
    --stages: must be at least 1 (got 0)

    The first hundred are said, and all are kept:

    >>> error = InputError("model.json", [f"[{k}] must be a number" for k in range(5000)])
    >>> len(error.faults), str(error).splitlines()[-1]
    (5000, '  and 4,900 more')
    """

    def __init__(self, where: str, faults: Sequence[str]) -> None:
        self.where = where
        self.faults = tuple(faults)
        if len(self.faults) == 1:
            text = f"{where}: {self.faults[0]}"
        else:
            hidden = len(self.faults) - _MOST_SAID
            rest = [f"and {hidden:,} more"] if hidden > 0 else []
            text = "\n  ".join([f"{where}: {len(self.faults)} faults", *self.faults[:_MOST_SAID], *rest])
        super().__init__(text)


class ScheduleError(PpbError, ValueError):
    """An order of ops that does not exist for these sizes, or that can not run."""


class NoPlanFoundError(PpbError):
    """The time limit passed before any plan was found that fits; one may exist."""


class SolverError(PpbError):
    """The solver is missing or failed."""


class Note(UserWarning):
    """Something worth saying that stops nothing."""


class FileNote(Note):
    """Something in a file that is probably not what its author meant, but can be read."""


class PlannerNote(Note):
    """Something the planner could not do, whose absence does not make its answer wrong."""
