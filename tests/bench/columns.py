# SPDX-License-Identifier: MIT
"""Lines of cells as columns, each as wide as its widest cell; the first line is the header."""


def print_columns(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip(), flush=True)
