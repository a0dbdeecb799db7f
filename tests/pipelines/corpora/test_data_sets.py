"""A data set that cannot be opened is one sentence; the readers' tests hold what real ones say."""

import pytest

from keras_bert_impl.errors import UserError
from pipelines.corpora.data_sets import opening_data_set


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no such split.\nIt has others."), "no such split"),
        (OSError(), "?"),
    ],
)
def test_what_goes_wrong_is_said_with_its_name_and_what_to_check(error, reason):
    with pytest.raises(UserError) as caught, opening_data_set("tfds:x", "its name"):
        raise error
    assert str(caught.value) == f"tfds:x: cannot be read ({reason}); check its name."


def test_a_mistake_of_our_own_is_none_of_the_users():
    with pytest.raises(TypeError), opening_data_set("tfds:x", "its name"):
        raise TypeError("a bug")
