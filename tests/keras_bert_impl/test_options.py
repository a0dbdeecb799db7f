import dataclasses
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import (
    FREE,
    ONCE,
    REQUIRED,
    as_list_text,
    changed_settings,
    check_options,
    items_of,
    nested,
    option,
    options_of,
    settings_of,
)


@dataclass(frozen=True, kw_only=True)
class Engine:
    power: float = option(1.0, "In kW.", more_than=0)
    seed: int = option(7, "Fixes it.", at_least=0, at_most=2**32 - 1)
    fuel: str = option("air", "What it burns.", choices=("air", "water"), resume=FREE)
    gears: tuple[int, ...] = option((1, 2), "Its gears.", resume=FREE)

    def __post_init__(self):
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class Car:
    name: str = option(REQUIRED, "What it is called.")
    doors: int | None = option(None, "How many doors.", at_least=1)
    share: float = option(0.5, "A share.", more_than=0, at_most=1)
    dry_run: bool = option(False, "Try only.", resume=ONCE)
    notes: str = ""
    engine: Engine = nested(Engine)
    spare: Engine = nested(
        Engine, prefix="spare_", defaults={"power": 2.0, "seed": 8}, without=("seed",)
    )

    def __post_init__(self):
        check_options(self)


def test_a_field_with_an_option_is_an_ordinary_field():
    assert Car(name="a").share == 0.5
    assert Car(name="a").engine == Engine()
    assert Car(name="a").spare == Engine(power=2.0, seed=8)
    with pytest.raises(TypeError, match="name"):
        Car()


def test_options_are_listed_in_order_with_those_of_nested_configs_and_without_other_fields():
    listed = [(one.name, one.path, one.type, one.default) for one in options_of(Car)]
    assert listed == [
        ("name", ("name",), str, REQUIRED),
        ("doors", ("doors",), int, None),
        ("share", ("share",), float, 0.5),
        ("dry_run", ("dry_run",), bool, False),
        ("power", ("engine", "power"), float, 1.0),
        ("seed", ("engine", "seed"), int, 7),
        ("fuel", ("engine", "fuel"), str, "air"),
        ("gears", ("engine", "gears"), tuple[int, ...], (1, 2)),
        ("spare_power", ("spare", "power"), float, 2.0),
        ("spare_fuel", ("spare", "fuel"), str, "air"),
        ("spare_gears", ("spare", "gears"), tuple[int, ...], (1, 2)),
    ]
    assert options_of(Car)[0].rules.sentence == "What it is called."


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Car(name="a", doors=0), "`doors=0` must be 1 or more."),
        (lambda: Car(name="a", share=0.0), "`share=0.0` must be more than 0 and at most 1."),
        (lambda: Car(name="a", share=1.5), "`share=1.5` must be more than 0 and at most 1."),
        (lambda: Engine(power=0), "`power=0` must be more than 0."),
        (lambda: Engine(power=float("nan")), "`power=nan` must be more than 0."),
        (lambda: Engine(seed=-1), "`seed=-1` must be 0 to 4294967295."),
        (lambda: Engine(seed=2**32), "`seed=4294967296` must be 0 to 4294967295."),
        (
            lambda: Car(name="a", doors=10**23),
            "`doors=100000000000000000000000` must be at most 2147483647.",
        ),
        (lambda: Engine(power=float("inf")), "`power=inf` must be a finite number."),
        (
            lambda: Engine(gears=(1, 2**63)),
            "`gears=9223372036854775808` must be at most 9223372036854775807.",
        ),
        (
            lambda: Engine(gears=(1, -(2**63) - 1)),
            "`gears=-9223372036854775809` must be -9223372036854775808 or more.",
        ),
        (lambda: Engine(gears=(1, float("nan"))), "`gears=nan` must be a finite number."),
        (lambda: Engine(gears=(10**5000,)), "`gears=<int>` must be at most 9223372036854775807."),
        (lambda: Car(name="a", doors=2**31), "`doors=2147483648` must be at most 2147483647."),
        (lambda: Engine(fuel="oil"), "`fuel=oil` is unknown; choose air or water."),
    ],
)
def test_a_value_that_breaks_the_rules_is_refused_by_name(make, said):
    with pytest.raises(UserError) as error:
        make()
    assert str(error.value) == said


@given(st.integers(-5, 5), st.integers(-5, 5), st.integers(-5, 5))
def test_bounds_are_inclusive(low, high, value):
    rules = dataclasses.fields(
        dataclasses.make_dataclass("C", [("x", int, option(0, "It.", at_least=low, at_most=high))])
    )[0].metadata["option"]
    assert (rules.broken_by(value) is None) == (low <= value <= high)


def test_a_file_may_be_in_the_home():
    @dataclasses.dataclass(frozen=True)
    class Written:
        output_dir: str = option(REQUIRED, "Where to.")
        vocab_file: str = option("", "By which tokens.")
        input_file: tuple[str, ...] = option((), "Of what.")
        text: str = option("~/", "What.")
        index: Path | None = option(None, "Among what.")
        parts: tuple[Path, ...] = option((), "In which parts.")

        def __post_init__(self):
            check_options(self)

    assert Written("~/run").output_dir == str(Path.home() / "run")
    assert Written("run~").output_dir == "run~"
    assert Written("x", input_file=("~/a", "b")).input_file == (f"{Path.home()}/a", "b")
    paths = Written("x", index=Path("~/a"), parts=(Path("~/b"), Path("c")))
    assert (paths.index, paths.parts) == (Path.home() / "a", (Path.home() / "b", Path("c")))
    two = Written("x", "~/a,b~/c,~/d")
    assert (two.vocab_file, two.text) == (f"{Path.home()}/a,b~/c,{Path.home()}/d", "~/")


def test_none_is_not_held_against_bounds():
    assert Car(name="a", doors=None).doors is None


def test_a_resumed_run_must_have_the_same_unless_the_option_says_otherwise():
    assert settings_of(Engine()) == {"power": 1.0, "seed": 7}
    assert settings_of(Car(name="a")) == {"name": "a", "doors": None, "share": 0.5}


def test_changed_settings_name_what_was_added_and_what_is_gone():
    assert changed_settings({"a": 1, "b": 2}, {"b": 2, "c": 3}) == [("a", 1, None), ("c", None, 3)]


@given(st.lists(st.text(alphabet='a ,"\n=')))
def test_a_list_and_its_text_are_each_other_s(items):
    assert items_of(as_list_text(items)) == items


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", []),
        ("  ", []),
        ("a", ["a"]),
        (" a , b c ,", ["a", "b c", ""]),
        ('"a,b", "c" ,5" disk', ["a,b", "c", '5" disk']),
        ('""', [""]),
        ('"""a"""', ['"a"']),
        ("-1,-2", ["-1", "-2"]),
    ],
)
def test_commas_separate_the_items_of_a_list_but_within_quotation_marks(text, items):
    assert items_of(text) == items


@pytest.mark.parametrize("text", ['"a', '"a"b', ' "a', 'a, "b', '"a""'])
def test_quotation_marks_around_a_part_of_an_item_are_refused(text):
    with pytest.raises(UserError, match="is no list"):
        items_of(text)
