"""Models for the transformers library, from a folder or from the Hugging Face hub."""
