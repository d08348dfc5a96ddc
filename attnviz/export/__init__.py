"""Traces and figures as files to keep: HTML, CSV, JSON, zip, SVG, PDF and PNG."""
