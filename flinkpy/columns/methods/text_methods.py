"""The methods of expressions for text."""

from __future__ import annotations

from flinkpy.columns.methods.expression_base import E, ExpressionBase, text, whole
from flinkpy.core.errors import ProgramError


class TextMethods(ExpressionBase[E]):
    """Methods of text. Positions are counted from 1, in characters."""

    __slots__ = ()

    @property
    def upper_case(self) -> E:
        return self._call("upper")

    @property
    def lower_case(self) -> E:
        return self._call("lower")

    @property
    def init_cap(self) -> E:
        """The text with a large first letter in each word of ASCII letters and digits."""
        return self._call("init_cap")

    @property
    def char_length(self) -> E:
        """The length in characters."""
        return self._call("char_length")

    @property
    def reverse(self) -> E:
        """The characters from last to first."""
        return self._call("reverse")

    def upper(self) -> E:
        return self.upper_case

    def lower(self) -> E:
        return self.lower_case

    def substring(self, begin_index: int, length: int | None = None) -> E:
        """The text from character ``begin_index`` on, counted from 1; at most ``length``
        characters. Raises ProgramError for an invalid position or length."""
        return self._call(
            "substring",
            begin=whole(begin_index, "substring()", 1),
            length=None if length is None else whole(length, "substring()"),
        )

    def left(self, length: int) -> E:
        """The first ``length`` characters."""
        return self._call("substring", begin=1, length=whole(length, "left()"))

    def right(self, length: int) -> E:
        """The last ``length`` characters."""
        return self._call("right", length=whole(length, "right()"))

    def trim(self, character: str = " ") -> E:
        """The text without these characters at both ends."""
        return self._call("trim", characters=_characters(character, "trim()"))

    def trim_leading(self, character: str = " ") -> E:
        """The text without these characters at its beginning."""
        return self._call("trim_leading", characters=_characters(character, "trim_leading()"))

    def trim_trailing(self, character: str = " ") -> E:
        """The text without these characters at its end."""
        return self._call("trim_trailing", characters=_characters(character, "trim_trailing()"))

    def lpad(self, length: int, pad: str = " ") -> E:
        """The text with ``length`` characters: filled up with ``pad`` on the left, or cut."""
        return self._call("lpad", length=whole(length, "lpad()"), pad=_characters(pad, "lpad()"))

    def rpad(self, length: int, pad: str = " ") -> E:
        """The text with ``length`` characters: filled up with ``pad`` on the right, or cut."""
        return self._call("rpad", length=whole(length, "rpad()"), pad=_characters(pad, "rpad()"))

    def repeat(self, n: int) -> E:
        """The text ``n`` times."""
        return self._call("repeat", times=whole(n, "repeat()"))

    def like(self, pattern: str) -> E:
        """Whether the whole text matches: ``%`` stands for any characters, ``_`` for one."""
        return self._call("like", pattern=text(pattern, "like()"))

    def startswith(self, start: str) -> E:
        return self._call("startswith", pattern=text(start, "startswith()"))

    def endswith(self, end: str) -> E:
        return self._call("endswith", pattern=text(end, "endswith()"))

    def contains(self, search: str) -> E:
        """Whether ``search`` stands somewhere in the text."""
        return self._call("contains", pattern=text(search, "contains()"))

    def position(self, haystack: object) -> E:
        """Where this text begins in ``haystack``, counted from 1; 0 if it is not there."""
        return self._call("position", haystack)

    def replace(self, search: str, replacement: str) -> E:
        """The text with every occurrence of ``search`` replaced."""
        return self._call(
            "replace", search=text(search, "replace()"), replacement=text(replacement, "replace()")
        )

    def split(self, delimiter: str) -> E:
        """The list of the pieces between the delimiters; of the characters if the delimiter is
        empty."""
        return self._call("split", delimiter=text(delimiter, "split()"))

    def split_index(self, separator: str, index: int) -> E:
        """The piece at this index between the separators, counted from 0; null if there are
        fewer."""
        return self._call(
            "split_index",
            delimiter=text(separator, "split_index()"),
            index=whole(index, "split_index()"),
        )


class RegularMethods(ExpressionBase[E]):
    """Methods with regular expressions, in the syntax of RE2: without look-around and
    back-references."""

    __slots__ = ()

    def regexp(self, regex: str) -> E:
        """Whether some part of the text matches."""
        return self._call("regexp", pattern=text(regex, "regexp()"))

    def regexp_count(self, regex: str) -> E:
        """How many parts of the text match, without overlaps."""
        return self._call("regexp_count", pattern=text(regex, "regexp_count()"))

    def regexp_extract(self, regex: str, extract_index: int = 0) -> E:
        """What the first match has in the group ``extract_index``, counted from 1 (0: the whole
        match); null if nothing matches."""
        return self._call(
            "regexp_extract",
            pattern=text(regex, "regexp_extract()"),
            group=whole(extract_index, "regexp_extract()"),
        )

    def regexp_replace(self, regex: str, replacement: str) -> E:
        r"""The text with every match replaced; ``\1`` in the replacement is the match's first
        group."""
        pattern = text(regex, "regexp_replace()")
        return self._call(
            "regexp_replace", pattern=pattern, replacement=text(replacement, "regexp_replace()")
        )


def _characters(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise ProgramError(f"{where} takes text that is not empty, this is {value!r:.80}")
    return value
