"""Sentences in files of many formats, one record at a time."""

from attnviz.data.records.files import LINE, Record, Unreadable, count, read, unpack

__all__ = ["LINE", "Record", "Unreadable", "count", "read", "unpack"]
