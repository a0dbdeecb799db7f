"""What can be wrong with a file: each mutator spoils one in place and says how.

A mutator takes a source of random numbers and a path. It gives its words for the report, or None
where the file is not one that it can spoil.
"""

import functools
import importlib
import json
import os
import random
import re
import struct
from collections.abc import Callable
from pathlib import Path

import google_crc32c

from tests.fuzz.hostile_values import NUMBERS, WORDS, spoil_tree

Mutator = Callable[[random.Random, Path], str | None]

GROUPS: dict[str, list[Mutator]] = {}
"""The mutators by what they know of a file."""

SPECIAL = "special"  # nothing at all can be read after one of these

_BIG = 1 << 20  # bytes of what is "without end", unless the memory is to be tried


def mutator(*groups: str) -> Callable[[Mutator], Mutator]:
    """Enters a mutator into groups."""

    def enter(function: Mutator) -> Mutator:
        for group in groups:
            GROUPS.setdefault(group, []).append(function)
        return function

    return enter


# --- Bytes -----------------------------------------------------------------------------------


@mutator("bytes")
def flip_bits(rng, path):
    data = bytearray(path.read_bytes())
    if not data:
        return None
    count = rng.choice([1, 1, 4, 64])
    for _ in range(count):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return f"{count} bits flipped"


