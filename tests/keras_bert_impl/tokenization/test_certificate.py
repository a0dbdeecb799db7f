from keras_bert_impl.tokenization import certificate as certificate_module
from keras_bert_impl.tokenization.certificate import certify_lines
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import TokenBlock, Tokenizer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "the", "word", "##s"])


class WrongAboutWords(Tokenizer):
    def encode_lines(self, lines):
        ids, offsets = super().encode_lines(lines)
        ids[ids == 6] = 1
        return TokenBlock(ids, offsets)


def test_an_exact_tokenizer_has_no_differences():
    lines = ["The words.", b"the \xff", "", "ΑΣ"] * 700
    assert certify_lines(Tokenizer(TextSettings(VOCABULARY)), lines).differing == 0


def test_differences_are_counted_and_the_first_ones_shown():
    lines = ["the", *["the words"] * 12]
    result = certify_lines(WrongAboutWords(TextSettings(VOCABULARY)), lines)
    assert (result.compared, result.differing, len(result.first_differences)) == (13, 12, 10)
    assert result.first_differences[0] == {
        "line": "the words",
        "ids": [5, 1, 7],
        "reference_ids": [5, 6, 7],
    }


def test_characters_of_another_unicode_version_are_left_out(monkeypatch):
    monkeypatch.setattr(certificate_module, "drifted_characters", lambda: {"q"})
    result = certify_lines(Tokenizer(TextSettings(VOCABULARY)), ["the", "q", "the q"])
    assert (result.compared, result.left_out) == (1, 2)


def test_the_longest_word_is_that_of_the_settings():
    settings = TextSettings(Vocabulary([*SPECIAL_TOKENS, "a", "##a"]), longest_word=100)
    assert certify_lines(Tokenizer(settings), ["a" * 100, "a" * 101]).differing == 0
