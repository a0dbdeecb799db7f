"""The drawing of the rooms says what BUILD.md and the code say."""

from docs.extensions.rooms import DRAWING, ROOT, drawing, rooms_of

PAGE = (ROOT / "BUILD.md").read_text(encoding="utf-8")


def test_the_drawing_is_the_one_of_the_table():
    """After a change of the table: `python -m docs.extensions.rooms`."""
    assert DRAWING.read_text(encoding="utf-8") == drawing(PAGE)


def test_every_folder_of_the_code_is_a_room_of_its_house():
    for house, rooms in rooms_of(PAGE).items():
        folders = {path.parent.relative_to(ROOT / house) for path in (ROOT / house).rglob("*.py")}
        folders |= {path.parent.relative_to(ROOT / house) for path in (ROOT / house).rglob("*.cfg")}
        assert {path.parts[0] for path in folders if path.parts} == {room.name for room in rooms}


def test_a_box_holds_its_words():
    for rooms in rooms_of(PAGE).values():
        assert all(0 < len(room.holds) <= 50 for room in rooms)
