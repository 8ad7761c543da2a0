"""
Which candidates are planned when, and which need not be.

A candidate is cut when no plan of its can be as fast as the best one known that answers
the same question.  What is known must not depend on which worker was quicker, or else the
table would; so candidates go in waves, and a wave is cut by what earlier waves found.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby

from sapp_ppb.sweep.answer import Answer
from sapp_ppb.sweep.candidate import Candidate

# Candidates of the first wave; every other is as large as all before it, so that waves stay few
# and a large cluster is soon busy.
_FIRST_WAVE = 8
_ROUNDING = 1e-9  # two makespans are the same within this share


def waves(candidates: Sequence[Candidate], bounds_ms: Sequence[float]) -> list[list[int]]:
    """
    Places of the candidates in the order of planning, wave by wave.

    The most promising of every question come first: those with the lowest bounds.

    Parameters
    ----------
    bounds_ms
        Lower bound of each candidate; infinite when nothing fits.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.problem import Problem
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=4, micro_batches=16)
    >>> bounds = [30.0 - place for place in range(20)]
    >>> [len(wave) for wave in waves([Candidate(problem=problem)] * 20, bounds)]  # 8, 8, and what is left
    [8, 8, 4]
    >>> waves([Candidate(problem=problem)] * 20, bounds)[0][:3]  # the lowest bounds stand last
    [19, 18, 17]
    """
    questions = [candidate.question for candidate in candidates]
    first_of = {question: place for place, question in reversed(list(enumerate(questions)))}
    by_question = sorted(range(len(candidates)), key=lambda place: (first_of[questions[place]], place))
    ranked: list[tuple[int, float, int]] = []
    for _, places in groupby(by_question, key=lambda place: first_of[questions[place]]):
        best_first = sorted(places, key=lambda place: (bounds_ms[place], place))
        ranked += [(rank, bounds_ms[place], place) for rank, place in enumerate(best_first)]
    order = [place for _, _, place in sorted(ranked)]
    found, start = [], 0
    while start < len(order):
        size = max(_FIRST_WAVE, start)
        found.append(order[start : start + size])
        start += size
    return found


def cut_by(
    wave: Sequence[int],
    candidates: Sequence[Candidate],
    bounds_ms: Sequence[float],
    answers: Mapping[int, Answer],
) -> dict[int, str]:
    """
    Places of a wave that need no planning, each with the reason.

    Parameters
    ----------
    answers
        Of the waves before.
    """
    best_ms: dict[object, float] = {}
    for place, answer in answers.items():
        if answer.step_ms is not None:
            question = candidates[place].question
            best_ms[question] = min(answer.step_ms, best_ms.get(question, math.inf))
    found = {}
    for place in wave:
        known_ms = best_ms.get(candidates[place].question, math.inf)
        if known_ms * (1 + _ROUNDING) < bounds_ms[place] < math.inf:  # what fits nowhere is told why
            found[place] = f"its bound is above the best plan of the same limit, {known_ms:,.1f} ms"
    return found
