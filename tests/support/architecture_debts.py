"""What does not yet keep the rules of tests/test_architecture.py. These sets only shrink."""

OPTIONAL_MEMBERS: set[str] = {
    "_files",
    "values",
}

PRIVATE_NAMES: set[str] = {
    "keras_bert_impl/fast_path/compiled_update.py",
    "keras_bert_impl/models/frozen.py",
    "keras_bert_impl/training/step.py",
    "pipelines/runs/preflight.py",
}

NAME_FLAGS: set[str] = {
    "keras_bert_impl/checkpoints/convert.py",
    "keras_bert_impl/checkpoints/model_directory.py",
    "keras_bert_impl/config.py",
    "keras_bert_impl/serving/export.py",
    "keras_bert_impl/serving/fill_mask.py",
    "keras_bert_impl/training/checkpoints.py",
    "keras_bert_impl/training/hooks.py",
    "keras_bert_impl/training/run_directory.py",
    "keras_bert_impl/training/strategy.py",
    "keras_bert_impl/training/tf1_state.py",
    "pipelines/runs/fine_tuning.py",
    "pipelines/runs/phases.py",
    "pipelines/runs/plan_run.py",
    "pipelines/runs/preflight.py",
    "pipelines/runs/pretraining.py",
    "pipelines/runs/pretraining_start.py",
}

WITHOUT_A_TEST: set[str] = {
    "keras_bert_impl/checkpoints/hugging_face.py",
    "keras_bert_impl/checkpoints/model_directory.py",
    "keras_bert_impl/checkpoints/names.py",
    "keras_bert_impl/errors.py",
    "keras_bert_impl/fast_path/inference_kernels.py",
    "keras_bert_impl/fast_path/islands.py",
    "keras_bert_impl/fast_path/matrices.py",
    "keras_bert_impl/fast_path/switch.py",
    "keras_bert_impl/layers/kernels.py",
    "keras_bert_impl/planning/size.py",
    "keras_bert_impl/serving/served_models.py",
    "keras_bert_impl/tokenization/cutting.py",
    "keras_bert_impl/tokenization/graph_windows.py",
    "keras_bert_impl/tokenization/kernels.py",
    "pipelines/runs/demo_report.py",
    "pipelines/runs/phases.py",
    "pipelines/runs/pretraining.py",
    "pipelines/runs/pretraining_config.py",
    "pipelines/runs/resume_identity.py",
    "pipelines/tasks/task.py",
    "tools/demo.py",
    "tools/inspect_pretraining_data.py",
    "tools/learn_vocabulary.py",
    "tools/plan_run.py",
    "tools/split_sentences.py",
    "tools/tokenize_text.py",
    "tools/write_python_documentation.py",
}
