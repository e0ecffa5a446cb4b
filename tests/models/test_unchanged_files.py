"""A file of any format that is replaced in the middle of a run, or beside which weights are."""

import os
from importlib.util import find_spec

import pytest

import executorch_programs
from accelbench.core.errors import CaseError
from accelbench.core.model import FileFormat, ModelFile
from accelbench.models.file_models.looking import look
from accelbench.models.file_models.unchanged import as_here, refuse_changed


def ncnn(folder, *, other=False):
    """A network with its weights beside it; of another one those alone are others."""
    import ncnn_model

    return ncnn_model.write(folder / "net.param", seed=int(other))


def tflite(folder, *, other=False):
    import tflite_model

    return tflite_model.write(folder / "net.tflite", seed=int(other))


def executorch(folder, *, other=False):
    path = folder / "net.pte"
    program = executorch_programs.PLAIN if other else executorch_programs.XNNPACK
    path.write_bytes(executorch_programs.content(program))
    return path


def needing(package):
    return pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed")


FORMATS = [
    pytest.param(ncnn, FileFormat("ncnn"), "net.bin", marks=needing("ncnn")),
    pytest.param(tflite, FileFormat.TFLITE, "net.tflite", marks=needing("ai_edge_litert")),
    pytest.param(
        executorch,
        FileFormat("executorch"),
        "net.pte",
        marks=[needing("executorch"), pytest.mark.full],
    ),
]


def looked_at(path, kind):
    found = look(path)
    return ModelFile(
        kind, str(path), found["digest"], found["stamp"], found["precision"], (),
        tuple(found["beside"]),
    )  # fmt: skip


@pytest.mark.parametrize(("written", "kind", "swapped"), FORMATS)
def test_a_file_that_is_swapped_is_refused(tmp_path, written, kind, swapped):
    """By another one of the same size and times, which a copy that keeps times sets back."""
    path = written(tmp_path)
    file = looked_at(path, kind)
    refuse_changed(file)
    before = (tmp_path / swapped).stat()
    (tmp_path / "other").mkdir()
    written(tmp_path / "other", other=True)
    other = tmp_path / "other" / swapped
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(tmp_path / swapped)
    with pytest.raises(CaseError, match="was changed after the run had looked at it"):
        refuse_changed(file)
    assert as_here(file) == file  # its bytes are others: it keeps the mark of what was looked at
    assert looked_at(path, kind).digest != file.digest


@pytest.mark.parametrize(("written", "kind", "swapped"), FORMATS)
def test_a_file_that_is_gone_is_refused_and_a_copy_of_it_is_it(tmp_path, written, kind, swapped):
    path = written(tmp_path)
    file = looked_at(path, kind)
    part = tmp_path / swapped
    content = part.read_bytes()
    part.unlink()
    with pytest.raises(CaseError, match="cannot be read: No such file"):
        refuse_changed(file)
    part.write_bytes(content)
    refuse_changed(as_here(file))
