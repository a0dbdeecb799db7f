from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpora.sentences import split_paragraph

HARD = Path(__file__).parents[2] / "golden" / "sentences"
CODES = {"english": "en", "korean": "ko"}


def marked(language):
    """The hand-marked paragraphs as pairs of text and sentences."""
    for line in (HARD / f"{language}.txt").read_text(encoding="utf-8").splitlines():
        text = line.replace(" ‖ ", " ").replace("‖", "")
        yield text, [sentence.strip() for sentence in line.split("‖")]


@pytest.mark.parametrize(
    ("language", "least"),
    [("english", 48), ("korean", 48), ("english_more", 47), ("korean_more", 49)],
)
def test_hard_sentences(language, least):
    cases = list(marked(language))
    code = CODES[language.removesuffix("_more")]
    right = sum(split_paragraph(text, code) == sentences for text, sentences in cases)
    assert len(cases) >= 50
    assert right >= least


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["Dr. Smith paid $3.50.", "Why?"]),
        ("en", ["See Fig. 3 and vol. 2.", "The end."]),
        ("en", ['"Stop!" John shouted.', "Everybody froze."]),
        ("en", ["(An aside.)", "The story goes on."]),
        ("en", ["1. Introduction"]),
        ("ko", ["그는 1950. 6. 25. 전쟁에 참전했다.", "이후 돌아왔다."]),
        ("ko", ["그는 “가자.”라고 말했다.", "우리는 갔다."]),
        ("ko", ["원주율은 3.14이다.", "왜?"]),
        ("en", ["i went home.", "then he came.", "what?", "i don't know!", "ok then."]),
        ("en", ["he said hello .", "she left ."]),
        ("en", ["Yahoo! was sold.", "iPhone sales rose.", "iPad sales fell."]),
        ("en", ["Is this the end? she wondered.", "It was not."]),
        ("ko", ["제목은 “왜?”였다.", "답은 없었다."]),
        ("ko", ["“그래?” 민수가 되물었다.", "“응.”", "그는 갔다."]),
        ("ko", ["“가자.”", "그는 일어섰다."]),
        ("de", ["Das kostet z. B. 3,50 Euro.", "Warum?"]),
        ("xx", ["One.", "Two."]),
        ("en", []),
    ],
)
def test_a_paragraph_becomes_sentences(language, sentences):
    assert split_paragraph(" ".join(sentences), language) == sentences


def test_japanese_and_chinese_need_no_spaces():
    assert split_paragraph("今日は晴れ。明日は雨。", "ja") == ["今日は晴れ。", "明日は雨。"]
    assert split_paragraph("你好。你呢？", "zh") == ["你好。", "你呢？"]


@given(
    st.lists(
        st.sampled_from(["A", "b", ".", "!", " ", "(", ")", '"', "Dr.", "3.", "다.", "라고", "。"])
    ),
    st.sampled_from(["en", "ko"]),
)
def test_no_text_is_lost(parts, language):
    text = "".join(parts)
    assert "".join("".join(split_paragraph(text, language)).split()) == "".join(text.split())
