"""What moving a layer's activations to the host and back adds to its backward."""

_BYTES_A_MB, _MS_A_S = 2**20, 1e3


def exposed_ms(
    *, host_mb: float, host_gb_per_s: float, hidden_share: float, forward_ms: float, backward_ms: float
) -> float:
    """
    Time on the host link that no work hides.

    The activations leave during the layer's forward and come back during its backward,
    each way in MB / bandwidth.  Of the forward and of the backward, ``hidden_share`` can
    hide them; what is longer is waited for.  Both waits are told as one, which is added
    to the backward: forwards do not depend on the strategy in this model.

    Parameters
    ----------
    host_mb
        What one layer moves for one micro-batch, MB of 2^20 bytes.
    host_gb_per_s
        Speed of the link in one direction, 10^9 bytes per second, above 0.
    hidden_share
        Share of a layer's time during which the link may work, 0 to 1.
    forward_ms, backward_ms
        Times of the layer when it keeps everything, milliseconds.

    Examples
    --------
    >>> round(exposed_ms(host_mb=1000, host_gb_per_s=10.48576, hidden_share=0.5,  # 100 ms each way
    ...                  forward_ms=120, backward_ms=240), 9)  # 100 - 60 out, and back within 120
    40.0
    """
    one_way_ms = host_mb * _BYTES_A_MB / (host_gb_per_s * 1e9) * _MS_A_S
    return sum(max(one_way_ms - hidden_share * work_ms, 0.0) for work_ms in (forward_ms, backward_ms))
