"""What of a transfer no work hides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs.host_link import exposed_ms

# 1 MB is 2^20 bytes, so that a link of 1.048576 x 10^9 bytes a second moves 1 MB in 1 ms.
MB_A_MS = 1.048576


@pytest.mark.parametrize(
    ("host_mb", "hidden_share", "expected_ms"),
    [
        (10, 0.0, 20.0),  # 10 ms out and 10 ms back, all of it waited for
        (10, 0.5, 5.0),  # half of the forward's 10 hides 5 of the way out; of 20, all of the way back
        (10, 1.0, 0.0),  # both hidden
        (30, 1.0, 30.0),  # 30 - 10 out, 30 - 20 back
        (0, 0.0, 0.0),
    ],
)
def test_each_way_is_hidden_by_a_share_of_its_work(host_mb, hidden_share, expected_ms):
    found = exposed_ms(
        host_mb=host_mb, host_gb_per_s=MB_A_MS, hidden_share=hidden_share, forward_ms=10, backward_ms=20
    )
    assert found == pytest.approx(expected_ms, abs=1e-9)


@given(*[st.floats(0.001, 1e6)] * 4, st.floats(0, 1))
def test_a_faster_link_and_a_greater_share_never_expose_more(mb, speed, forward, backward, share):
    work = {"forward_ms": forward, "backward_ms": backward}
    here = exposed_ms(host_mb=mb, host_gb_per_s=speed, hidden_share=share, **work)
    assert 0 <= exposed_ms(host_mb=mb, host_gb_per_s=2 * speed, hidden_share=share, **work) <= here
    assert exposed_ms(host_mb=mb, host_gb_per_s=speed, hidden_share=1.0, **work) <= here
