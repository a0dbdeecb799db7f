import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

CASED = Vocabulary([*SPECIAL_TOKENS, *(f"Word{n}" for n in range(300)), *"abc"])
HINDI = Vocabulary([*SPECIAL_TOKENS, *(f"{chr(0x915 + n)}े" for n in range(33))])  # के, खे, ...
KOREAN = Vocabulary([*SPECIAL_TOKENS, *(chr(0xAC00 + n) for n in range(100))])
UNCASED = Vocabulary([*SPECIAL_TOKENS, *(f"word{n}" for n in range(2000))])


@pytest.mark.parametrize(
    ("do_lower_case", "strip_accents", "removes"),
    [(True, None, True), (False, None, False), (True, False, False), (False, True, True)],
)
def test_accents_follow_the_casing_unless_they_are_settled(do_lower_case, strip_accents, removes):
    assert TextSettings(CASED, do_lower_case, strip_accents).removes_accents is removes


@pytest.mark.parametrize(
    ("vocabulary", "do_lower_case", "says"),
    [
        (CASED, True, "do_lower_case is on, but 300 of 308 tokens"),
        (CASED, False, None),
        (UNCASED, True, None),
        (UNCASED, False, "do_lower_case is off, but none of the 2005 tokens"),
        (Vocabulary([*SPECIAL_TOKENS, "word", "##s"]), False, None),
        (KOREAN, True, "do_lower_case is on, but 100 of 105 tokens"),
        (KOREAN, False, None),
        (HINDI, True, "do_lower_case is on, but 33 of 38 tokens"),
        (HINDI, False, None),
    ],
)
def test_casing_that_contradicts_the_vocabulary_is_said(vocabulary, do_lower_case, says):
    sentence = TextSettings(vocabulary, do_lower_case).contradiction()
    assert sentence is None if says is None else sentence.startswith(says)


@pytest.mark.data
@pytest.mark.parametrize("name", ["uncased", "cased", "multilingual-cased"])
def test_the_published_vocabularies_go_with_their_casing(data_folder, name):
    vocabulary = Vocabulary.load(data_folder / "vocab" / f"bert-base-{name}-vocab.txt")
    assert TextSettings(vocabulary, do_lower_case=name == "uncased").contradiction() is None
    assert TextSettings(vocabulary, do_lower_case=name != "uncased").contradiction() is not None


def test_syllables_stay_whole_where_accents_are_kept():
    assert TextSettings(KOREAN, do_lower_case=True, strip_accents=False).contradiction() is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"unicode_form": "NFC"}, "it must be one of as_is, nfc"),
        ({"do_lower_case": "False"}, "do_lower_case is 'False'; it must be true or false"),
        ({"vocabulary": "vocab.txt"}, r"is no Vocabulary; give Vocabulary\.load"),
    ],
)
def test_what_would_be_taken_for_another_choice_is_refused(options, sentence):
    with pytest.raises(UserError, match=sentence):
        TextSettings(**{"vocabulary": CASED, **options})
