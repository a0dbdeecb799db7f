"""From text to BERT's WordPiece tokens, offline and in the TensorFlow graph.

A map of the room, in the order in which to read it:

=================== ===============================================================================
reference           the rules, as plainly as they can be said; everything else must agree with it;
                    a word into its longest tokens, in Python; composed text (NFC)
vocabulary          the tokens and their ids: `vocab.txt`, `tokenizer.json`
text_settings       vocabulary, casing and accents as one value: what a tokenizer is made of
tokenizer           `Tokenizer`: what a user calls; lines into ids, texts and pairs into inputs
packing             texts and pairs into [CLS] A [SEP] B [SEP]: what stays of A and B, padded arrays
long_texts          truncated, their two ends, or several inputs (windows) that overlap
preprocessor        Keras layers from strings: the same ids inside a graph, and the model's inputs
graph_rows          packing and windows inside a graph
------------------- -------------------------------------------------------------------------------
                    below: how it is exact and fast at once
character_table     what each character is, for one fixed version of Unicode (`unicode_14.npz`)
normalizer          a model of characters for tensorflow-text's kernel that replaces them
kernel_models       that model and the kernel's vocabulary, built once and kept in a cache
kernels             the two kernels, called as they are
cutting             lines through the kernels; what they cannot do goes the long way, line by line
plain_tokenizer     the same ids without TensorFlow, for a few megabytes of text
portable_tokenizer  the same ids by Hugging Face's library `tokenizers`, beside exported models
certificate         a comparison with the reference, line by line
unknown_words       the words that become [UNK]: their share, and the reason where it is large
------------------- -------------------------------------------------------------------------------
learner             a vocabulary from counted words
=================== ===============================================================================
"""
