"""
A strict parser of Megatron-LM's layout strings, for tests only.

Written from the rules, as a machine that reads one character after the other; it shares
nothing with ``sapp_ppb.targets.megatron.layout``.  It takes no backslashes and no commas:
what is written has neither.
"""


class LayoutError(Exception):
    """The string breaks a rule."""


def strict_cells(text, *, stages, decoders, mtp):
    """
    Cells of a layout as pairs (decoders, MTP layers), indexed [chunk][stage].

    Raises LayoutError where the grammar or one of Megatron-LM's assertions is broken.
    """
    cells: list[list[str]] = [[]]
    for letter in _one_by_one(_without_groups(text)):
        if letter == "|":
            cells.append([])
        else:
            cells[-1].append(letter)
    chain = [letter for cell in cells for letter in cell]
    _assert(chain[:1] == ["E"] and chain.count("E") == 1, "E once and first")
    _assert(chain[-1:] == ["L"] and chain.count("L") == 1, "L once and last")
    _assert(chain.count("t") == decoders, "every decoder")
    _assert(chain.count("m") == mtp, "every MTP layer")
    _assert(len(cells) % stages == 0, "cells a multiple of the stages")
    holders = [k for k in range(len(cells)) if "m" in cells[k]]
    _assert(len(holders) <= 1, "MTP in one cell")
    _assert(all(k // stages == len(cells) // stages - 1 for k in holders), "MTP in the last chunk")
    if mtp:
        _assert("t" not in chain[chain.index("m") :], "decoders before MTP")
    pairs = [(cell.count("t"), cell.count("m")) for cell in cells]
    return [pairs[k : k + stages] for k in range(0, len(pairs), stages)]


def _assert(right, rule):
    if not right:
        raise LayoutError(rule)


def _without_groups(text):
    """Write groups out; what they hold may still be repeated letter by letter."""
    out, at = "", 0
    while at < len(text):
        if text[at] != "(":
            _assert(text[at] != ")", "a bracket that nothing opens")
            out, at = out + text[at], at + 1
            continue
        close = at + 1
        while close < len(text) and text[close] != ")":
            _assert(text[close] != "(", "a group in a group")
            close += 1
        inside = text[at + 1 : close]
        _assert(inside != "", "a group that holds nothing")
        _assert(text[close : close + 2] == ")*", "a group that is not repeated")
        times, at = _number(text, close + 2)
        out += inside * times
    return out


def _one_by_one(text):
    """Letters and bars, those that are repeated as often as they are."""
    at = 0
    while at < len(text):
        sign = text[at]
        _assert(sign in "EtmL|", f"a character {sign!r}")
        times, at = _number(text, at + 2) if text[at + 1 : at + 2] == "*" else (1, at + 1)
        yield from sign * times


def _number(text, at):
    """Digits from a place on, and where they end."""
    end = at
    while end < len(text) and text[end] in "0123456789":
        end += 1
    _assert(end > at, "a repetition without a number")
    return int(text[at:end]), end
