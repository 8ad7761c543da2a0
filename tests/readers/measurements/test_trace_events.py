"""A trace is read event by event, and one that is broken is refused with how far it was whole."""

import gzip
import json

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.readers.measurements import trace_events as module
from sapp_ppb.readers.measurements.trace_events import Clock, duration, trace_events

EVENTS = [
    {"ph": "X", "name": f"op{number}", "ts": number, "dur": 1.5, "pid": 3, "tid": "main"}
    for number in range(40)
]


def written(tmp_path, content, name="trace.json"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(path):
    with pytest.raises(InputError) as caught:
        list(trace_events(path))
    assert caught.value.where == str(path)
    (fault,) = caught.value.faults
    return fault


@pytest.mark.parametrize("chunk", [1, 7, 2**20])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_and_an_object_give_the_same_events_in_any_chunks(tmp_path, monkeypatch, chunk, indent):
    monkeypatch.setattr(module, "_CHUNK", chunk)
    plain = written(tmp_path, json.dumps([*EVENTS, 5, None], indent=indent))
    assert list(trace_events(plain)) == EVENTS
    about: dict[str, object] = {}
    document = {"schemaVersion": 1, "traceEvents": EVENTS, "distributedInfo": {"rank": 3}}
    assert list(trace_events(written(tmp_path, json.dumps(document, indent=indent)), about)) == EVENTS
    assert about == {"schemaVersion": 1, "distributedInfo": {"rank": 3}}


def test_gzip_is_told_by_its_content_and_not_by_its_name(tmp_path):
    assert list(trace_events(written(tmp_path, gzip.compress(json.dumps(EVENTS).encode())))) == EVENTS


@pytest.mark.parametrize("change", [lambda text: text.replace(b"\n", b"\r\n"), lambda t: b"\xef\xbb\xbf" + t])
def test_line_ends_and_a_byte_order_mark_are_no_fault(tmp_path, change):
    assert list(trace_events(written(tmp_path, change(json.dumps(EVENTS, indent=1).encode())))) == EVENTS


def test_the_share_that_is_read_is_told(tmp_path):
    shares: list[float] = []
    list(trace_events(written(tmp_path, json.dumps(EVENTS)), None, shares.append))
    assert shares[-1] == 1.0


def test_a_long_file_is_never_held_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 1000)
    longest = 0
    fill = module._Stream._fill

    def watched(stream, characters):
        nonlocal longest
        more = fill(stream, characters)
        longest = max(longest, len(stream._buffer))
        return more

    monkeypatch.setattr(module._Stream, "_fill", watched)
    path = written(tmp_path, json.dumps(EVENTS * 500))
    assert sum(1 for _ in trace_events(path)) == 20_000
    assert path.stat().st_size > 1_000_000
    assert longest < 3000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty; it must hold a trace"),
        (b" \r\n", "the file is empty; it must hold a trace"),
        (b"hello", "the trace is cut off or no JSON: [ or { should follow (got 'h')"),
        (b'{"a": 1}', "holds no events; a trace is a list of events, or an object with traceEvents"),
        (b'{"traceEvents": 5}', "holds no events; a trace is a list"),
        (
            b'{"traceEvents": [{"a": 1}',
            "the trace is cut off or no JSON: , or ] should follow (it ends), after 1",
        ),
        (json.dumps(EVENTS).encode()[:1000], "the trace is cut off or no JSON ("),
        (
            b'[{"a": 1} {"b": 2}]',
            "the trace is cut off or no JSON: , or ] should follow (got '{'), after 1 events",
        ),
        (b'[{"name": "\xe9"}]', "the trace is not UTF-8 text; save it as UTF-8"),
        ('[{"a": 1}]'.encode("utf-16"), "the trace is not UTF-8 text; save it as UTF-8"),
        (b"[" * 100_000, "an event is nested too deep"),
        (b"[" + b"9" * 5000 + b"]", "a number has too many digits"),
        (b'["' + b"x" * 2**25 + b'"]', "one event is no JSON or too large"),
        (b"\x1f\x8bnot gzip", "the gzip file is broken ("),
        (gzip.compress(json.dumps(EVENTS).encode(), mtime=0)[:60], "the gzip file is broken ("),
    ],
)
def test_a_broken_file_is_refused(tmp_path, content, said):
    assert refusal(written(tmp_path, content)).startswith(said)


def test_a_path_that_is_no_file_is_refused(tmp_path):
    assert refusal(tmp_path / "none.json") == "there is no such file; check the path"
    assert refusal(tmp_path) == "is a folder; name a file in it"
    assert "the file can not be read" in refusal("a\0b")


def test_a_time_that_a_spreadsheet_made_is_none():
    clock = Clock()
    assert clock.at("1736405443881410.320\t") == pytest.approx(0.32, abs=1e-9)
    # 16 digits and 3 decimals: floats there are 0.25 apart, and the difference is still seen.
    assert clock.at("1736405443881410.321") == pytest.approx(0.321, abs=1e-9)
    for value in ("1.73641E+15", "", "N/A", "12:30", None, True, float("nan"), 1e300, [1]):
        assert clock.at(value) is None


def test_a_duration_is_a_number_or_its_text():
    assert (duration(1.5), duration("2"), duration(0)) == (1.5, 2.0, 0.0)
    for value in (-1, "x", None, True, float("nan"), float("inf")):
        assert duration(value) is None


def test_events_keep_no_process_or_thread_that_is_no_name(tmp_path):
    # A list can not be looked up by, and ended in a traceback.
    path = written(tmp_path, '[{"pid": [1], "tid": {"a": 1}}, {"pid": 4, "tid": "x"}, {}]')
    assert list(trace_events(path)) == [
        {"pid": None, "tid": None},
        {"pid": 4, "tid": "x"},
        {"pid": None, "tid": None},
    ]