@mutator("bytes", "packed")
def cut_off(rng, path):
    data = path.read_bytes()
    keep = rng.choice([1, len(data) // 2, max(len(data) - 1, 0), rng.randrange(len(data) + 1)])
    path.write_bytes(data[:keep])
    return f"cut after {keep} bytes"


@mutator("bytes", "packed")
def splice(rng, path):
    data = path.read_bytes()
    here, there = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    way = rng.choice(["taken out", "doubled", "moved to the front", "zeroed"])
    part = data[here:there]
    path.write_bytes(
        {
            "taken out": data[:here] + data[there:],
            "doubled": data[:there] + part + data[there:],
            "moved to the front": part + data[:here] + data[there:],
            "zeroed": data[:here] + bytes(len(part)) + data[there:],
        }[way]
    )
    return f"bytes {here} to {there} {way}"


@mutator("bytes", "lines")
def insert_bytes(rng, path):
    hostile = (
        b"\0",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\xc3",
        b"\x1b[2J",
        b"\x80" * 9,
        b"\r",
        b"\x1a",
    )
    data, more = path.read_bytes(), rng.choice(hostile)
    at = rng.randrange(len(data) + 1)
    path.write_bytes(data[:at] + more + data[at:])
    return f"{more!r} at byte {at}"


@mutator("bytes", "packed")
def other_bytes(rng, path):
    data = rng.randbytes(rng.choice([1, 7, 8, 100, 4096]))
    path.write_bytes(rng.choice([data, path.read_bytes() + data, data + path.read_bytes()]))
    return f"{len(data)} random bytes"


# --- Lines of text ---------------------------------------------------------------------------


@mutator("lines")
def other_lines(rng, path):
    lines = path.read_bytes().split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    way = rng.choice(["left out", "twice", "swapped", "empty", "joined to the next"])
    if way == "left out":
        del lines[at]
    elif way == "twice":
        lines.insert(at, lines[at])
    elif way == "swapped":
        lines[at], lines[other] = lines[other], lines[at]
    elif way == "empty":
        lines[at] = b""
    else:
        lines[at : at + 2] = [b" ".join(lines[at : at + 2])]
    path.write_bytes(b"\n".join(lines))
    return f"line {at + 1} {way}"


@mutator("lines")
def other_word(rng, path):
    lines = path.read_bytes().split(b"\n")
    at, word = rng.randrange(len(lines)), rng.choice(WORDS)
    words = lines[at].split(b" ")
    words[rng.randrange(len(words))] = word.encode("utf-8", "surrogatepass")
    lines[at] = b" ".join(words)
    path.write_bytes(b"\n".join(lines))
    return f"line {at + 1} has the word {word[:20]!a}"


@mutator("lines")
def other_ends(rng, path):
    end = rng.choice([b"\r\n", b"\r", b"\x85", "\u2028".encode(), b"\n\n", b"", b"\0", b"\x0b"])
    path.write_bytes(path.read_bytes().replace(b"\n", end))
    return f"lines end with {end!r}"


@mutator("lines")
def other_encoding(rng, path):
    name = rng.choice(["utf-16", "utf-32", "latin-1", "cp949", "utf-8-sig", "utf-7"])
    text = path.read_text(encoding="utf-8", errors="replace")
    path.write_bytes(text.encode(name, errors="replace"))
    return f"in {name}"


@mutator("lines")
def long_line(rng, path):
    data, what = path.read_bytes(), rng.choice([b"x", b"x ", "é".encode(), b'"', b"[", b","])
    at = rng.randrange(len(data) + 1)
    path.write_bytes(data[:at] + what * (_BIG // len(what)) + data[at:])
    return f"a megabyte of {what!r} at byte {at}"


# --- JSON ------------------------------------------------------------------------------------


@mutator("json")
def other_value(rng, path):
    try:
        value = json.loads(path.read_bytes())
    except ValueError:
        return None
    value, words = spoil_tree(rng, value)
    path.write_text(json.dumps(value))
    return words


@mutator("json")
def other_grammar(rng, path):
    text = path.read_text(encoding="utf-8", errors="replace")
    nested = rng.choice([100, 2000, 100_000])
    new, words = rng.choice(
        [
            ("[" * nested, f"{nested} lists open"),
            ('{"a":' * nested, f"{nested} objects open"),
            (_doubled(text), "keys twice"),
            (text.replace(":", ': NaN, "x":', 1), "NaN"),
            (text + text, "twice"),
            ("\ufeff" + text, "a byte-order mark"),
            (text.replace('"', "'"), "other quotation marks"),
            (text.replace(",", ",,", 1), "two commas"),
            ("[" + "1," * 200_000 + "1]", "200,000 numbers"),
            ("1" * 5000, "a number of 5,000 digits"),
            (text.replace('"', '"\\ud800', 1), "half a surrogate pair"),
            (text.replace('"', '"\\u0000', 1), "an escaped NUL"),
        ]
    )
    path.write_text(new, encoding="utf-8")
    return words


def _doubled(text):
    inner = text.strip()[1:-1]
    return f"{{{inner},{inner}}}" if inner else text


@mutator("jsonl")
def other_value_of_a_line(rng, path):
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    at = rng.randrange(len(lines))
    try:
        value, words = spoil_tree(rng, json.loads(lines[at]))
    except ValueError:
        return None
    lines[at] = json.dumps(value)
    path.write_text("\n".join(lines))
    return f"line {at + 1}: {words}"


# --- Tables ----------------------------------------------------------------------------------


@mutator("table")
def other_cell(rng, path):
    text = path.read_text(encoding="utf-8", errors="replace")
    mark = "\t" if "\t" in text else "," if "," in text else " "
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    cells = lines[at].split(mark)
    where = rng.randrange(len(cells))
    way = rng.choice(["gone", "twice", "another", "another", "open quote", "all", "number"])
    if way == "gone":
        del cells[where]
    elif way == "twice":
        cells.insert(where, cells[where])
    elif way == "open quote":
        cells[where] = '"' + cells[where]
    elif way == "all":
        cells = [""] * len(cells)
    else:
        value = rng.choice(NUMBERS if way == "number" else WORDS)
        cells[where] = "9" * 400 if value == 10**400 else str(value)
    lines[at] = mark.join(cells)
    path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")
    return f"line {at + 1}, cell {where + 1}: {way}"


# --- Binary files that say what they hold ----------------------------------------------------


@mutator("records")
def other_frame(rng, path):
    """Changes a record's length, checksum or content; checksums of what is new are right."""
    records = _records(path.read_bytes())
    if not records:
        return None
    at = rng.randrange(len(records))
    way = rng.choice(["length", "checksum", "empty", "twice", "gone", *["feature"] * 5])
    frames = [_frame(record) for record in records]
    if way == "length":
        size = rng.choice([0, 1, 2**31, 2**40, 2**63, 2**64 - 1])
        head = struct.pack("<Q", size)
        frames[at] = head + struct.pack("<I", _masked(head)) + frames[at][12:]
        way += f" {size}"
    elif way == "checksum":
        frames[at] = frames[at][:-4] + rng.randbytes(4)
    elif way == "empty":
        frames[at] = _frame(b"")
    elif way == "twice":
        frames.insert(at, frames[at])
    elif way == "gone":
        del frames[at]
    else:
        record, way = _other_feature(rng, records[at])
        frames[at] = _frame(record)
    path.write_bytes(b"".join(frames))
    return f"record {at}: {way}"


def _records(data):
    found, at = [], 0
    while at + 12 <= len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        if at + 16 + size > len(data):
            break
        found.append(data[at + 12 : at + 12 + size])
        at += 16 + size
    return found


def _frame(record):
    head = struct.pack("<Q", len(record))
    sums = struct.pack("<I", _masked(head)), struct.pack("<I", _masked(record))
    return head + sums[0] + record + sums[1]


def _masked(data):
    value = google_crc32c.value(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _other_feature(rng, record):
    import tensorflow as tf

    try:
        example = tf.train.Example.FromString(record)
    except Exception:
        return rng.randbytes(50), "random bytes"
    features = example.features.feature
    if not features:
        return rng.randbytes(50), "random bytes"
    name = rng.choice(sorted(features))
    way = rng.choice(
        ["gone", "bytes", "floats", "empty", "number", "longer", "another name", "raw"]
    )
    one = features[name]
    held = one.int64_list.value or one.float_list.value
    if way == "gone":
        del features[name]
    elif way == "bytes":
        one.bytes_list.value[:] = [b"\xff", b""]
    elif way == "floats":
        one.float_list.value[:] = [float("nan"), float("inf"), -1.0]
    elif way == "empty":
        one.Clear()
    elif way == "longer":
        held.extend([1] * rng.choice([1, 1000]))
    elif way == "number" and held:
        number = rng.choice([-1, 2**31, -(2**63), 2**63 - 1, 99999])
        held[rng.randrange(len(held))] = number
    elif way == "another name":
        features[name + "\u202e"].CopyFrom(one)
    else:
        return rng.randbytes(len(record)), "random bytes"
    return example.SerializeToString(), f"{name} {way}"


@mutator("safetensors")
def other_header(rng, path):
    """Changes the header, and keeps the length in front of it right (most often)."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    if rng.random() < 0.2:
        size = rng.choice([0, 1, size + 1, size - 1, 2**31, 2**63, 2**64 - 1, len(data)])
        path.write_bytes(struct.pack("<Q", size) + data[8:])
        return f"a header of {size} bytes"
    value, words = spoil_tree(rng, json.loads(data[8 : 8 + size]))
    header = json.dumps(value).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data[8 + size :])
    return f"header: {words}"


@mutator("npy")
def other_array_header(rng, path):
    data = path.read_bytes()
    (size,) = struct.unpack_from("<H", data, 8)
    descr = rng.choice(
        ["'<f4'", "'|O'", "'<f8'", "'>f4'", "'<U9'", "'|V0'", "[('a','<f4')]", "'x'"]
    )
    shape = rng.choice(
        ["(3, 16)", "(1000000000000, 16)", "(-1, 16)", "(3,)", "()", "(0, 16)", "(3, 0)", "'x'"]
    )
    header = (
        f"{{'descr': {descr}, 'fortran_order': {rng.choice([True, False, 2])}, 'shape': {shape}"
    )
    header += rng.choice([", }", "}", "", ", 'x': " + "(" * 300])
    if rng.random() < 0.2:
        header = rng.choice(["", "\xff" * 20, "x" * 60_000, "[" * 9000, "__import__('os')"])
    more = header.encode("latin-1").ljust(54) + b"\n"
    path.write_bytes(data[:8] + struct.pack("<H", len(more) % 65536) + more + data[10 + size :])
    return f"header {header[:50]!a}"


# --- What is no file -------------------------------------------------------------------------


def _gone(path):
    if path.exists() or path.is_symlink():
        path.unlink()


@mutator(SPECIAL)
def pipe(rng, path):
    _gone(path)
    os.mkfifo(path)
    return "a pipe"


@mutator(SPECIAL)
def device(rng, path):
    name = rng.choice(["/dev/zero", "/dev/zero", "/dev/null", "/dev/full", "/dev/urandom"])
    _gone(path)
    path.symlink_to(name)
    return name


@mutator(SPECIAL)
def folder(rng, path):
    _gone(path)
    path.mkdir()
    return "a folder"


@mutator(SPECIAL)
def link(rng, path):
    _gone(path)
    target = rng.choice(["nowhere", path.name, ".", "x" * 200 + "/y"])
    path.symlink_to(target)
    return f"a link to {target[:20]}"


@mutator(SPECIAL)
def empty(rng, path):
    path.write_bytes(rng.choice([b"", b"", b"\n", b" \n\t\n", b"\xef\xbb\xbf"]))
    return "empty or nearly so"


@mutator("gone")
def gone(rng, path):
    _gone(path)
    return "gone"


# --- Flags -----------------------------------------------------------------------------------

_OF_OUTPUTS = re.compile("output|dir|html|picture|held_out|work|vocab_file")


def other_flag(rng: random.Random, words: list[str], names: list[str]) -> tuple[list[str], str]:
    """Gives one flag of a command another value, or adds one.

    Args:
        rng: chooses.
        words: the command's.
        names: the flags that its tool has.

    Returns:
        The words with the change, and the change.
    """
    name = rng.choice(names)
    values = [
        rng.choice(NUMBERS),
        rng.choice(NUMBERS),
        rng.choice(WORDS),
        "1,2,3",
        "a,b",
        '"a',
        "[",
    ]
    value = rng.choice(values)
    text = "9" * 400 if value == 10**400 else str(value).replace("\0", "")
    if _OF_OUTPUTS.search(name) and ("/" in text or "." in text):
        text = "x" * 300  # nothing outside of the case's folder is written
    way = rng.random()
    new = f"--{name}" if way < 0.05 else f"--no{name}" if way < 0.1 else f"--{name}={text}"
    others = [word for word in words if not word.startswith(f"--{name}=") or way > 0.9]
    encodable = new.encode("utf-8", "surrogateescape" if "\udc80" in new else "replace").decode(
        "utf-8", "surrogateescape"
    )
    return [*others, encodable], encodable[:80]


# --- Bombs -----------------------------------------------------------------------------------

_PACKERS = {".gz": "gzip", ".xz": "lzma", ".bz2": "bz2"}


@mutator("bombs")
def bomb(rng, path):
    """Much in a small file: a packed gigabyte, or a quarter of one in holes."""
    what = rng.choice([b"\0", b"x", b"a b ", b"[", b'"', b"\n"])
    if path.suffix in _PACKERS:
        path.write_bytes(_packed(_PACKERS[path.suffix], what) * 64)
        return f"a packed gigabyte of {what!r}"
    with path.open("r+b") as file:
        file.seek(1 << 28)
        file.write(b"\n")
    return "256 MB of holes after its content"


@functools.cache
def _packed(packer, what):
    """Sixteen megabytes, which may be packed once and stand there often."""
    return importlib.import_module(packer).compress(what * ((16 << 20) // len(what)))


def spoil(rng: random.Random, path: Path, groups: str) -> tuple[str, str]:
    """Spoils a file by one mutator of some groups, each group as likely as the others.

    Args:
        rng: chooses.
        path: the file.
        groups: their names, separated by blanks.

    Returns:
        The mutator's group and its words.
    """
    for _ in range(20):
        group = rng.choice(groups.split())
        function = rng.choice(GROUPS[group])
        before = path.read_bytes()
        try:
            words = function(rng, path)
        except (ValueError, struct.error):
            continue  # it is of another kind than the mutator knows
        unchanged = path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 24
        if words and not (unchanged and path.read_bytes() == before):
            return group, words
    return "bytes", other_bytes(rng, path)
