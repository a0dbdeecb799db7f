from pipelines.fine_tuning.options import ManyRunsConfig


def test_the_default_is_one_run():
    runs = ManyRunsConfig()
    assert not runs.are_many
    assert list(runs.seeds(12345)) == [12345]
    assert runs.settings() == []


def test_the_papers_search_is_that_of_its_appendix():
    settings = ManyRunsConfig(search="paper").settings()
    assert len(settings) == len(set(settings)) == 2 * 3 * 3
    assert {one.train_batch_size for one in settings} == {16, 32}
    assert {one.learning_rate for one in settings} == {5e-5, 3e-5, 2e-5}
    assert {one.num_train_epochs for one in settings} == {2, 3, 4}
    assert len({one.folder for one in settings}) == 18


def test_the_seed_after_the_largest_is_0():
    assert list(ManyRunsConfig(num_seeds=2).seeds(2**32 - 1)) == [2**32 - 1, 0]
