import numpy as np
import pytest
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

from tb_advisor.logdir.event_file import EventFile, Reader, scalar_of, scalar_tags_at_start
from tests.builders import event_file, scalar_event, tensor_event, write_events

FLOAT, DOUBLE, INT32, UINT8, INT64, BOOL, HALF, BFLOAT16, STRING = 1, 2, 3, 4, 9, 10, 19, 14, 7


def read_event_file(path):
    file = EventFile(str(path))
    Reader().read([file])
    return file


def values(file, tag):
    return file.scalars[tag].series("run", tag).values.tolist()


@pytest.mark.parametrize(
    ("tensor", "value"),
    [
        (TensorProto(dtype=FLOAT, float_val=[0.5]), 0.5),
        (TensorProto(dtype=FLOAT, tensor_content=np.float32(0.5).tobytes()), 0.5),
        (TensorProto(dtype=DOUBLE, double_val=[1e-300]), 1e-300),
        (TensorProto(dtype=DOUBLE, tensor_content=np.float64(0.1).tobytes()), 0.1),
        (TensorProto(dtype=HALF, half_val=[int(np.float16(1.5).view(np.uint16))]), 1.5),
        (TensorProto(dtype=HALF, tensor_content=np.float16(1.5).tobytes()), 1.5),
        (TensorProto(dtype=BFLOAT16, half_val=[0x3FC0]), 1.5),
        (TensorProto(dtype=BFLOAT16, tensor_content=b"\xc0\x3f"), 1.5),
        (TensorProto(dtype=INT32, int_val=[-7]), -7),
        (TensorProto(dtype=UINT8, tensor_content=b"\xff"), 255),
        (TensorProto(dtype=INT64, int64_val=[2**40]), 2**40),
        (TensorProto(dtype=BOOL, bool_val=[True]), 1),
        (TensorProto(dtype=FLOAT), 0.0),
        (TensorProto(dtype=STRING, string_val=[b"text"]), None),
        (TensorProto(dtype=FLOAT, tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=2)]), float_val=[1, 2]), None),
    ],
)
def test_scalar_tensors_of_every_type(tensor, value):
    assert scalar_of(tensor) == value


def test_all_points_of_both_kinds_of_scalars(tmp_path):
    tensor = TensorProto(dtype=FLOAT, float_val=[0.25])
    bare = tensor_event("epoch_loss", 1, tensor)
    bare.summary.value[0].ClearField("metadata")  # only the first event of a tag has metadata
    path = write_events(tmp_path, [scalar_event("loss", 0, 1.0), tensor_event("epoch_loss", 0, tensor), bare, scalar_event("loss", 1, 0.5)])
    read = read_event_file(path)
    assert values(read, "loss") == [1.0, 0.5]
    assert read.scalars["epoch_loss"].series("", "").steps.tolist() == [0, 1]


def test_other_kinds_are_named_and_their_points_left_alone(tmp_path):
    histogram = Summary.Value(tag="weights", histo=HistogramProto(min=0, max=1))
    events = [
        Event(step=1, summary=Summary(value=[histogram])),
        Event(graph_def=b"graph"),
        Event(session_log=SessionLog(status=SessionLog.START)),
        tensor_event("note", 0, TensorProto(dtype=STRING, string_val=[b"x"]), "text"),
    ]
    read = read_event_file(write_events(tmp_path, events))
    assert read.tags == {"weights": "histograms", "": "graphs", "note": "text"}
    assert read.scalars == {}


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (b"", "events.out.tfevents.1 is empty"),
        (b"fileFormatVersion: 2\n" * 8, "events.out.tfevents.1 is not an event file (168 B without one record)"),
    ],
)
def test_empty_and_foreign_files_give_a_note(tmp_path, content, note):
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(content)
    assert [str(n) for n in read_event_file(path).notes] == [note]


def test_damage_is_noted_with_its_offset_and_nothing_else_is_lost(tmp_path):
    path = event_file(tmp_path, {"loss": [3.0, 2.0, 1.0]})
    data = bytearray(path.read_bytes())
    data[-60] ^= 1  # in the second of three points
    path.write_bytes(bytes(data) + b"\x18\0\0")
    read = read_event_file(path)
    assert values(read, "loss") == [3.0, 1.0]
    assert ["damaged at byte" in str(note) for note in read.notes] == [True, False]
    assert str(read.notes[1]).endswith(f"ends in an unfinished record at byte {len(data):,} (3 B)")


