"""The jobs of the tools that do more than call one function: what they call, and say of it.

Each has its tool's name, takes its config and its flags, and gives the lines to print. TensorFlow
and what imports it are imported within.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_impl.backend import need_extra
from keras_bert_impl.interrupts import kept_so_far
from keras_bert_impl.progress import format_bytes
from keras_bert_impl.training.run_directory import RunDirectory
from tools.config_flags import ConfigFlags
from tools.endings import CONTINUES, tell_stopped

if TYPE_CHECKING:
    from pipelines.fine_tuning.options import FineTuningConfig
    from pipelines.fine_tuning.run import FineTuningResults
    from pipelines.many_runs.seeds import TaskOf
    from pipelines.runs.plan_run import PlanRunResults

_OF_MANY = ("num_seeds", "search")


def fine_tuning_job(
    config: "FineTuningConfig", flags: ConfigFlags[Any], task_of: "TaskOf"
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
    from pipelines.many_runs.seeds import run_many

    report = run_many(config, task_of, partial(flags_of_one, flags))
    if report.runs:
        yield from report.lines()
        yield from _written(f"{config.output_dir}/runs.{end}" for end in ("md", "json"))
    if not report.finished:
        tell_stopped(f"Stopped; finished runs and checkpoints are kept, and {CONTINUES}.")


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
    yield from _written(results.prediction_files)


def flags_of_one(flags: ConfigFlags[Any], changes: Mapping[str, Any]) -> str:
    """The command of one of several runs, as a flag file."""
    same = flags.as_flagfile(without=(*_OF_MANY, *changes))
    return same + "".join(flags.line(name, value) for name, value in changes.items())


def run_classifier(config: Any, flags: ConfigFlags[Any]) -> Iterator[str]:
    """Fine-tunes for labels or numbers."""
    from pipelines.tasks.labels.task import task_of

    return fine_tuning_job(config, flags, task_of)


def run_squad(config: Any, flags: ConfigFlags[Any]) -> Iterator[str]:
    """Fine-tunes for answers in passages."""
    from pipelines.tasks.questions.task import task_of

    return fine_tuning_job(config, flags, task_of)


def run_ner(config: Any, flags: ConfigFlags[Any]) -> Iterator[str]:
    """Fine-tunes for tags."""
    from pipelines.tasks.tagging.task import task_of

    return fine_tuning_job(config, flags, task_of)


def run_swag(config: Any, flags: ConfigFlags[Any]) -> Iterator[str]:
    """Fine-tunes for choices."""
    from pipelines.tasks.choices.task import task_of

    return fine_tuning_job(config, flags, task_of)


def run_pretraining(config: Any, flags: ConfigFlags[Any]) -> Iterator[str]:
    """Pre-trains."""
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


def create_pretraining_data(config: Any, flags: ConfigFlags[Any]) -> str:
    """Writes shards, here or by Beam."""
    if config.runner == "local":
        from pipelines.runners.local import run_local

        return run_local(config).summary()
    need_extra("beam", ["apache_beam"], f"`runner={config.runner}`")
    from pipelines.runners.beam import run_beam

    return run_beam(replace(config, beam_arguments=tuple(flags.extra_arguments))).summary()


def plan_run(config: Any, flags: ConfigFlags[Any]) -> Iterator[str]:
    """Plans a pre-training run."""
    from pipelines.runs.plan_run import plan

    results = plan(config)
    for name, value in _plan_rows(results):
        yield f"{name:24} {value:>15}"
    for remark in results.remarks:
        yield flags.in_flags(f"Note: {remark}")


def _plan_rows(plan: "PlanRunResults") -> Iterator[tuple[str, str]]:
    yield "parameters", f"{sum(plan.parts.values()):,}"
    yield from ((f"  {name}", f"{count:,}") for name, count in plan.parts.items())
    yield "memory of a device", format_bytes(sum(plan.memory.values()))
    for name, size in plan.memory.items():
        # Gradients take the place of activations where these are larger.
        yield f"  {name}", format_bytes(size) if size else "in activations"
    if plan.largest_batch is not None:
        yield "largest batch that fits", f"{plan.largest_batch:,}"
    yield "examples", f"{plan.examples:,}"
    yield "tokens", f"{plan.tokens:,}"
    yield "operations", f"{plan.flops:.3g}"
    if plan.epochs:
        yield "epochs", f"{plan.epochs.number:,.1f}"
    if plan.rate and plan.hours is not None:
        yield "examples a second", f"{plan.rate:.1f}"
        yield "operations a second", f"{plan.flops / plan.hours / 3600:.3g}"
        units = {"hours": 1, "minutes": 60, "seconds": 3600}
        unit = next((unit for unit, part in units.items() if plan.hours * part >= 1), "seconds")
        yield unit, f"{plan.hours * units[unit]:,.1f}"
    if plan.price is not None:
        yield "price", f"{plan.price:,.2f}"


def adapt(config: Any, _: ConfigFlags[Any]) -> Iterator[str]:
    """Adapts a model to own text."""
    from pipelines.adaptation.job import adapt
    from tools.table import ToolPrograms

    lines, files = adapt(config, ToolPrograms())
    yield from lines
    yield from _written(files)


def run_ablations(config: Any, _: ConfigFlags[Any]) -> Iterator[str]:
    """Runs a study."""
    from pipelines.ablations.report import run_ablations
    from tools.table import ToolPrograms

    lines, files = run_ablations(config, ToolPrograms())
    yield from lines
    yield from _written(files)


def _written(files: Iterable[Any]) -> Iterator[str]:
    return (f"wrote {path}" for path in files)


def split_sentences(config: Any, _: ConfigFlags[Any]) -> str:
    """Splits documents."""
    from pipelines.corpora.split_sentences import split_sentences

    counts = split_sentences(config)
    return f"{counts.documents} documents, {counts.sentences} sentences"


def learn_vocabulary(config: Any, _: ConfigFlags[Any]) -> Iterator[str]:
    """Learns a vocabulary."""
    from pipelines.corpora.learn_vocabulary import learn_vocabulary

    yield from learn_vocabulary(config).report()


def tokenize_text(config: Any, _: ConfigFlags[Any]) -> None:
    """Tokenizes lines."""
    from pipelines.corpora.tokenize_text import run_tokenize_text

    run_tokenize_text(config, sys.stdin.buffer, sys.stdout)


def grow_vocabulary(config: Any, _: ConfigFlags[Any]) -> Iterator[str]:
    """Adds words to a model."""
    from keras_bert_impl.checkpoints.grow import grow_checkpoint

    for entry in grow_checkpoint(config):
        yield f"{entry.id}\t{entry.token}\t{' '.join(entry.made_from)}"


def glue_submission(config: Any, _: ConfigFlags[Any]) -> Iterator[str]:
    """Writes the archive for GLUE's server."""
    from pipelines.tasks.labels.submission import ROWS, write_submission_archive

    found = write_submission_archive(config)
    yield from (f"{name:8} {path}" for name, path in found.items())
    if missing := [f"{name}.tsv" for name in ROWS if name not in found]:
        yield f"missing: {', '.join(missing)}; the server wants all eleven files"
    yield f"wrote {config.output_file}"


