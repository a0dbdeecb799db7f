"""The tools that train: on labelled text, and on text alone, with what makes its data."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_impl.backend import need_extra
from keras_bert_impl.errors import UserError, nearest
from keras_bert_impl.interrupts import kept_so_far
from keras_bert_impl.training.run_directory import RunDirectory
from tools.command_line import CONTINUES, tell_stopped
from tools.config_flags import ConfigFlags, add_tpu_flags
from tools.table import PRETRAIN, TUNE, ToolPrograms, named, tool, written

if TYPE_CHECKING:
    from pipelines.fine_tuning.options import FineTuningConfig
    from pipelines.fine_tuning.run import FineTuningResults
    from pipelines.studies.seeds import TaskOf

_OF_MANY = ("num_seeds", "search")
_trainer = partial(tool, TUNE, continues=True, more_flags=add_tpu_flags, compiles=True)


def fine_tuning_job(
    config: "FineTuningConfig", flags: ConfigFlags, task_of: "TaskOf"
) -> Iterator[str]:
    """Fine-tunes, evaluates and predicts once, or once for each seed and setting."""
    config = replace(config, flags=flags.as_flagfile(), given=flags.given())
    if not config.many.are_many:
        start = RunDirectory(config.output_dir).kept_before_training()
        with kept_so_far(start) if config.do_train else nullcontext():
            from pipelines.fine_tuning.start import check_run

            checked = check_run(config, task_of)
            from pipelines.fine_tuning.run import fine_tune_checked  # TensorFlow: after the checks

        done = fine_tune_checked(checked)
        yield from results_of(done)
        if (trained := done.training) and trained.finished and trained.is_new:
            yield f"wrote {config.output_dir}/model"
        return
    from pipelines.studies.seeds import run_many

    report = run_many(config, task_of, partial(flags_of_one, flags))
    if report.runs:
        yield from report.lines()
        yield from written(f"{config.output_dir}/runs.{end}" for end in ("md", "json"))
    if not report.finished:
        tell_stopped(f"Stopped; finished runs and checkpoints are kept, and {CONTINUES}.")


def _fine_tuner(config: str, task: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function's docstring the manual page of a tool for a task of `pipelines.tasks`."""
    task_of = f"pipelines.tasks.{task}:task_of"

    def job(given: Any, flags: ConfigFlags) -> Iterator[str]:
        return fine_tuning_job(given, flags, named(task_of))

    return _trainer(f"pipelines.tasks.{config}", job, task_of=task_of)


def results_of(results: "FineTuningResults") -> Iterator[str]:
    """Where the training stands, the figures with what guessing reaches, the files."""
    from keras_bert_impl.training.learning_curve import line_of

    training = results.training
    if training and not training.finished:
        tell_stopped(f"Stopped after step {training.step:,}, which is saved; {CONTINUES}.")
    elif training and not training.is_new:
        yield "Training was finished before; its model is in model/ of the output folder."
    for name, value in sorted(results.evaluation.items()):
        yield line_of(name, value, results.guesses)
    yield from written(results.prediction_files)


def flags_of_one(flags: ConfigFlags, changes: Mapping[str, Any]) -> str:
    """The command of one of several runs, as a flag file."""
    same = flags.as_flagfile(without=(*_OF_MANY, *changes))
    return same + "".join(flags.line(name, value) for name, value in changes.items())


