"""Recurrent translators: cells, encoder, and the decoders that attend."""
