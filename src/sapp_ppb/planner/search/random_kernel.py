"""Random numbers of the compiled search, whose state is an array of one whole number."""

import numpy as np

from sapp_ppb.simulator.kernel import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@kernel
def uniform(random):  # type: ignore[no-untyped-def]
    """Next number in [0, 1) of the SplitMix64 sequence (Steele, Lea, Flood, OOPSLA 2014)."""
    random[0] += _GOLDEN
    z = random[0]
    z = (z ^ (z >> _S30)) * _MIX_A
    z = (z ^ (z >> _S27)) * _MIX_B
    z = z ^ (z >> _S31)
    return float(z >> _S11) * (1.0 / 9007199254740992.0)


@kernel
def below(random, n):  # type: ignore[no-untyped-def]
    """Whole number in 0..n-1."""
    return min(n - 1, int(uniform(random) * n))
