"""BERT in Keras 3: the library.

Importing this package loads neither TensorFlow nor Beam; import the modules you use.
"""

__version__ = "0.1.0"