@_fine_tuner("labels.options:RunClassifierConfig", "labels.task")
def run_classifier() -> None:
    """Fine-tunes a model on labelled texts of your own or for a task of GLUE; evaluates, predicts.

    Give either --train_file (with --dev_file, --test_file), for classes, several labels at once or,
    by --regression, numbers; or --task_name and --data_dir for a task of GLUE.

    Starts from a model directory (which brings its configuration, vocabulary and casing) or a TF1
    checkpoint. The same command again resumes a run that was killed. The output folder gets the
    fine-tuned model directory model/, eval_results.txt, and what every training run leaves:
    flags.cfg, metrics.jsonl, TensorBoard events and checkpoints; for files of your own
    dev_predictions.tsv (texts, labels, probabilities), dev_mistakes.tsv (the hardest first),
    dev_classes.tsv and dev_confusion.png; for GLUE test_results.tsv and the submission file.

    Examples:
      keras-bert run_classifier --train_file=train.csv --dev_file=dev.csv --output_dir=mine
          --init_checkpoint=run/model --do_train --do_eval --do_predict
      keras-bert run_classifier --task_name=MRPC --data_dir=glue_data/MRPC --output_dir=mrpc
          --init_checkpoint=run/model --do_train --do_eval --max_seq_length=128 --learning_rate=2e-5
    """


@_fine_tuner("vectors.ranking:RunRerankerConfig", "vectors.ranking")
def run_reranker() -> None:
    """Fine-tunes a cross-encoder, which scores a query with a document; judges the order by score.

    Files have a query and a right document in each row, and perhaps wrong ones (the columns
    negative, negative_2, ...); where there are none, they are drawn from what BM25, or a model of
    vectors (--candidates), finds among all documents of the file. Or they have a label: more than 0
    where the document is right. A text and its class, or a teacher's margins, are refused. Of a dev
    file with labels of 0 the rows of a query are its candidates; of others they are what is found.
    The figures, MRR@10 and nDCG@10 in eval_results.txt, stand beside those of the candidates' own
    order. The same command again resumes a run that was killed. The output folder gets the model
    directory model/, which `Reranker`, `serve` and sentence-transformers' CrossEncoder open,
    dev_ranking.tsv, and what every training run leaves: flags.cfg, metrics.jsonl, TensorBoard
    events and checkpoints.

    Examples:
      keras-bert run_reranker --train_file=train.csv --dev_file=dev.csv --init_checkpoint=run/model
          --output_dir=reranker --do_train --do_eval --max_seq_length=256
      keras-bert run_reranker --dev_file=dev.csv --init_checkpoint=reranker/model
          --output_dir=judged --do_eval --candidates=all-MiniLM-L6-v2 --engine=openvino
    """


@_fine_tuner("questions.options:RunSquadConfig", "questions.task")
def run_squad() -> None:
    """Fine-tunes a model that answers questions from a passage; evaluates, predicts.

    Takes the flags of the original's run_squad.py and files in SQuAD's form (1.1, 2.0, KorQuAD 1.0)
    or TriviaQA's. The same command again resumes a run that was killed. The output folder gets the
    fine-tuned model directory model/, predictions.json and nbest_predictions.json (with
    --version_2_with_negative also null_odds.json), with --do_eval eval_results.txt (the official
    figures) and answers.tsv (all answers, the hardest mistakes first), and what every training run
    leaves: flags.cfg, metrics.jsonl, TensorBoard events and checkpoints.

    Example:
      keras-bert run_squad --init_checkpoint=run/model --output_dir=squad --do_train --do_predict
          --do_eval --train_file=train-v1.1.json --predict_file=dev-v1.1.json --train_batch_size=12
          --learning_rate=3e-5 --num_train_epochs=2.0 --max_seq_length=384 --doc_stride=128
    """


@_fine_tuner("tagging.options:RunNerConfig", "tagging.task")
def run_ner() -> None:
    """Fine-tunes a model to find named entities; evaluates as conlleval does, predicts.

    Files have a word and its tag on each line (CoNLL's form: tabs or blanks, -DOCSTART-, IOB1,
    IOB2, BIOES or bare types, told apart), a character and its tag, or a sentence and its tags
    (Naver), or are exports of doccano or Label Studio in JSON. Each word is read in its document,
    in windows that overlap. The same command again resumes a run that was killed. The
    output folder gets the fine-tuned model directory model/, eval_results.txt, dev_conlleval.txt
    (what the official script prints), dev_predictions.txt (the file with a column of predicted
    tags), dev_entities.jsonl (entities with their characters in the text), the same of the test
    file, and what every training run leaves: flags.cfg, metrics.jsonl, TensorBoard events and
    checkpoints.

    Examples:
      keras-bert run_ner --data_dir=conll --init_checkpoint=run/model --output_dir=ner --do_train
          --do_eval --do_predict --train_batch_size=32 --learning_rate=5e-5 --num_train_epochs=3
      keras-bert run_ner --test_file=new.txt --output_dir=ner --do_predict
    """


