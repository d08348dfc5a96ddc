"""What several commands share: arguments, how a model is opened, how a table is printed."""
