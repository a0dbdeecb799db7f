"""Writes a page that shows how the tokens of some texts attend to each other.

The page is one file, which a browser opens without a server and without a network: one head with
lines between tokens, and all heads of all layers side by side. The model is a model directory, or
another form that has its weights by their names; an export gives its outputs only.

Examples:
  keras-bert explain --model=run/model --text='The dog is tired because it ran.'
      --output_file=page.html
  keras-bert explain --model=mrpc/model --text='He left.' --text_pair='He went away.'
      --output_file=page.html
"""

import sys

from keras_bert_impl.serving.page.explain import ExplainConfig
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, ExplainConfig)


def _run(config: ExplainConfig) -> None:
    from keras_bert_impl.serving.page.explain import explain

    done = explain(config)
    texts = "1 text" if done.texts == 1 else f"{done.texts} texts"
    print(f"{texts}, {done.layers} layers of {done.heads} heads: {config.output_file}")


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
