"""What can be wrong with a file: each mutator spoils one in place and says how.

A mutator takes a source of random numbers and a path. It gives its words for the report, or None
where the file is not one that it can spoil.
"""

import functools
import importlib
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.hostile_values import NUMBERS, WORDS, spoil_tree

Mutator = Callable[[random.Random, Path], str | None]

GROUPS: dict[str, list[Mutator]] = {}
"""The mutators by what they know of a file."""

_BIG = 1 << 20  # bytes of what is "without end", unless the memory is to be tried


def mutator(*groups: str) -> Callable[[Mutator], Mutator]:
    """Enters a mutator into groups."""

    def enter(function: Mutator) -> Mutator:
        for group in groups:
            GROUPS.setdefault(group, []).append(function)
        return function

    return enter


# Bytes


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
    hostile = (b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\x1b[2J", b"\x80" * 9, b"\r")
    data, more = path.read_bytes(), rng.choice(hostile)
    at = rng.randrange(len(data) + 1)
    path.write_bytes(data[:at] + more + data[at:])
    return f"{more!r} at byte {at}"


@mutator("bytes", "packed")
def other_bytes(rng, path):
    data = rng.randbytes(rng.choice([1, 7, 8, 100, 4096]))
    path.write_bytes(rng.choice([data, path.read_bytes() + data, data + path.read_bytes()]))
    return f"{len(data)} random bytes"


# Lines of text


@mutator("lines")
def other_lines(rng, path):
    lines = path.read_bytes().split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[at : at + 1] = rng.choice([[], [b""], [lines[at]] * 2, [lines[other]]])
    path.write_bytes(b"\n".join(lines))
    return f"line {at + 1} is gone, empty, twice or another"


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
def other_encoding(rng, path):
    end = rng.choice(["\n", "\r\n", "\r", "\x85", "\u2028", "\n\n", "", "\0"])
    name = rng.choice(["utf-8", "utf-16", "utf-32", "latin-1", "cp949", "utf-8-sig"])
    text = path.read_text(encoding="utf-8", errors="replace").replace("\n", end)
    path.write_bytes(text.encode(name, errors="replace"))
    return f"in {name}, lines end with {end!r}"


@mutator("lines")
def long_line(rng, path):
    data, what = path.read_bytes(), rng.choice([b"x", b"x ", "é".encode(), b'"', b"[", b","])
    at = rng.randrange(len(data) + 1)
    path.write_bytes(data[:at] + what * (_BIG // len(what)) + data[at:])
    return f"a megabyte of {what!r} at byte {at}"


# JSON


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
            (text.replace(":", ': NaN, "x":', 1), "NaN"),
            (text + text, "twice"),
            ("\ufeff" + text, "a byte-order mark"),
            ("[" + "1," * 200_000 + "1]", "200,000 numbers"),
            (text.replace('"', '"\\ud800', 1), "half a surrogate pair"),
            (text.replace('"', '"\\u0000', 1), "an escaped NUL"),
        ]
    )
    path.write_text(new, encoding="utf-8")
    return words


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


# Tables


@mutator("table")
def other_cell(rng, path):
    text = path.read_text(encoding="utf-8", errors="replace")
    mark = "\t" if "\t" in text else "," if "," in text else " "
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    cells = lines[at].split(mark)
    where = rng.randrange(len(cells))
    other = rng.choice([*WORDS, *(number for number in NUMBERS if number != 10**400)])
    cells[where : where + 1] = rng.choice([[], cells[where : where + 1] * 2, ['"x'], [str(other)]])
    lines[at] = mark.join(cells)
    path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")
    return f"line {at + 1}, cell {where + 1} is gone, twice or another"


# Weights


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


# What is no file


@mutator("special")
def no_file(rng, path):
    path.unlink()
    target = rng.choice(["", "nowhere", path.name, ".", "x" * 200 + "/y"])
    if not target:
        path.mkdir()
        return "a folder"
    path.symlink_to(target)
    return f"a link to {target[:20]}"


@mutator("special")
def empty(rng, path):
    path.write_bytes(rng.choice([b"", b"", b"\n", b" \n\t\n", b"\xef\xbb\xbf"]))
    return "empty or nearly so"


@mutator("gone")
def gone(rng, path):
    path.unlink()
    return "gone"


# Bombs

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


def spoil(rng: random.Random, path: Path, groups: str) -> str:
    """Spoils a file by one mutator of a random group; gives its words."""
    for _ in range(20):
        function = rng.choice(GROUPS[rng.choice(groups.split())])
        before = path.read_bytes()
        try:
            words = function(rng, path)
        except (ValueError, struct.error):
            continue  # it is of another kind than the mutator knows
        unchanged = path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 24
        if words and not (unchanged and path.read_bytes() == before):
            return words
    return other_bytes(rng, path)
