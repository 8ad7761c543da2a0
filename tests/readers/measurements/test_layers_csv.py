"""Tables of layers: what a table may look like, what comes back, and the line of what is refused."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.costs.checks import text_fault
from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.readers.measurements.layers_csv import COLUMNS, read_layers_csv

HEADER = "name,kind,count,forward_ms,backward_ms,parameter_mb,activation_mb,activation_full_mb"
ROWS = "Emb,HEAD,1,5,,4000,,\nDec,BODY,24,20,44,900,600,40\nOut,TAIL,1,15,,3000,,\n"


def model_of(tmp_path, text):
    path = tmp_path / "layers.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_layers_csv(path, name="m")


def refusal(tmp_path, text):
    with pytest.raises(InputError) as caught:
        model_of(tmp_path, text)
    return caught.value.faults


def test_a_table_by_hand(tmp_path):
    head, body, tail = model_of(tmp_path, f"{HEADER}\n{ROWS}").layers
    assert (head.kind, head.forward_ms, head.backward_ms[0], head.parameter_mb) == (
        LayerKind.HEAD,
        5.0,
        10.0,  # twice the forward
        4000.0,
    )
    assert (body.name, body.kind, body.count, body.parameter_mb) == ("Dec", LayerKind.BODY, 24, 900.0)
    assert body.backward_ms[Recompute.NONE] == 44.0
    assert body.backward_ms[Recompute.FULL] == 66.0  # 1.5 x 44
    assert body.activation_mb == (600.0, None, None, None, 40.0)
    assert (tail.kind, tail.activation_mb[0]) == (LayerKind.TAIL, None)


def test_every_column_is_read(tmp_path):
    # A cell holds the number of its column, so that no two can be mixed up.
    at = {column: float(number) for number, column in enumerate(COLUMNS, start=1)}
    cells = {column: f"{number:g}" for column, number in at.items()}
    cells |= {"name": "D", "kind": "BODY", "weight_grad_ms": "2", "model_name": "llama"}
    layer = model_of(tmp_path, f"{','.join(cells)}\n{','.join(cells.values())}\n").layers[0]
    assert (layer.name, layer.kind, layer.count) == ("D", LayerKind.BODY, at["count"])
    assert (layer.forward_ms, layer.parameter_mb) == (at["forward_ms"], at["parameter_mb"])
    types = ("selective", "comm", "both", "full")
    assert layer.activation_mb == (at["activation_mb"], *(at[f"activation_{r}_mb"] for r in types))
    assert layer.backward_ms == (at["backward_ms"], *(at[f"backward_{r}_ms"] for r in types))
    assert (layer.weight_grad_ms, layer.model_name) == (2.0, "llama")


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeff{HEADER}\n{ROWS}",
        f"{HEADER}\n{ROWS}".replace("\n", "\r\n"),
        f"{HEADER}\n{ROWS}".replace("\n", "\r"),
        f"{HEADER}\n{ROWS}\n\n  \n,,,,,,,\n",
        f"{HEADER}\n\n{ROWS}",
        f"{HEADER}\n{ROWS}"[:-1],
        ",".join(f'"{name}"' for name in HEADER.split(",")) + "\n" + ROWS.replace("900", '"900"'),
        HEADER.replace(",", " , ") + "\n" + ROWS.replace(",", ", "),
        HEADER + ",,\n" + ROWS.replace("\n", ",,\n"),
        HEADER + "\n" + ROWS.replace("20,44", "+2.0e1,4.4E+1"),
    ],
    ids=["mark", "crlf", "cr", "blank ends", "blank line", "no end", "quotes", "blanks", "columns", "floats"],
)
def test_how_it_is_written_does_not_matter(text, tmp_path):
    assert model_of(tmp_path, text) == model_of(tmp_path, f"{HEADER}\n{ROWS}")


def test_a_name_may_hold_commas_and_quotes(tmp_path):
    model = model_of(tmp_path, 'name,kind,forward_ms\n"Conv(3, ""same"")",BODY,1\n')
    assert model.layers[0].name == 'Conv(3, "same")'


class TestRefusals:
    @pytest.mark.parametrize(
        ("header", "said"),
        [
            (
                "name,kind,forward_ms,forwad_ms",
                "column 'forwad_ms' is unknown; the nearest known one is forward_ms",
            ),
            ("name,kind,forward_ms,zzz", "column 'zzz' is unknown; known ones are name, kind, count, "),
            ("name,kind,forward_ms,Count", "column 'Count' is unknown; the nearest known one is count"),
            ("name,kind,forward_ms,kind", "column 'kind' stands there 2 times; keep one"),
            ("name,kind", "column forward_ms is missing"),
            ("name;kind;forward_ms", "the cells must have commas between them, and not semicolons"),
            ("name\tkind\tforward_ms", "the cells must have commas between them, and not tabs"),
            ("name,,kind,forward_ms", "column '' is unknown; known ones are "),
        ],
    )
    def test_of_the_header(self, header, said, tmp_path):
        (fault,) = refusal(tmp_path, f"{header}\nDec,BODY,1\n")
        assert fault.startswith(f"line 1: {said}")

    @pytest.mark.parametrize(
        ("row", "said"),
        [
            ("D,BODY,1,nan,,,,", "forward_ms must be a number above 0 (got 'nan')"),
            ("D,BODY,1,inf,,,,", "forward_ms must be a number above 0 (got 'inf')"),
            ("D,BODY,1,0,,,,", "forward_ms must be a number above 0 (got 0.0)"),
            ("D,BODY,1,1_0,,,,", "forward_ms must be a number above 0 (got '1_0')"),
            ('D,BODY,1,"1,5",,,,', "forward_ms must be a number above 0 (got '1,5')"),
            ("D,BODY,1,1,-2,,,", "backward_ms must be a number of at least 0 (got -2.0)"),
            ("D,BODY,1,1,,x,,", "parameter_mb must be a number of at least 0 (got 'x')"),
            ("D,BODY,1,1,,,1e16,", "activation_mb must be at most 1e+15 (got 1e+16); check the unit"),
            ("D,BODY,0,1,,,,", "count must be an integer of at least 1 (got 0)"),
            ("D,BODY,1.5,1,,,,", "count must be an integer of at least 1 (got '1.5')"),
            ("D,BODY,99999999999,1,,,,", "count must be an integer of at least 1 (got '99999999999')"),
            ("D,body,1,1,,,,", "kind must be one of HEAD, BODY, TAIL (got 'body'); write BODY"),
            ("D,MID,1,1,,,,", "kind must be one of HEAD, BODY, TAIL (got 'MID')"),
            (",BODY,1,1,,,,", "name is missing"),
            ("D,BODY,1,,,,,", "forward_ms is missing"),
            ("D,BODY,1,1,,,", "must have 8 cells, as the header has (got 7)"),
            ("D,BODY,1,1,,,,,7", "must have 8 cells, as the header has (got 9)"),
            ('"a\nb",BODY,1,1,,,,', "name must be text without control characters (got 'a\\nb')"),
        ],
    )
    def test_of_a_line(self, row, said, tmp_path):
        assert refusal(tmp_path, f"{HEADER}\nok,BODY,1,1,,,,\n\n{row}\n") == (f"line 4: {said}",)

    def test_a_quote_that_is_never_closed(self, tmp_path):
        (fault,) = refusal(tmp_path, f'{HEADER}\nD,BODY,1,1,,,,\n"E,BODY,1,1,,,,\n')
        assert fault == "line 3: is no line of a CSV (unexpected end of data); check its quotes"

    def test_a_backward_that_leaves_nothing_for_input_gradients(self, tmp_path):
        (fault,) = refusal(tmp_path, "name,kind,forward_ms,backward_ms,weight_grad_ms\nD,BODY,1,2,3\n")
        assert fault.startswith("line 2: weight_grad_ms must be at most the backward time with none, 2 ms")

    def test_every_fault_is_named_at_once(self, tmp_path):
        faults = refusal(tmp_path, f"{HEADER}\nD,x,0,nan,,,,\nD,BODY,1,1,,,-1,\n")
        assert [fault.split(":")[0] for fault in faults] == ["line 2"] * 3 + ["line 3"] + [
            "layer names must be unique (got 'D' 2 times)"
        ]

    def test_many_faults_are_counted(self, tmp_path):
        faults = refusal(tmp_path, f"{HEADER}\n" + "".join(f"L{at},x,1,1,,,,\n" for at in range(50)))
        assert (len(faults), faults[-1]) == (21, "and 30 more faults")

    def test_a_table_without_body(self, tmp_path):
        for rows, found in (("", "none"), ("H,HEAD,1,1,,,,\n", "HEAD")):
            faults = refusal(tmp_path, f"{HEADER}\n{rows}")
            assert faults == (f"at least one layer must be of kind BODY (got {found})",)

    def test_what_is_no_text(self, tmp_path):
        assert "is not UTF-8" in refusal(tmp_path, b"name,kind\xff")[0]
        assert "the file is empty; it must hold a table of layers" in refusal(tmp_path, "\n")[0]


class TestNotes:
    def test_of_a_backward_that_is_shorter_recomputed(self, tmp_path):
        header = "name,kind,forward_ms,activation_mb,activation_full_mb,backward_full_ms"
        said = (
            "line 2: backward with full takes 12 ms, less than the 20 ms without .*; backward_full_ms is the"
        )
        with pytest.warns(FileNote, match=said):
            model_of(tmp_path, f"{header}\nD,BODY,10,5,1,12\n")

    @pytest.mark.parametrize(
        ("row", "said"),
        [
            ("H,HEAD,1,1,,,5,2", "activation_full_mb: a HEAD is never recomputed; ignored"),
            ("D,BODY,1,1,,,5,0", "activation_full_mb: 0 MB counts as not given"),
            ("D,BODY,1,1,,,,2", "activation_mb is not given: no plan can leave this layer without recompute"),
        ],
    )
    def test_of_a_line(self, row, said, tmp_path):
        with pytest.warns(FileNote, match=f"line 3: {said}"):
            model_of(tmp_path, f"{HEADER}\nB,BODY,1,1,,,,\n{row}\n")


def table_of(model):
    """Write a model as a table, every value in full."""
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(COLUMNS)
    for layer in model.layers:
        body = layer.kind is LayerKind.BODY
        others = list(Recompute)[1:]
        held = layer.activation_mb
        cells = [layer.name, layer.kind.value, layer.count, repr(layer.forward_ms)]
        cells += [repr(layer.backward_ms[0]), repr(layer.parameter_mb), held[0]]
        cells += [held[r] for r in others]
        cells += [repr(layer.backward_ms[r]) if body else "" for r in others]
        cells += [layer.weight_grad_ms, layer.model_name]
        rows.writerow("" if cell is None else cell for cell in cells)
    return text.getvalue()


names = st.text(min_size=1, max_size=8).map(str.strip).filter(lambda text: text_fault("", text) is None)
times = st.floats(0.001, 1e6)
memories = st.floats(0.001, 1e6)


@st.composite
def layers(draw, name, kind):
    # Recomputed backwards ascend and NONE's activation is given, so that nothing is worth a note.
    body = kind is LayerKind.BODY
    base = draw(times)
    backward = [base + extra for extra in sorted(draw(st.lists(times, min_size=4, max_size=4)))]
    types = [r for r in Recompute if r is Recompute.NONE or (body and draw(st.booleans()))]
    return layer_from_times(
        name=name,
        kind=kind,
        count=draw(st.integers(1, 1000)),
        forward_ms=draw(times),
        backward_ms=base,
        explicit=dict(zip(list(Recompute)[1:], backward, strict=True)) if body else {},
        parameter_mb=draw(st.just(0.0) | memories),
        activation_mb={r: draw(memories) for r in types},
        model_name=draw(st.none() | names),
        weight_grad_ms=draw(st.none() | st.floats(0, base)),
    )


@st.composite
def models(draw):
    chosen = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    kinds = [LayerKind.BODY, *(draw(st.sampled_from(LayerKind)) for _ in chosen[1:])]
    return Model(
        name="m", layers=tuple(draw(layers(name, kind)) for name, kind in zip(chosen, kinds, strict=True))
    )


@given(models())
def test_a_model_that_is_written_as_a_table_is_read_back(tmp_path_factory, model):
    assert model_of(tmp_path_factory.mktemp("table"), table_of(model)) == model
