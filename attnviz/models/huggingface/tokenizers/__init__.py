"""Tokenizers of the transformers library: read with care, and from text to tokens and back."""
