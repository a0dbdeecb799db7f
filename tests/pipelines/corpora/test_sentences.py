import re
import textwrap
from pathlib import Path

import pytest
import sentencex
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpora.sentences import are_cut, joined_lines, split_paragraph

HARD = Path(__file__).parents[2] / "golden" / "sentences"
CODES = {"english": "en", "korean": "ko"}


def marked(language):
    """The hand-marked paragraphs as pairs of text and sentences."""
    for line in (HARD / f"{language}.txt").read_text(encoding="utf-8").splitlines():
        text = line.replace(" ‖ ", " ").replace("‖", "")
        yield text, [sentence.strip() for sentence in line.split("‖")]


@pytest.mark.parametrize(
    ("language", "least"),
    [("english", 49), ("korean", 48), ("english_more", 47), ("korean_more", 49)],
)
def test_hard_sentences(language, least):
    cases = list(marked(language))
    code = CODES[language.removesuffix("_more")]
    right = sum(split_paragraph(text, code) == sentences for text, sentences in cases)
    assert len(cases) >= 50
    assert right >= least


@pytest.mark.parametrize("opened", ["", "「"])
def test_a_long_paragraph_without_blanks_is_split_in_pieces(monkeypatch, opened):
    """The library's time is quadratic; an unclosed quotation is not waited for."""
    sizes, true_segment = [], sentencex.segment
    monkeypatch.setattr(
        sentencex, "segment", lambda code, text: sizes.append(len(text)) or true_segment(code, text)
    )
    text = "彼は「雨だ。寒い。」と言った。私は家に帰った！"
    found = split_paragraph(opened + text * 1000, "ja")
    assert max(sizes) < 20_000
    if not opened:
        assert found == split_paragraph(text, "ja") * 1000


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


ENGLISH = (
    "The old house stood at the end of a narrow lane, where nobody had lived since the winter of "
    "the great storm. Its windows were dark, and yet the neighbours, who were sensible people, "
    "swore that a light had been seen there. I did not believe a word of it; but on the evening "
    "of which I want to tell I was on my way home, rather late, and looked up by chance."
)
GERMAN = (
    "Die Bundesregierung hat am Mittwoch beschlossen, dass der Ausbau der Infrastruktur schneller "
    "vorangehen soll, wie ein Sprecher des Ministeriums in Berlin mitteilte. Die Länder und "
    "Gemeinden sollen dafür in den kommenden Jahren mehr Geld aus dem Haushalt des Bundes erhalten."
)
KOREAN = (
    "오래된 집은 좁은 골목 끝에 서 있었는데 큰 폭풍이 지나간 겨울부터 아무도 살지 않았다. 창문은 "
    "어두웠지만 이웃 사람들은 그곳에서 불빛을 보았다고 했다. 나는 그 말을 믿지 않았으나 그날 저녁 "
    "늦게 집으로 돌아가는 길에 우연히 고개를 들어 올려다보았다."
)
JAPANESE = (
    "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で"
    "ニャーニャー泣いていた事だけは記憶している。吾輩はここで始めて人間というものを見た。しかもあとで"
    "聞くとそれは書生という人間中で一番獰悪な種族であったそうだ。"
)
CHINESE = (
    "今天天气很好，我们一起去学校学习，老师讲了一个很长的故事，大家都觉得非常有趣。下课以后，我和朋友们"
    "一起回家吃饭，然后在公园里散步聊天，直到天黑才回去休息。第二天早上又下起了大雨。"
)
THAI = (
    "วันนี้อากาศดีมากฉันไปโรงเรียน ที่นี่มีอาหารอร่อย และเพื่อนของฉันก็มาด้วย เราเดินเล่นในสวนสาธารณะ "
    "แล้วกลับบ้านตอนเย็น พรุ่งนี้เราจะไปเที่ยวทะเลด้วยกัน ถ้าฝนไม่ตก"
)


WRAPPED = {
    "English": (textwrap.wrap(ENGLISH, 72), ENGLISH),
    "Korean": (textwrap.wrap(KOREAN, 40), KOREAN),
    "Japanese": (textwrap.wrap(JAPANESE, 36), JAPANESE),
    "Chinese": (textwrap.wrap(CHINESE, 24), CHINESE),
    "Thai": (textwrap.wrap(THAI, 50), THAI),
    "a mail's quotation": ([f"> {line}" for line in textwrap.wrap(ENGLISH, 68)], f"> {ENGLISH}"),
    "a man page": (textwrap.wrap(ENGLISH, 72, initial_indent=" " * 7, subsequent_indent=" " * 7),
                   ENGLISH),
}  # fmt: skip


@pytest.mark.parametrize("times", [1, 9])
@pytest.mark.parametrize(("lines", "paragraph"), WRAPPED.values(), ids=WRAPPED)
def test_lines_cut_at_one_width_are_joined_to_their_paragraph(lines, paragraph, times):
    assert are_cut([*lines, ""] * times)
    joined = [" ".join(one.split()) for one in joined_lines([*lines, ""] * times)]
    assert joined == [paragraph] * times


