"""Peaks out of logs, CSV files and numbers, with their stage and their unit."""

from pathlib import Path

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.readers.measurements.peaks import read_peaks

DATA = Path(__file__).parents[2] / "data" / "peaks"
LOG = (
    "[INFO] Device MOC memory size: 62432M\r\n"
    "Used peak memory usage (without fragments): 40000M\r\n"
    "Used peak memory usage (without fragments): 48874M\r\n"
    "Actual peak memory usage (with fragments): 50.5G\r\n"
)


def written(tmp_path, name, content):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def peaks_of(*paths, **more):
    return {peak.stage: peak.peak_mb for peak in read_peaks([str(path) for path in paths], **more)}


def refusal(*paths):
    with pytest.raises(InputError) as caught:
        read_peaks([str(path) for path in paths])
    return caught.value.faults


class TestLogs:
    def test_the_last_peak_counts_with_or_without_fragments(self, tmp_path):
        path = written(tmp_path, "stage_3_rank_24.log", LOG)
        assert peaks_of(path) == {3: 48874.0}
        assert peaks_of(path, fragments=True) == {3: 50.5 * 1024}

    def test_one_of_both_is_enough(self, tmp_path):
        path = written(tmp_path, "stage1.log", "Actual peak memory usage (with fragments): 96643M\n")
        assert peaks_of(path) == {1: 96643.0}

    def test_the_stage_may_be_the_folders_or_given(self, tmp_path):
        first = written(tmp_path, "stage_0_rank_0/mindformer.log", LOG)
        second = written(tmp_path, "mine.log", LOG)
        assert peaks_of(first, f"7={second}") == {0: 48874.0, 7: 48874.0}

    def test_a_folder_gives_the_highest_of_each_stage(self, tmp_path):
        written(tmp_path, "stage_0_rank_0/a.log", LOG)
        written(tmp_path, "stage_0_rank_1/a.log", LOG.replace("48874", "50001"))
        written(tmp_path, "stage_1_rank_8/a.log", LOG)
        assert peaks_of(tmp_path) == {0: 50001.0, 1: 48874.0}

    def test_faults_of_all_files_are_named_at_once(self, tmp_path):
        cut = written(tmp_path, "stage_0.log", LOG[:60])
        unnamed = written(tmp_path, "x.log", LOG)
        empty = written(tmp_path, "stage_2.log", "")
        assert refusal(cut, unnamed, empty, tmp_path / "stage_4.log") == (
            f"{cut}: says no 'Used peak memory usage (without fragments): ...M'; is it the log of a dry run, "
            "to its end?",
            f"{unnamed}: its name says no stage, such as stage_3; give it as 3=PATH",
            f"{empty}: the file is empty; it must hold a log",
            f"{tmp_path / 'stage_4.log'}: there is no such file; check the path",
        )

    def test_an_empty_folder_is_refused(self, tmp_path):
        with pytest.raises(InputError, match="holds no file that ends in"):
            read_peaks([str(tmp_path)])


class TestCsv:
    def test_real_files(self):
        # The largest of column Total Reserved(MB) in the rows of APP, by sorting them.
        assert peaks_of(f"0={DATA / 'memory_record.csv'}") == {0: 2109.6015625}
        assert peaks_of(f"1={DATA / 'npu_module_mem.csv'}") == {1: 1452.0}

    def test_kilobytes_and_other_headings(self, tmp_path):
        content = (
            "Device_id,Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB),Device\r\n"
            "0,APP,1.69512E+15,,1048576,NPU:0\r\n0,PTA,1,N/A,9999999,NPU:0\r\n0,APP,2,,N/A,NPU:0\r\n"
        )
        assert peaks_of(written(tmp_path, "stage_2/memory_record.csv", content)) == {2: 1024.0}

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("a,b\n1,2\n", "must have the columns Component and Total Reserved(KB) or (MB) (got 'a, b')"),
            ("Component,Total Reserved(MB)\nPTA,3\n", "has no row of component APP with reserved memory"),
            ("Component,Total Reserved(MB)\nAPP,oops\n", "Total Reserved(MB) (line 2) must be a number"),
            ("Component,Total Reserved(MB)\nAPP,-3\n", "Total Reserved(MB) (line 2) must be a number"),
            ("Component,Total Reserved(MB)\nAPP\n", "has no row of component APP with reserved memory"),
            (b"Component,Total Reserved(MB)\nAPP,\xe9\n", "the file is not UTF-8 text"),
        ],
    )
    def test_broken_files_are_refused(self, tmp_path, content, said):
        (fault,) = refusal(written(tmp_path, "stage_0.csv", content))
        assert said in fault

    def test_a_real_file_that_is_cut_is_read_as_far_as_it_goes_or_refused(self, tmp_path):
        content = (DATA / "memory_record.csv").read_bytes()
        (fault,) = refusal(written(tmp_path, "stage_0.csv", content[:60]))
        assert "must have the columns" in fault


class TestNumbers:
    def test_bytes_of_pytorch_and_mb(self, tmp_path):
        path = written(tmp_path, "a.yaml", "max_memory_allocated: [1073741824, null, 2097152]\n")
        assert peaks_of(path) == {0: 1024.0, 2: 2.0}
        path = written(tmp_path, "b.yml", "peak_memory_mb: {3: 48874, 0: 20.5}\n")
        assert peaks_of(path) == {0: 20.5, 3: 48874.0}

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("a: 1", "must hold peak_memory_mb (MB) or max_memory_allocated (bytes)"),
            ("peak_memory_mb: [1]\nmax_memory_allocated: [1]", "must hold peak_memory_mb (MB) or"),
            ("peak_memory_mb: 3", "peak_memory_mb (line 1) must be a list or a number for each stage"),
            ("peak_memory_mb: [-3]", "peak_memory_mb[0] (line 1) must be a number above 0 (got -3)"),
            ("peak_memory_mb: {last: 3}", "peak_memory_mb.last (line 1) must be named after a stage"),
            ("peak_memory_mb: [.nan]", "must be a finite number"),
        ],
    )
    def test_refusals(self, tmp_path, content, said):
        assert any(said in fault for fault in refusal(written(tmp_path, "a.yaml", content)))
