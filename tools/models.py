"""The tools that use a model, and those that export it; each one's docstring is its manual page."""

from collections.abc import Iterator
from typing import Any

from tools.config_flags import ConfigFlags, add_ignored_flags
from tools.table import EXPORT, USE, tool


@tool(USE, "pipelines.answering.config:PredictConfig")
def predict(config: Any, _: ConfigFlags) -> str | None:
    """Answers texts by any model: labels, numbers, entities, answers, choices, words, vectors.

    The model is a model directory, a TF1 checkpoint, a run's folder, a name on the Hugging Face
    hub, or an export for OpenVINO, which needs no TensorFlow and starts in a second. What is asked
    is what the model was trained for: a text, a pair, a question about a passage, endings of a
    context. Files are read line by line, or by columns.

    Examples:
      keras-bert predict --model=mrpc/model --text='It rains.' --text_pair='The street is wet.'
      keras-bert predict --model=reviews/model --input_file=reviews.csv --text_column=review
          --output_file=answers.csv --engine=openvino
      keras-bert predict --model=squad/model --question='When did it rain?'
          --passage_file=weather.txt
    """
    from pipelines.answering.predict import predict

    count = predict(config)
    said = f"{count} answer{'s' * (count != 1)}: {config.output_file}"
    return said if config.output_file else None


@tool(USE, "pipelines.answering.config:FillMaskConfig", "pipelines.answering.predict:fill_mask")
def fill_mask() -> None:
    """Gives the words that may stand at [MASK] in a text: their probabilities.

    It is `predict` for such texts. The model is a model directory with a masked-LM head, or an
    export for OpenVINO. A text longer than the model's positions is read around its first [MASK]
    only.

    Example:
      keras-bert fill_mask --model=run/model --text='The [MASK] of the list is returned.'
    """


@tool(USE, "pipelines.answering.config:AnswerConfig", "pipelines.answering.predict:answer")
def answer() -> None:
    """Answers questions by a passage: the best answers, with their positions in the text.

    It is `predict` for questions about one passage. The model is the model/ folder of a run of
    run_squad, or an export for OpenVINO. The passage may have any length. Answers are the passage's
    own characters, and positions count its characters from 0, with its blanks and line breaks.

    Example:
      keras-bert answer --model=squad/model --question='When did it rain?'
          --passage_file=weather.txt
    """


@tool(USE, "pipelines.answering.serving:ServeConfig", ":serve_models", alone=True)
def serve() -> None:
    """Serves models over HTTP: TensorFlow Serving's REST form, and OpenAI's for vectors.

    Any model of this package: labels, numbers, answers, entities, choices, masked words, vectors.
    With --engine=openvino it is faster on CPUs and starts in a second from the second time on.
    Requests are computed together while others are computed, and one client alone never waits. It
    listens on this machine only unless --host says otherwise; Ctrl-C or SIGTERM finish what was
    begun.

    Examples:
      keras-bert serve --model=mrpc/model --model_name=mrpc --engine=openvino
          curl http://127.0.0.1:8501/v1/models/mrpc:predict
              -d '{"instances": [{"text_a": "He left.", "text_b": "He went away."}]}'
      keras-bert serve --model=minilm=all-MiniLM-L6-v2 --port=8501
          curl http://127.0.0.1:8501/v1/embeddings -d '{"model": "minilm", "input": "a text"}'
    """


@tool(USE, "pipelines.answering.serving:ServeConfig", alone=True)
def playground(config: Any, _: ConfigFlags) -> None:
    """Opens a page to try models on: what they answer, the tokens they see, their attention.

    It is the server of keras-bert serve with one page, at the address that is printed; any browser
    shows it, also without a network. Of each model it has the panels of what the model can do:
    words for [MASK], labels, numbers, answers, entities, choices, similarity, the next sentence. A
    link of the page holds the input. Attention needs a model directory: an export gives its outputs
    only.

    Examples:
      keras-bert playground --model=run/model
      keras-bert playground --model=mrpc/model --model=minilm=all-MiniLM-L6-v2 --engine=openvino
    """
    from pipelines.answering.serving import serve_models

    serve_models(config, with_page=True)


@tool(USE, "pipelines.vectors.options:EmbedConfig", continues=True)
def embed(config: Any, _: ConfigFlags) -> Any:
    """Gives every text of a file one vector.

    Texts are lines, or a column of CSV, TSV or JSON. Those of similar length are computed together,
    in any order. After a stop or a kill the same command continues, after the last whole block of
    16,384 texts. With the extra openvino installed, --engine=openvino is faster on CPUs, and
    --precision=int8 the fastest.

    Examples:
      keras-bert embed --model=all-MiniLM-L6-v2 --input_file=lines.txt --output_file=lines.npy
      keras-bert embed --model=all-MiniLM-L6-v2 --text='How do I get my money back?'
      keras-bert embed --model=all-MiniLM-L6-v2 --input_file=reviews.csv --text_column=review
          --output_file=reviews.parquet --precision=bfloat16
    """
    from pipelines.vectors.embed import embed_file, embed_texts

    if config.text:
        return embed_texts(config)
    result = embed_file(config)
    return f"{result.rows} vectors of {result.width} numbers: {config.output_file}"