@_fine_tuner("choices.files:RunSwagConfig", "choices.task")
def run_swag() -> None:
    """Fine-tunes a model to choose which of several endings follows a text; evaluates, predicts.

    Files have SWAG's columns (sent1, sent2, ending0, ending1, ..., label; CSV) or are JSON lines
    with context, endings and label; any number of endings. Each ending is read with the context in
    front, and gets one score from the first token. The same command again resumes a run that was
    killed. The output folder gets the fine-tuned model directory model/, eval_results.txt (the
    accuracy), dev_predictions.tsv, test_predictions.tsv, and what every training run leaves:
    flags.cfg, metrics.jsonl, TensorBoard events and checkpoints.

    Example:
      keras-bert run_swag --data_dir=swag --init_checkpoint=run/model --output_dir=chosen --do_train
          --do_eval --do_predict --train_batch_size=16 --learning_rate=2e-5 --num_train_epochs=3
    """


@_fine_tuner("vectors.options:RunEmbedderConfig", "vectors.task")
def run_embedder() -> None:
    """Trains the vectors of texts, for search and similarity; evaluates them.

    Files are tables. Rows are a query and a document that answers it, perhaps with negatives (the
    documents of the other rows of a batch are negatives, too); two texts and a number that says how
    alike they are; two texts and entailment, neutral or contradiction; or a text and its class. The
    dev file may have another form than the training file: pairs are judged as a search (nDCG@10 and
    others, beside BM25), numbers by their rank correlation. The same command again resumes a run
    that was killed. The output folder gets model/, which embed, search, serve and
    sentence-transformers open, eval_results.txt with the figures of the start and of the end, and
    what every training run leaves: flags.cfg, metrics.jsonl, TensorBoard events and checkpoints.

    Examples:
      keras-bert run_embedder --train_file=faq.csv --dev_file=faq_dev.csv --output_dir=faq
          --init_checkpoint=all-MiniLM-L6-v2 --do_train --do_eval --train_batch_size=32
      keras-bert run_embedder --train_file=sts/train.tsv --dev_file=sts/dev.tsv --output_dir=sts
          --init_checkpoint=run/model --do_train --do_eval --loss=cosent --learning_rate=2e-5
    """


@_trainer("pipelines.fine_tuning.teaching_options:DistillConfig", more_flags=None)
def distill(config: Any, flags: ConfigFlags) -> Iterator[str]:
    """Makes small models of a trained one: fewer of its layers, taught by it, and in eight bits.

    The teacher is any model that run_classifier, run_ner, run_squad, run_swag or run_embedder
    trained, or a directory of sentence-transformers'. A student begins with some of its layers and
    learns its outputs for the texts of --train_file and --unlabelled_file, and with --lessons what
    it computes inside. The same command again resumes what was killed. The output folder gets
    each student's run (layers-1-3-5/, with its model/ and in there the graph in int8) and
    results.md: one table of the teacher, the students and their int8, with the task's figure, the
    time of a text and the size.

    Examples:
      keras-bert distill --teacher=all-MiniLM-L6-v2 --train_file=sts/train.tsv --num_layers=3
          --dev_file=sts/dev.tsv --unlabelled_file=sentences.txt --output_dir=small
      keras-bert distill --teacher=run/model --train_file=train.csv --dev_file=dev.csv
          --label_weight=0.5 --num_layers=4,3 --task_flags=--num_train_epochs=3 --output_dir=small
    """
    from pipelines.studies.distill import Distillation

    lines, files = Distillation(replace(config, flags=flags.as_flagfile()), ToolPrograms()).run()
    if not files:
        tell_stopped(f"Stopped; finished runs and checkpoints are kept, and {CONTINUES}.")
    yield from lines
    yield from written(files)


