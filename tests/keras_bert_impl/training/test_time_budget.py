import time

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
    budget.evaluated(50.0, at_end=2.0)
    budget.kept["save"] = 4.0
    assert budget.share() == 950.0 / (3600 - 100 - 6 - 3)
    clock.now = 1900.0
    assert budget.is_evaluation_due(each_turn=True)
    assert not budget.is_evaluation_due(each_turn=False)  # once is enough to know
    budget.evaluated(200.0, at_end=1.0)
    clock.now = 2700.0
    assert not budget.is_evaluation_due(each_turn=True)  # each costs too much


def test_a_schedule_begins_when_the_first_call_is_done_and_is_at_its_end_with_the_last():
    clock = Clock()
    budget = TimeBudget(1.0, {}, clock)
    clock.now = 20.0  # opening, reading
    budget.begin_call(0, 1)
    assert budget.share() == 0.0  # as a run of steps: the moments are filled, nothing moves
    clock.now = 97.0  # tracing, compiling
    budget.end_call(1, 8)
    assert budget.share() == 0.0
    clock.now = 97.0 + 350.0
    assert budget.share() == 0.1
    later = TimeBudget(1.0, {**budget.kept, "spent": 447.0}, clock)
    assert later.share() == 0.1
    clock.now = 3597.0
    assert budget.share() == 1.0


def test_hours_count_from_the_command_and_go_on_from_what_a_checkpoint_keeps():
    with counting_hours():
        time.sleep(0.01)
        assert TimeBudget(1.0, {}).spent() >= 0.01
        assert 60.0 < TimeBudget(1.0, {"spent": 60.0}).spent() < 61.0
    assert TimeBudget(1.0, {}).spent() < 0.01
    kept = {"hours": 1.0, "goal": 7}
    assert TimeBudget(1.0, kept).kept["goal"] == 7
    assert TimeBudget(2.0, kept).kept["goal"] > 7  # more hours, another end
