from tests.support.adaptation import toy_adaptation


def test_the_warm_up_and_the_evaluations_follow_the_steps(tmp_path):
    config = toy_adaptation(tmp_path, num_train_steps=2000)
    assert (config.warmup_steps, config.steps_between_evaluations) == (200, 100)
    told = toy_adaptation(tmp_path, num_warmup_steps=0, eval_steps=7)
    assert (told.warmup_steps, told.steps_between_evaluations) == (0, 7)
    assert toy_adaptation(tmp_path, num_train_steps=3).steps_between_evaluations == 1