def test_a_peek_names_the_scalar_tags(tmp_path):
    assert list(scalar_tags_at_start(event_file(tmp_path, {"loss/train": [1.0], "lr": [0.1]}))) == ["loss/train", "lr"]
    assert list(scalar_tags_at_start(tmp_path / "gone")) == []


def histogram_events():
    new = TensorProto(
        dtype=DOUBLE,
        tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=2), TensorShapeProto.Dim(size=3)]),
        tensor_content=np.array([[0, 1, 5], [1, 2, 7]], "<f8").tobytes(),
    )
    old = HistogramProto(min=-1, max=2, num=12, bucket_limit=[0, 1, 1e300], bucket=[3, 4, 5])
    for step in range(200):
        yield tensor_event("kernel", step, new, "histograms")
        yield Event(step=step, wall_time=step, summary=Summary(value=[Summary.Value(tag="bias", histo=old)]))


def test_histograms_of_both_formats_are_columns(tmp_path):
    file = read_event_file(write_events(tmp_path, histogram_events()))
    kernel, bias = (file.histograms[tag].histograms("run", tag) for tag in ("kernel", "bias"))
    assert (len(kernel), len(bias)) == (200, 200)
    assert kernel.steps.tolist() == list(range(200))
    assert kernel[199].tolist() == [[0, 1, 5], [1, 2, 7]]
    assert bias[7].tolist() == [[-1, 0, 3], [0, 1, 4], [1, 2, 5]]  # its edges as TensorBoard converts them
    assert file.tags == {"kernel": "histograms", "bias": "histograms"}


def test_histograms_that_grow_keep_their_order(tmp_path):
    def event(step):
        rows = [[0.0, 1.0, float(step)]] * (1 + step % 3)
        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=len(rows)), TensorShapeProto.Dim(size=3)])
        event = tensor_event("w", step, TensorProto(dtype=DOUBLE, tensor_shape=shape, tensor_content=np.array(rows, "<f8").tobytes()))
        event.summary.value[0].ClearField("metadata")
        return event

    w = read_event_file(write_events(tmp_path, [event(step) for step in range(300)])).histograms["w"].histograms("", "w")
    assert w.steps.tolist() == list(range(300))
    assert [w[i][0, 2] for i in range(300)] == list(range(300))
    assert [len(w[i]) for i in range(5)] == [1, 2, 3, 1, 2]


def test_text_and_graphs_stay_where_they_lie_until_they_are_asked_for(tmp_path):
    note = TensorProto(dtype=STRING, string_val=[b"hello"])
    path = write_events(tmp_path, [scalar_event("loss", 0, 1.0), tensor_event("note", 3, note, "text"), Event(graph_def=b"graph")])
    file = read_event_file(path)
    (stored,) = file.stored["note"]
    assert (stored.step, stored.read().summary.value[0].tensor.string_val[0]) == (3, b"hello")
    assert file.stored[""][0].read().graph_def == b"graph"


def test_steps_of_a_regular_series_take_no_memory(tmp_path):
    path = write_events(tmp_path, [scalar_event("loss", 10 * step, 0.1) for step in range(100)])
    column = read_event_file(path).scalars["loss"]
    series = column.series("run", "loss")
    assert isinstance(series._steps, range)
    assert series.stored_values.dtype == np.float32
    assert series.steps.tolist() == list(range(0, 1000, 10))
    assert series.values[0] == float(np.float32(0.1))


def test_a_file_that_could_not_be_read_and_can_be_later_is_read_whole(tmp_path):
    file, reader = EventFile(str(tmp_path / "events.out.tfevents.1700000000.host.1.0")), Reader()
    reader.read([file])
    assert "could not be read" in str(file.notes[0])
    event_file(tmp_path, {"loss": [1.0, 0.5]})
    reader.read([file])
    assert values(file, "loss") == [1.0, 0.5]
    assert file.notes == []
