"""What reads text and returns a Trace: trained translators and classifiers, and Hugging Face models."""
