"""Models, which read text and return a Trace: trained translators and classifiers, and Hugging Face models."""
