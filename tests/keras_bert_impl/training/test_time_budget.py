import time

import pytest

from keras_bert_impl.training.time_budget import TimeBudget, counting_hours


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_the_last_call_is_the_one_that_ends_nearest_to_the_end():
    clock = Clock()
    budget, step = TimeBudget(0.1, {}, clock), 0  # 357 seconds, and 3 after them
    while step < budget.kept["goal"]:
        step += 1
        budget.begin_call(step - 1, 1)
        # Neither compiling nor a pause makes calls seem long.
        clock.now += {1: 300.0, 3: 20.0}.get(step, 10.0)
        budget.end_call(1, 8)
    assert (step, clock.now, budget.kept["examples"]) == (6, 360.0, 48)


def test_one_quick_step_is_not_the_usual_one_and_calls_are_long_where_they_take_a_short_time():
    clock = Clock()
    budget = TimeBudget(1.0, {}, clock)
    assert budget.steps_per_call(100) == 1  # nobody knows
    for seconds in (500.0, 2.0, 2.0, 0.1, 2.0):
        budget.begin_call(0, 1)
        clock.now += seconds
        budget.end_call(1, 8)
    assert (budget.steps_per_call(10), budget.steps_per_call(100)) == (10, 1)
    clock.now = 3600 - 3 - 20.0
    budget.begin_call(700, 10)
    assert budget.kept["goal"] == 710


def test_the_end_takes_as_long_as_the_last_save_and_evaluation_took():
    clock = Clock()
    budget = TimeBudget(1.0, {}, clock)
    budget.end_call(1, 8)
    clock.now = 900.0
    assert budget.is_evaluation_due(each_turn=False)
    clock.now = 950.0
    budget.evaluated(50.0, at_end=4.0)
    budget.kept["save"] = 4.0
    assert budget.share() == 950.0 / (3600 - 200 - 6 - 3)
    clock.now = 1900.0
    assert budget.is_evaluation_due(each_turn=True)  # each one is cheap, whatever the end takes
    assert not budget.is_evaluation_due(each_turn=False)  # once is enough to know
    budget.evaluated(200.0, at_end=1.0)
    clock.now = 2700.0
    assert not budget.is_evaluation_due(each_turn=True)  # each costs too much


def test_neither_the_start_nor_what_is_compiled_moves_the_schedule():
    clock = Clock()
    budget = TimeBudget(1.0, {}, clock)

    def call(seconds, compiles=False):
        budget.begin_call(0, 1, compiles)
        before = budget.share()
        clock.now += seconds
        budget.end_call(1, 8)
        return before, budget.share()

    clock.now = 20.0  # opening, reading
    assert call(70.0, compiles=True) == (0.0, 0.0)  # as a run of steps: nothing moves at first
    for _ in range(35):
        call(10.02)
    before, after = call(50.02, compiles=True)
    assert before == pytest.approx(350.7 / 3507)
    assert after == pytest.approx(360.72 / 3467)  # the step itself counts, and less is left
    assert call(10.0)[1] > after
    clock.now = 3597.0
    assert budget.share() == 1.0


def test_of_a_few_long_calls_each_counts_though_each_may_compile():
    clock = Clock()
    budget, rates = TimeBudget(0.5, {}, clock), []
    for number in range(9):
        if number >= budget.kept["goal"]:
            break
        budget.begin_call(number, 1, compiles=True)
        rates.append(budget.share())
        clock.now += 240.0
        budget.end_call(1, 8)
    assert clock.now <= 1800.0 + 120.0
    assert rates[:2] == [0.0, 0.0]
    assert rates[2:] == sorted({*rates[2:]})
    assert rates[-1] > 0.7


def test_a_process_that_goes_on_stands_where_the_one_before_stood():
    clock = Clock()
    clock.now = 5000.0
    kept = {"hours": 1.0, "spent": 1887.0, "idle": 90.0}
    budget = TimeBudget(1.0, kept, clock)
    assert budget.share() == pytest.approx(1797 / 3507)
    clock.now += 60.0
    budget.begin_call(10, 1)
    clock.now += 30.0
    budget.end_call(1, 8)
    assert budget.share() == pytest.approx(1797 / 3417)
    # One of a version that did not know of idle seconds goes on, too.
    assert TimeBudget(1.0, {"hours": 1.0, "spent": 1798.5}, clock).share() == 0.5


def test_hours_count_from_the_command_and_go_on_from_what_a_checkpoint_keeps():
    with counting_hours():
        time.sleep(0.01)
        assert TimeBudget(1.0, {}).spent() >= 0.01
        assert 60.0 < TimeBudget(1.0, {"spent": 60.0}).spent() < 61.0
    assert TimeBudget(1.0, {}).spent() < 0.01
    kept = {"hours": 1.0, "goal": 7}
    assert TimeBudget(1.0, kept).kept["goal"] == 7
    assert TimeBudget(2.0, kept).kept["goal"] > 7  # more hours, another end


def test_with_more_hours_a_run_is_evaluated_at_their_quarters():
    kept = {"hours": 1.0, "spent": 2952.0, "turn": 3, "ending": 1.0}
    clock = Clock()
    budget = TimeBudget(4.0, kept, clock)
    assert budget.kept["turn"] == 0  # a fifth of four hours
    clock.now += 900.0
    budget.begin_call(0, 1)
    budget.end_call(1, 8)
    assert not budget.is_evaluation_due(each_turn=True)
    clock.now += 1800.0
    assert budget.is_evaluation_due(each_turn=True)
