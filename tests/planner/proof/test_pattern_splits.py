"""Which split of a region of patterns comes first."""

from dataclasses import replace

import numpy as np
import pytest

from sapp_ppb.planner.proof.pattern_splits import pattern_features, region_splits
from sapp_ppb.planner.proof.patterns import StagePatterns

# Two chunks of one stage; a layer of the first entry takes 1 ms, one of the second 2 ms.
LAYERS = np.array([[[2, 0], [2, 1]], [[4, 0], [0, 1]], [[3, 0], [1, 1]], [[0, 2], [2, 0]]])


@pytest.mark.parametrize("factor", [2.0**-40, 0.5, 2.0, 2.0**40])
def test_the_order_of_splits_is_the_same_in_any_unit_of_time(factor):
    forward_ms = LAYERS @ np.array([1.0, 2.0])
    assert forward_ms.sum(axis=1).tolist() == [6, 6, 6, 6]  # no stage is split by its load
    patterns = StagePatterns(
        cells=np.arange(2),
        layers=LAYERS,
        times_ms=np.stack([forward_ms, 2 * forward_ms, 0 * forward_ms], axis=1),
        choices=[[], []],
        options=np.zeros((4, 2), dtype=np.int64),
    )
    region, shares = (np.ones(4, dtype=bool),), ((np.arange(4), np.array([0.4, 0.3, 0.1, 0.2])),)
    splits, again = (
        [
            [side.tolist() for sides in pair for side in sides]
            for pair in region_splits(pattern_features([each]), region, shares)
        ]
        for each in (patterns, replace(patterns, times_ms=factor * patterns.times_ms))
    )
    assert len(splits) == 4
    assert again == splits