@tool(PRETRAIN, "pipelines.corpora.split_sentences:SplitSentencesConfig", ":split_sentences")
def split_sentences() -> None:
    """Splits documents into sentences: one sentence a line, an empty line between documents.

    Every document of the input is one of the output. Plain text has a paragraph a line and an empty
    line between documents; one field of JSON lines holds the text; folders of WikiExtractor and
    data sets of TensorFlow Datasets (tfds:NAME:SPLIT) are read as they are; .gz, .xz and .bz2 are
    unpacked. A data set must have been prepared first (`download_and_prepare`): nothing is
    downloaded here.

    Examples:
      keras-bert split_sentences --input_file='wiki/*.jsonl.xz' --output_file=sentences.txt
      keras-bert split_sentences --input_file=extracted/,more.txt --output_dir=text --num_shards=10
      keras-bert split_sentences --input_file=tfds:wiki40b/ko:train --output_file=sentences.txt
    """


@tool(PRETRAIN, "pipelines.corpora.learn_vocabulary:LearnVocabularyConfig", ":learn_vocabulary")
def learn_vocabulary() -> None:
    """Learns a WordPiece vocabulary of a given size, from text in any language.

    It reads what split_sentences reads and what it writes. The vocabulary does not depend on the
    number of workers. A report says how the vocabulary splits the words it was learned from.

    Examples:
      keras-bert learn_vocabulary --input_file=sentences.txt --vocab_file=vocab.txt
      keras-bert learn_vocabulary --input_file='wiki/*.jsonl.xz' --vocab_file=vocab.txt
          --vocab_size=30000 --nodo_lower_case
    """


def _takes_beam_options(flags: ConfigFlags, words: list[str]) -> bool:
    """Whether flags that create_pretraining_data does not know are for a Beam runner."""
    with suppress(UserError):  # said when the command line is read in earnest
        flags.parse(words, keep_unknown=True)
    return flags.value_of("runner") != "local"


@tool(
    PRETRAIN,
    "pipelines.pretraining_data.recipe:PretrainingDataConfig",
    continues=True,
    passes_on=_takes_beam_options,
)
def create_pretraining_data(config: Any, flags: ConfigFlags) -> str:
    """Turns documents into shards of masked sentence pairs for run_pretraining.

    The input is text with one sentence a line and an empty line between documents (split_sentences
    makes it). The same input, flags and seed give the same bytes for any number of workers, after
    any interruption, and from any runner; the same command again continues an interrupted run.

      keras-bert create_pretraining_data --input_file='corpus/*.txt' --vocab_file=vocab.txt
          --output_file=data/train.tfrecord --max_seq_length=128 --num_workers=8

    Options of Beam pass through when --runner names one of its runners.
    """
    if config.runner == "local":
        from pipelines.runners.local import run_local

        return run_local(config).summary()
    need_extra("beam", ["apache_beam"], f"`runner={config.runner}`")
    from pipelines.runners.beam import run_beam, unknown_options

    for name in unknown_options(flags.extra_arguments):
        # The servers of portable runners may have options that Beam does not know.
        if config.runner == "DirectRunner" or nearest(name, [*flags.names()]):
            raise UserError(flags.unknown(name))
    return run_beam(replace(config, beam_arguments=tuple(flags.extra_arguments))).summary()


@tool(PRETRAIN, "pipelines.inputs.inspect:InspectConfig", ":inspect_pretraining_data")
def inspect_pretraining_data() -> None:
    """Shows what is in pre-training shards: examples in words, figures, and a page with plots.

      keras-bert inspect_pretraining_data --input_file=data/train.tfrecord --vocab_file=vocab.txt
          --html=data/train.html

    A masked position is printed as the token that the model sees, with the true token in «…».
    """