def predict(config: Any, _: ConfigFlags[Any]) -> str | None:
    """Answers texts."""
    from pipelines.answering.predict import predict

    count = predict(config)
    said = f"{count} answer{'s' * (count != 1)}: {config.output_file}"
    return said if config.output_file else None


def playground(config: Any, _: ConfigFlags[Any]) -> None:
    """Serves models with the page."""
    from pipelines.answering.serving import serve_models

    serve_models(config, with_page=True)


def embed(config: Any, _: ConfigFlags[Any]) -> str:
    """Makes a vector of each text."""
    from pipelines.vectors.embed import embed_file

    result = embed_file(config)
    return f"{result.rows} vectors of {result.width} numbers: {config.output_file}"


def similar(config: Any, _: ConfigFlags[Any]) -> Iterable[str]:
    """Finds the nearest texts."""
    from pipelines.vectors.similar import find_similar, lines_of

    return lines_of(find_similar(config))


def extract_features(config: Any, _: ConfigFlags[Any]) -> str:
    """Writes the vectors of tokens."""
    from pipelines.vectors.extract import extract_features

    return f"{extract_features(config)} lines: {config.output_file}"


def explain(config: Any, _: ConfigFlags[Any]) -> str:
    """Writes a page of attention."""
    from keras_bert_impl.serving.page.explain import explain

    done = explain(config)
    texts = "1 text" if done.texts == 1 else f"{done.texts} texts"
    return f"{texts}, {done.layers} layers of {done.heads} heads: {config.output_file}"


def export_saved_model(config: Any, _: ConfigFlags[Any]) -> Iterator[str]:
    """Writes a SavedModel and says what it serves."""
    from pipelines.tasks.register import open_and_serve

    opened, served = open_and_serve(
        config.model,
        top_k=config.top_k,
        max_seq_length=config.max_seq_length,
        **config.description(),
    )
    from keras_bert_impl.serving.export import export_saved_model  # after the model is found

    result = export_saved_model(served, opened, config.output_dir, config.verify)
    yield f"{config.output_dir}: {result.size / 1e6:.1f} MB, with client.py, which sends texts"
    for name, (inputs, outputs) in result.signatures.items():
        yield f"  {name}: {', '.join(inputs)} -> {', '.join(outputs)}"
    if found := result.verification:
        yield (
            f"Loaded again: {found.calls} calls, largest difference "
            f"{found.largest_difference:.1e}.\n"
            f"A call of {found.timed} with a row of 32 tokens takes "
            f"{found.milliseconds:.2f} ms there."
        )


def export_model(config: Any, flags: ConfigFlags[Any]) -> Iterator[str]:
    """Writes an export of any format."""
    if config.format == "saved_model":
        yield from export_saved_model(config, flags)
        return
    from pipelines.tasks.register import open_and_serve

    opened, _ = open_and_serve(
        config.model, max_seq_length=config.max_seq_length, **config.description()
    )
    from keras_bert_impl.serving.portable_export import export_portable  # after it is found

    result = export_portable(
        opened, config.output_dir, config.format, config.max_seq_length, config.verify
    )
    yield f"{config.output_dir}: {result.size / 1e6:.1f} MB"
    yield f"  {', '.join(result.inputs)} -> {', '.join(result.outputs)}"
    if result.answers is None:
        yield "  no client.py: the model takes more than texts are (positions of masks, choices)"
    else:
        yield f"  client.py: text -> {result.answers}"
    if result.largest_difference is not None:
        yield (
            f"Its own runtime: largest difference {result.largest_difference:.1e}, "
            f"{result.milliseconds:.2f} ms for a row of 32 tokens."
        )
