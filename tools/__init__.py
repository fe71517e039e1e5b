"""What maintainers run on the book: `python -m tools.execute`, `python -m tools.toc`. Not part of mesa_lib."""
