"""An HTTP server of models: TensorFlow Serving's REST form, OpenAI's embeddings, figures."""