@tool(USE, "pipelines.vectors.options:SimilarConfig", "pipelines.vectors.search:find_similar")
def similar() -> None:
    """Finds the texts of a file that are nearest to a text, by vectors that embed made.

    Each text is printed with the cosine of the two vectors and its number in the file.

    Example:
      keras-bert embed --model=all-MiniLM-L6-v2 --input_file=lines.txt --output_file=lines.npy
      keras-bert similar --model=all-MiniLM-L6-v2 --input_file=lines.txt --vectors_file=lines.npy
          --query='How do I get my money back?'
    """


@tool(
    USE, "pipelines.vectors.options:SearchConfig", "pipelines.vectors.search:search", continues=True
)
def search() -> None:
    """Searches texts by their meaning, in an index that it keeps and adds to.

    With input_file, the texts that are not in the index yet are added: lines, or a column of CSV,
    TSV or JSON. Each is there once, and is kept with its vector in the index' folder, block by
    block; after a stop or a kill the same command continues. From 100,000 texts on, or with
    --method=hnsw, a graph finds the nearest without looking at all (extra search). It is then tried
    on a thousand of your own texts: which share of the ten nearest it finds is printed, and the
    search widened until it is 99 %. --method=exact looks at every vector. Each text that is found
    is printed with its score and its number in the index.

    Examples:
      keras-bert search --model=all-MiniLM-L6-v2 --index=answers --input_file=answers.txt
          --engine=openvino --precision=int8
      keras-bert search --model=all-MiniLM-L6-v2 --index=answers
          --query='How do I get my money back?' --top_k=3
    """


@tool(USE, "keras_bert_impl.serving.page.explain:ExplainConfig")
def explain(config: Any, _: ConfigFlags) -> str:
    """Writes a page that shows how the tokens of texts attend to each other.

    The page is one file, which a browser opens without a server and without a network: one head
    with lines between tokens, and all heads of all layers side by side. The model is a model
    directory, or another form that has its weights by their names; an export gives its outputs
    only.

    Examples:
      keras-bert explain --model=run/model --text='The dog is tired because it ran.'
          --output_file=page.html
      keras-bert explain --model=mrpc/model --text='He left.' --text_pair='He went away.'
          --output_file=page.html
    """
    from keras_bert_impl.serving.page.explain import explain

    shown = explain(config)
    layers, heads = shown[0].probabilities.shape[:2]
    texts = "1 text" if len(shown) == 1 else f"{len(shown)} texts"
    return f"{texts}, {layers} layers of {heads} heads: {config.output_file}"


@tool(USE, "pipelines.vectors.options:FeaturesConfig", more_flags=add_ignored_flags)
def extract_features(config: Any, _: ConfigFlags) -> str:
    """Gives the encoder's vectors for lines of text.

    One input a line; " ||| " separates two segments. The output is google's JSON lines (a line for
    each input, a vector for each token and layer), or NumPy's npz with `vectors`, `ids` and
    `offsets`. Lines of similar length are computed together.

    Example:
      keras-bert extract_features --input_file=lines.txt --output_file=lines.npz --output_format=npz
          --model=bert --layers=-1 --pooling=mean
    """
    from pipelines.vectors.extract import extract_features

    return f"{extract_features(config)} lines: {config.output_file}"


@tool(EXPORT, "keras_bert_impl.serving.exported:ExportConfig")
def export_saved_model(config: Any, _: ConfigFlags) -> Iterator[str]:
    """Writes a model directory as a SavedModel: another name of export_model --format=saved_model.

    A pre-trained model gets the signatures serving_default (ids to vectors), masked_lm (ids and
    positions to scores), fill_mask_text (text with [MASK] to the best tokens) and
    next_sentence_text (two texts to the probability that the second follows); a fine-tuned one
    serving_default (ids), text and text_pair (to labels and probabilities, or a score); one for
    questions serving_default and answers (question and passage to answers with their positions);
    one for entities text and raw_text (to entities with their positions); one for endings text
    (context and endings to probabilities). Batch size and length are free. A program that loads it
    for raw text imports tensorflow_text first. The result is loaded again, compared with the model
    and timed. client.py next to it is a program in plain Python that asks it with texts.

    Example:
      keras-bert export_saved_model --model=run/model --output_dir=saved_model
    """
    return _exported(config, "saved_model")


