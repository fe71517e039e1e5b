"""The book's pictures: each function takes results, draws one figure and returns it."""

from mesa_lib.figures.style import COLORS, DIVERGING, LINES, STYLE, look, panel_label, styled

__all__ = ["COLORS", "DIVERGING", "LINES", "STYLE", "look", "panel_label", "styled"]