SENTENCES = [one.strip() for one in f"{ENGLISH} {GERMAN}".replace(". ", ".|").split("|")]
POEM = """\
April is the cruellest month, breeding
Lilacs out of the dead land, mixing
Memory and desire, stirring
Dull roots with spring rain.
Winter kept us warm, covering
Earth in forgetful snow, feeding
A little life with dried tubers.
""".splitlines()
SMALL_POEM = """\
so much of the long day
depends on a red wheel, on the turning of it
and on the rain that came
glazed with the water of a morning nobody wanted
beside the white and very quiet chickens
that walk
and do not ask for anything at all, or for more
""".splitlines()
PLAIN = {
    "a paragraph a line": [ENGLISH, GERMAN, KOREAN, ENGLISH],
    "a sentence a line": SENTENCES,
    "without capitals": [one.rstrip(".").lower() for one in SENTENCES],
    "a poem": POEM,
    "a poem without capitals": SMALL_POEM,
    "a list": [f"- {word} and some more of them" for word in ENGLISH.lower().split()],
    "names of one length": ["Alexander Bartholomew of the City of London"] * 40,
    "figures": [f"{n:06d} {n * n:012d} {n * n * n:018d} sum of all" for n in range(90)],
    "Japanese sentences": [f"{one}。" for one in JAPANESE.split("。")],
    "Thai phrases": THAI.split(),
    "tweets": [one[: 60 + n * 17 % 80] + "!" for n, one in enumerate([ENGLISH, GERMAN] * 20)],
    "nothing": ["", None, "  "],
}


@pytest.mark.parametrize("lines", PLAIN.values(), ids=PLAIN)
def test_lines_that_are_no_parts_of_paragraphs_stay(lines):
    assert not are_cut(lines)


def test_items_of_lists_and_headings_in_a_wrapped_text_stay():
    prose = textwrap.wrap(ENGLISH, 72)
    listed = ["- eggs", "- milk that was", "  left over", "1. the first", "(b) the other"]
    text = [*prose, "", "CHAPTER II", "", *listed, "", *prose, "    A new one.", None]
    expected = [
        *(ENGLISH, "CHAPTER II"),
        *("- eggs", "- milk that was left over", "1. the first", "(b) the other"),
        *(ENGLISH, "    A new one.", None),
    ]
    assert list(joined_lines(text)) == expected


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        (["a well-", "known man"], "a well-known man"),
        (["he came--", "and went"], "he came--and went"),
        (["東京へ", "行く"], "東京へ行く"),
        (["서울에", "간다"], "서울에 간다"),
        (["the 東京", "tower"], "the 東京 tower"),
    ],
)
def test_a_blank_stands_between_lines_where_the_script_has_one(lines, joined):
    assert list(joined_lines(lines)) == [joined]


@pytest.mark.parametrize("lines", [["> a", "b"], ["a", "  b"], ["a", "", "b"], ["> a", ">", "> b"]])
def test_a_quotation_an_indent_and_an_empty_line_end_a_paragraph(lines):
    assert list(joined_lines(lines)) == [one for one in lines if one not in ("", ">")]


@given(st.lists(st.none() | st.text("> -*1.)(a B漢한\t\r\x0b", max_size=60), max_size=30))
def test_no_word_is_lost_or_moved(lines):
    are_cut(lines)
    words = lambda parts: re.sub(r"[\s>]", "", "".join(filter(None, parts)))  # noqa: E731
    joined = list(joined_lines(lines))
    assert words(joined) == words(lines)
    assert joined.count(None) == lines.count(None)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "He said no. ‖ I left."),
        ("en", "She makes art. ‖ He likes it."),
        ("en", "See vol. I of it. ‖ Figs. A and B, and Eqs. (A.1) and (A.2), tell of No. Five."),
        ("en", "He said no. ‖ One of them left. ‖ You need vitamin C. ‖ It helps you."),
        ("en", "It took 5 sec. ‖ Then it stopped, c. 1900 (pp. xi and 5)."),
        ("fr", "C'est l'art. L. 442-6 du Code. ‖ Art. Premier de la loi."),
        ("zh", "“走吧。”他说。‖“好极了！”‖这门学问很深。‖“万岁！”‖总统访问了北京。"),
        ("ja", "「行こう。」‖とある日、彼は来た。‖「行く。」と言った。"),
        ("ko", "“네.” 그녀가 답했다. ‖ “그래!” ‖ 답하라 1988이 좋다."),
        ("en", "See No. 5 and fig. 2 (vol. XII, Art. I, Sec. 4). ‖ It is in eq. (3) on pp. xi–xv."),
        ("es", "Él dijo que no. ‖ Luego se fue."),
        ("it", "Ha detto di no. ‖ Poi è andato."),
        ("de", "Er macht es auf diese Art. ‖ Dann geht er."),
        ("ja", "「本当？」と彼は言った。‖「行く。」と言った。‖そうだ！"),
        ("ja", "彼は「行く。」と言った。‖「本当？」って聞いた。‖『来い！』という声がした。"),
        ("ja", "「はい。」‖ところが彼は来なかった。"),
        ("zh", "“你好！”他说。‖“你是谁？”她大声问道。‖“快跑！”大家喊。"),
        ("zh", "“怎么办？”‖这个问题很难。‖“再见。”‖她走了。"),
        ("ko", "“네.” 그녀가 답했다. ‖ “그래!” 소리를 질렀다. ‖ “응?” 하고 되물었다."),
        ("ko", "“몰라요.” ‖ 민수는 고개를 저었다."),
    ],
)
def test_words_that_may_be_abbreviations_and_words_around_quotations(language, text):
    whole = text.replace(" ‖ ", " ").replace("‖", "")
    assert split_paragraph(whole, language) == [one.strip() for one in text.split("‖")]
