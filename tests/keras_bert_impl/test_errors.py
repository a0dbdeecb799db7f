from keras_bert_impl.errors import UserError


def test_a_users_error_is_no_error_of_the_programmer():
    """Whoever catches ValueError or OSError around a call must not swallow a user's message."""
    assert UserError.__mro__[1] is Exception
    assert str(UserError("vocab.txt: is empty.")) == "vocab.txt: is empty."
