"""Fine-tunes for the toy task: the thin tool that a new family of tasks needs.

Example:
  python -m tests.support.run_toy --data_dir=toy --output_dir=run --do_train --do_eval
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.options import FREE, REQUIRED, option
from pipelines.fine_tuning.options import FineTuningConfig
from tools.config_flags import ConfigFlags
from tools.training import fine_tuning_job


@dataclass(frozen=True, kw_only=True)
class RunToyConfig(FineTuningConfig):
    data_dir: Path = option(REQUIRED, "The folder with train.tsv and dev.tsv.", resume=FREE)


FLAGS = ConfigFlags(__doc__, RunToyConfig)


def _run(config: RunToyConfig):
    from tests.support.toy_task import ToyTask

    return fine_tuning_job(config, FLAGS, lambda config: ToyTask(config.data_dir))


main = FLAGS.main_of(_run, continues=True)


if __name__ == "__main__":
    sys.exit(main())
