"""The directive that runs a page's examples."""

import pytest

pytest.importorskip("sphinx", reason="needs the extra `docs`")


@pytest.fixture
def session(tmp_path):
    from docs.extensions.examples import Session

    return Session(tmp_path / "page")


def test_a_page_shows_what_a_reader_sees_on_both_streams(session):
    assert session.shell("echo result; echo warning >&2", 0) == "result\nwarning\n"
    code = "import sys\nprint('result')\nprint('warning', file=sys.stderr)\n1 + 1"
    assert session.python(code) == "result\nwarning\n2\n"
