"""Bytes into events, as servers and networks really send them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from agent.providers.events import Decoder, JsonLines, ServerSentEvents


def events(decoder: Decoder, *reads: bytes) -> list[object]:
    return [event for data in reads for event in decoder.feed(data)] + list(decoder.end())


def bytewise(data: bytes) -> Iterable[bytes]:
    return (data[n : n + 1] for n in range(len(data)))


def test_line_ends_of_two_characters_may_be_cut_in_two() -> None:
    decoder = ServerSentEvents()
    assert list(decoder.feed(b'data: {"a":1}\r')) == []
    assert list(decoder.feed(b"\n\r")) == [{"a": 1}]
    assert list(decoder.feed(b'\ndata:{"a":2}\r\n\r\n')) == [{"a": 2}]
    assert list(decoder.end()) == []


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end_there_is(end: bytes) -> None:
    data = b'data: {"a":1}\n\ndata:{"a":2}\n\n'.replace(b"\n", end)
    assert events(ServerSentEvents(), data) == events(ServerSentEvents(), *bytewise(data)) == [{"a": 1}, {"a": 2}]


def test_comments_and_names_between_and_nothing_after_the_end() -> None:
    data = b': ping\n\ndata: {"a":1}\n\nevent: x\ndata: {"a":2}\n\ndata: [DONE]\n\ndata: {"a":3}\n\n'
    for reads in ([data], bytewise(data)):
        decoder = ServerSentEvents()
        assert events(decoder, *reads) == [{"a": 1}, {"a": 2}]
        assert decoder.done


def test_data_of_several_lines_is_one_event() -> None:
    assert events(ServerSentEvents(), b'data: {"a":\ndata: 1}\n\n') == [{"a": 1}]


def test_events_without_data_are_none() -> None:
    assert events(ServerSentEvents(), b"data: \n\ndata\n\nevent: x\n\nid: 7\nretry: 3\n\n") == []


def test_a_last_event_counts_when_it_is_whole() -> None:
    assert events(ServerSentEvents(), b'data: {"a":1}\n\ndata: {"a":2}') == [{"a": 1}, {"a": 2}]
    assert events(ServerSentEvents(), b'data: {"a":1}\n\ndata: {"a":') == [{"a": 1}]


@pytest.mark.parametrize("data", [b"data: {broken\n\n", b"data: \xff\xfe\n\n", b"data: " + b"[" * 100_000 + b"\n\n"])
def test_what_is_no_json_is_a_fault_after_what_came_before_it(data: bytes) -> None:
    decoder = ServerSentEvents()
    found = decoder.feed(b'data: {"a":1}\n\n' + data)
    assert next(found) == {"a": 1}
    with pytest.raises(ValueError, match=r"Expecting|decode|deeply"):
        next(found)


@pytest.mark.parametrize(
    ("data", "event"),
    [
        (b'{"error": {"message": "busy"}}', {"error": {"message": "busy"}}),
        (b'{"message": "busy"}', {"error": {"message": "busy"}}),
        (b"overloaded", {"error": {"message": "overloaded"}}),
    ],
)
def test_an_event_named_error_is_one(data: bytes, event: object) -> None:
    assert events(ServerSentEvents(), b"event: error\ndata: " + data + b"\n\n") == [event]


def test_a_byte_order_mark_does_no_harm() -> None:
    data = b'\xef\xbb\xbfdata: {"a":1}\n\n'
    assert events(ServerSentEvents(), data) == events(ServerSentEvents(), *bytewise(data)) == [{"a": 1}]


@pytest.mark.parametrize("decoder", [ServerSentEvents, JsonLines])
@pytest.mark.parametrize("data", [b'{"a": [1]}', b'{\n "a": [\n  1\n ]\n}\n', b'\r\n{"a": [1]}\n'])
def test_a_plain_document_is_one_event(decoder: type[ServerSentEvents] | type[JsonLines], data: bytes) -> None:
    assert events(decoder(), data) == events(decoder(), *bytewise(data)) == [{"a": [1]}]


def test_a_json_value_a_line() -> None:
    data = '{"a":"x\u2028y\x85"}\r\n\n{"a":2}\n{"a":3}'.encode()
    expected = [{"a": "x\u2028y\x85"}, {"a": 2}, {"a": 3}]
    assert events(JsonLines(), data) == events(JsonLines(), *bytewise(data)) == expected
    assert events(JsonLines(), b'{"a":1}\n{"a":') == [{"a": 1}]


def test_a_line_that_is_no_json_is_a_fault() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        events(JsonLines(), b'{"a":1}\n<html>\n')