def _exported(config: Any, form: str) -> Iterator[str]:
    from pipelines.tasks.register import open_and_serve

    folder, length, about = config.output_dir, config.max_seq_length, config.description()
    if form == "static":
        from keras_bert_impl.serving.static_export import export_static
        from pipelines.vectors.texts import open_texts

        texts = open_texts(config.input_file) if config.input_file else None
        result = export_static(
            config.model, folder, config.dimensions, texts, config.verify, length, **about
        )
    else:
        opened, served = open_and_serve(
            config.model, top_k=config.top_k, max_seq_length=length, **about
        )
        from keras_bert_impl.serving import export  # after the model is found

        if form == "saved_model":
            result = export.export_saved_model(served, opened, folder, config.verify)
        else:
            result = export.export_portable(opened, folder, form, length, config.verify)
    yield f"{folder}: {result.size / 1e6:.1f} MB"
    for name, (inputs, outputs) in result.signatures.items():
        yield f"  {name}: {', '.join(inputs)} -> {', '.join(outputs)}"
    if form == "static":
        yield "  sentence-transformers, model2vec, embed, search and serve open it"
    elif result.answers is None:
        opens = f"; predict --model={folder} opens it" if form == "openvino" else ""
        more = "positions of masks, choices"
        yield f"  no client.py: the model takes more than texts ({more}){opens}"
    else:
        yield f"  client.py: text -> {result.answers}"
    if found := result.verification:
        yield (
            f"Loaded again: {found.calls} calls, largest difference "
            f"{found.largest_difference:.1e}.\n"
            f"A call of {found.timed} with a row of 32 tokens takes "
            f"{found.milliseconds:.2f} ms there."
        )


@tool(EXPORT, "keras_bert_impl.serving.exported:ExportModelConfig")
def export_model(config: Any, _: ConfigFlags) -> Iterator[str]:
    """Writes a model directory for a server or a runtime: as SavedModel, ONNX, OpenVINO, LiteRT.

    Or as static vectors (--format=static): a table of one vector for each token, made within a
    minute, that gives the vectors of texts some hundred times as fast as the model; see the page
    Small models.

    A SavedModel takes raw text (see export_saved_model). The others take ids, with free batch and
    length, and give what the model gives: logits, vectors, or one vector for each text if the
    directory says how. Each comes with the vocabulary, settings.json (labels, thresholds) and
    client.py, a short program that asks the model with texts. The client needs tensorflow and
    tensorflow_text, or numpy, tokenizers and the runtime, and nothing of this package. Only a
    SavedModel holds windows over long texts and the choice of answers and entities; in the other
    formats the client gives the model's numbers instead.

    The result is compared with the model by its own runtime, and timed with a row of 32 tokens.

    Examples:
      keras-bert export_model --model=mine --output_dir=mine_openvino --format=openvino
      python mine_openvino/client.py 'How do I get my money back?'
    """
    return _exported(config, config.format)


@tool(EXPORT, "keras_bert_impl.checkpoints.convert:ConvertConfig", ":convert_checkpoint")
def convert_checkpoint() -> None:
    """Converts a checkpoint: google's TF1 files to a Hugging Face directory, or back.

    The input is a model directory (config.json, model.safetensors or its shards, vocab.txt or
    tokenizer.json), a run's folder or checkpoint, or a TF1 checkpoint (its prefix, folder or any of
    its files) with bert_config.json and vocab.txt beside it. An output whose name holds ".ckpt" is
    written as a TF1 checkpoint, any other as a model directory. Numbers and their types stay as
    they are; optimizer slots are left out. Nothing is replaced but an older checkpoint of the same
    kind. Nothing that was downloaded is executed: a pytorch_model.bin is refused.

    Example:
      keras-bert convert_checkpoint --input=uncased_L-12_H-768_A-12/bert_model.ckpt --output=bert
          --do_lower_case
      keras-bert convert_checkpoint --input=bert --output=google/bert_model.ckpt
    """


@tool(EXPORT, "keras_bert_impl.checkpoints.convert:GrowConfig")
def grow_vocabulary(config: Any, _: ConfigFlags) -> Iterator[str]:
    """Adds words to a trained checkpoint, so that they are no longer split into several tokens.

    A new word takes an [unused…] entry while there are any, and then enlarges the token table,
    decoder and output bias. Its row starts as the mean of the rows of its former tokens. The result
    is written as a model directory or, where the output's name holds ".ckpt", as a TF1 checkpoint.
    One line a word is printed: id, word, former tokens.

    Example:
      keras-bert grow_vocabulary --input=bert --output=medical_bert --words=angioplasty,stent
    """
    from keras_bert_impl.checkpoints.convert import grow_checkpoint

    for entry in grow_checkpoint(config):
        yield f"{entry.id}\t{entry.token}\t{' '.join(entry.made_from)}"
