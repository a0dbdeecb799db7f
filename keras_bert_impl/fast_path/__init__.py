"""The same model, faster on CPUs: TensorFlow only, exchanged as a whole by a switch."""