@tool(PRETRAIN, "pipelines.runs.plan_run:PlanRunConfig", more_flags=add_tpu_flags)
def plan_run(config: Any, flags: ConfigFlags) -> Iterator[str]:
    """Says what a pre-training run takes: parameters, memory, the largest batch, operations, time.

    The defaults are those of the paper's base run. Flags of training that change neither memory nor
    time are accepted and change nothing.

    Example:
      keras-bert plan_run --model_size=base --train_batch_size=256 --num_train_steps=1000000
          --num_warmup_steps=10000 --device_memory_gb=80 --precision=bfloat16
          --examples_per_second=480 --price_per_hour=2.50 --num_examples=50000000
    """
    from pipelines.runs.plan_run import plan

    rows, told = plan(config)
    yield from (f"{name:24} {value:>15}" for name, value in rows.items())
    yield from (flags.in_flags(f"Note: {remark}") for remark in told)


@tool(
    PRETRAIN,
    "pipelines.runs.pretraining_config:RunPretrainingConfig",
    continues=True,
    more_flags=add_tpu_flags,
    compiles=True,
)
def run_pretraining(config: Any, flags: ConfigFlags) -> Iterator[str]:
    """Pre-trains BERT on shards of create_pretraining_data.

    The same command again resumes a run that was killed, to the same bits; a finished run says so.
    The output folder gets flags.cfg, metrics.jsonl, TensorBoard events, checkpoints and, at the
    end, the model directory model/, eval_results.txt and learning_curve.png.

    Example:
      keras-bert run_pretraining --input_file=shards/train.tfrecord --output_dir=run --do_train
          --do_eval --bert_config_file=bert_config.json --vocab_file=vocab.txt --max_seq_length=128
          --max_predictions_per_seq=20 --train_batch_size=32 --num_train_steps=10000
          --num_warmup_steps=1000 --learning_rate=1e-4
    """
    from pipelines.runs.pretraining_start import check_start

    with kept_so_far(RunDirectory(Path(config.output_dir)).kept_before_training()):
        check_start(config)
        from keras_bert_impl.training.learning_curve import line_of
        from pipelines.runs.pretraining import run_pretraining  # TensorFlow: after the checks

    results = run_pretraining(replace(config, flags=flags.as_flagfile()))
    if results.already_finished:
        yield f"{config.output_dir}: this run is finished; its model is in model/."
    elif results.training and not results.training.finished:
        tell_stopped(f"Stopped after step {results.training.step:,}, which is saved; {CONTINUES}.")
    for number, figures in enumerate(results.rehearsal, start=1):
        yield f"Dry run: a step of phase {number} gives loss {figures['loss']:.4f}."
    for name, value in sorted(results.evaluation.items()):
        yield line_of(name, value, results.guesses)
    if results.training and results.training.finished:
        yield f"wrote {config.output_dir}/model"


@tool(PRETRAIN, "pipelines.studies.adapt:AdaptConfig", continues=True, compiles=True)
def adapt(config: Any, _: ConfigFlags) -> Iterator[str]:
    """Adapts a BERT to your own text: adds words that it lacks and goes on with its pre-training.

    Any model, any text. Tokens are chosen by how many tokens they save; a part of the documents is
    held out; training stops when their loss no longer falls. The report says how the original and
    the adapted model do on them; with --task also what a task gains. --dry_run lists the commands.
    The same command again continues after any stop. The output folder gets model/ (which every tool
    opens), report.md, adaptation.json, learning_curve.png and, in cells/, what each step left.

    Example:
      keras-bert adapt --init_checkpoint=bert --input_file='notes/*.txt' --output_dir=adapted
          --task='run_classifier --train_file=train.csv --dev_file=dev.csv --num_train_epochs=2'
    """
    from pipelines.studies.adapt import adapt

    lines, files = adapt(config, ToolPrograms())
    yield from lines
    yield from written(files)
