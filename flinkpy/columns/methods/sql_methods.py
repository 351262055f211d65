"""The functions of SQL as methods, for expressions of tables: streams have those of the other files
here. Arguments that are left out are not written; None is NULL only where SQL has it so."""

from __future__ import annotations

from abc import abstractmethod

from flinkpy.columns.methods.expression_base import E, ExpressionBase


class SqlMethods(ExpressionBase[E]):
    """Functions that tables have, by PyFlink's names."""

    __slots__ = ()

    @abstractmethod
    def _sql(self, function: str, *arguments: object, is_first: bool = True) -> E:
        """A function by SQL's name, of this value and others; trailing arguments that are None were
        not given. Unless it ``is_first``, this value is the last one."""

    @property
    def acos(self) -> E:
        """``ACOS(value)`` of SQL."""
        return self._sql("ACOS")

    def array_append(self, addition: object) -> E:
        """``ARRAY_APPEND(value, addition)`` of SQL."""
        return self._sql("ARRAY_APPEND", addition)

    def array_concat(self, *arrays: object) -> E:
        """``ARRAY_CONCAT(value, arrays...)`` of SQL."""
        return self._sql("ARRAY_CONCAT", *arrays)

    def array_distinct(self) -> E:
        """``ARRAY_DISTINCT(value)`` of SQL."""
        return self._sql("ARRAY_DISTINCT")

    def array_except(self, array: object) -> E:
        """``ARRAY_EXCEPT(value, array)`` of SQL."""
        return self._sql("ARRAY_EXCEPT", array)

    def array_intersect(self, array: object) -> E:
        """``ARRAY_INTERSECT(value, array)`` of SQL."""
        return self._sql("ARRAY_INTERSECT", array)

    def array_join(self, delimiter: object, null_replacement: object = None) -> E:
        """``ARRAY_JOIN(value, delimiter, null_replacement)`` of SQL."""
        return self._sql("ARRAY_JOIN", delimiter, null_replacement)

    def array_max(self) -> E:
        """``ARRAY_MAX(value)`` of SQL."""
        return self._sql("ARRAY_MAX")

    def array_min(self) -> E:
        """``ARRAY_MIN(value)`` of SQL."""
        return self._sql("ARRAY_MIN")

    def array_position(self, needle: object) -> E:
        """``ARRAY_POSITION(value, needle)`` of SQL."""
        return self._sql("ARRAY_POSITION", needle)

    def array_prepend(self, addition: object) -> E:
        """``ARRAY_PREPEND(value, addition)`` of SQL."""
        return self._sql("ARRAY_PREPEND", addition)

    def array_remove(self, needle: object) -> E:
        """``ARRAY_REMOVE(value, needle)`` of SQL."""
        return self._sql("ARRAY_REMOVE", needle)

    def array_reverse(self) -> E:
        """``ARRAY_REVERSE(value)`` of SQL."""
        return self._sql("ARRAY_REVERSE")

    def array_slice(self, start_offset: object, end_offset: object = None) -> E:
        """``ARRAY_SLICE(value, start_offset, end_offset)`` of SQL."""
        return self._sql("ARRAY_SLICE", start_offset, end_offset)

    def array_sort(self, ascending_order: object = None, null_first: object = None) -> E:
        """``ARRAY_SORT(value, ascending_order, null_first)`` of SQL."""
        return self._sql("ARRAY_SORT", ascending_order, null_first)

    def array_union(self, array: object) -> E:
        """``ARRAY_UNION(value, array)`` of SQL."""
        return self._sql("ARRAY_UNION", array)

    @property
    def ascii(self) -> E:
        """``ASCII(value)`` of SQL."""
        return self._sql("ASCII")

    @property
    def asin(self) -> E:
        """``ASIN(value)`` of SQL."""
        return self._sql("ASIN")

    @property
    def atan(self) -> E:
        """``ATAN(value)`` of SQL."""
        return self._sql("ATAN")

    @property
    def bin(self) -> E:
        """``BIN(value)`` of SQL."""
        return self._sql("BIN")

    def bitmap_and(self, bitmap2: object) -> E:
        """``BITMAP_AND(value, bitmap2)`` of SQL."""
        return self._sql("BITMAP_AND", bitmap2)

    def bitmap_andnot(self, bitmap2: object) -> E:
        """``BITMAP_ANDNOT(value, bitmap2)`` of SQL."""
        return self._sql("BITMAP_ANDNOT", bitmap2)

    def bitmap_build(self) -> E:
        """``BITMAP_BUILD(value)`` of SQL."""
        return self._sql("BITMAP_BUILD")

    def bitmap_cardinality(self) -> E:
        """``BITMAP_CARDINALITY(value)`` of SQL."""
        return self._sql("BITMAP_CARDINALITY")

    def bitmap_from_bytes(self) -> E:
        """``BITMAP_FROM_BYTES(value)`` of SQL."""
        return self._sql("BITMAP_FROM_BYTES")

    def bitmap_or(self, bitmap2: object) -> E:
        """``BITMAP_OR(value, bitmap2)`` of SQL."""
        return self._sql("BITMAP_OR", bitmap2)

    def bitmap_to_array(self) -> E:
        """``BITMAP_TO_ARRAY(value)`` of SQL."""
        return self._sql("BITMAP_TO_ARRAY")

    def bitmap_to_bytes(self) -> E:
        """``BITMAP_TO_BYTES(value)`` of SQL."""
        return self._sql("BITMAP_TO_BYTES")

    def bitmap_to_string(self) -> E:
        """``BITMAP_TO_STRING(value)`` of SQL."""
        return self._sql("BITMAP_TO_STRING")

    def bitmap_xor(self, bitmap2: object) -> E:
        """``BITMAP_XOR(value, bitmap2)`` of SQL."""
        return self._sql("BITMAP_XOR", bitmap2)

    def btrim(self, trim_str: object = None) -> E:
        """``BTRIM(value, trim_str)`` of SQL."""
        return self._sql("BTRIM", trim_str)

    @property
    def chr(self) -> E:
        """``CHR(value)`` of SQL."""
        return self._sql("CHR")

    def concat(self, other: object) -> E:
        """``CONCAT(value, other)`` of SQL; streams have it too."""
        return self._call("concat", other)

    @property
    def cos(self) -> E:
        """``COS(value)`` of SQL."""
        return self._sql("COS")

    @property
    def cosh(self) -> E:
        """``COSH(value)`` of SQL."""
        return self._sql("COSH")

    @property
    def cot(self) -> E:
        """``COT(value)`` of SQL."""
        return self._sql("COT")

    def decode(self, charset: object) -> E:
        """``DECODE(value, charset)`` of SQL."""
        return self._sql("DECODE", charset)

    @property
    def degrees(self) -> E:
        """``DEGREES(value)`` of SQL."""
        return self._sql("DEGREES")

    @property
    def element(self) -> E:
        """``ELEMENT(value)`` of SQL."""
        return self._sql("ELEMENT")

    def elt(self, expr: object, *exprs: object) -> E:
        """``ELT(value, expr, exprs...)`` of SQL."""
        return self._sql("ELT", expr, *exprs)

    def encode(self, charset: object) -> E:
        """``ENCODE(value, charset)`` of SQL."""
        return self._sql("ENCODE", charset)

    def ends_with(self, end_expr: object) -> E:
        """``ENDSWITH(value, end_expr)`` of SQL."""
        return self._sql("ENDSWITH", end_expr)

    @property
    def from_base64(self) -> E:
        """``FROM_BASE64(value)`` of SQL."""
        return self._sql("FROM_BASE64")

    @property
    def hex(self) -> E:
        """``HEX(value)`` of SQL."""
        return self._sql("HEX")

    def inet_aton(self) -> E:
        """``INET_ATON(value)`` of SQL."""
        return self._sql("INET_ATON")

    def inet_ntoa(self) -> E:
        """``INET_NTOA(value)`` of SQL."""
        return self._sql("INET_NTOA")

    def instr(self, s: object) -> E:
        """``INSTR(value, s)`` of SQL."""
        return self._sql("INSTR", s)

    @property
    def is_not_false(self) -> E:
        """``value IS NOT FALSE`` of SQL."""
        return self._sql("IS NOT FALSE")

    @property
    def is_not_true(self) -> E:
        """``value IS NOT TRUE`` of SQL."""
        return self._sql("IS NOT TRUE")

    def json_quote(self) -> E:
        """``JSON_QUOTE(value)`` of SQL."""
        return self._sql("JSON_QUOTE")

    def json_unquote(self) -> E:
        """``JSON_UNQUOTE(value)`` of SQL."""
        return self._sql("JSON_UNQUOTE")

    def locate(self, s: object, pos: object = None) -> E:
        """``LOCATE(value, s, pos)`` of SQL."""
        return self._sql("LOCATE", s, pos)

    def log(self, base: object = None) -> E:
        """``LOG(base, value)`` of SQL; without a base the natural logarithm."""
        return self._sql("LOG") if base is None else self._sql("LOG", base, is_first=False)

    @property
    def log10(self) -> E:
        """``LOG10(value)`` of SQL."""
        return self._sql("LOG10")

    @property
    def log2(self) -> E:
        """``LOG2(value)`` of SQL."""
        return self._sql("LOG2")

    def ltrim(self, trim_str: object = None) -> E:
        """``LTRIM(value, trim_str)`` of SQL."""
        return self._sql("LTRIM", trim_str)

    @property
    def map_entries(self) -> E:
        """``MAP_ENTRIES(value)`` of SQL."""
        return self._sql("MAP_ENTRIES")

    @property
    def map_keys(self) -> E:
        """``MAP_KEYS(value)`` of SQL."""
        return self._sql("MAP_KEYS")

    def map_union(self, *maps: object) -> E:
        """``MAP_UNION(value, maps...)`` of SQL."""
        return self._sql("MAP_UNION", *maps)

    @property
    def map_values(self) -> E:
        """``MAP_VALUES(value)`` of SQL."""
        return self._sql("MAP_VALUES")

    @property
    def md5(self) -> E:
        """``MD5(value)`` of SQL."""
        return self._sql("MD5")

    def not_between(self, lower_bound: object, upper_bound: object) -> E:
        """``value NOT BETWEEN lower_bound AND upper_bound`` of SQL."""
        return self._sql("NOT BETWEEN", lower_bound, upper_bound)

    def overlay(self, new_string: object, starting: object, length: object = None) -> E:
        """``OVERLAY(value PLACING new_string FROM starting FOR length)`` of SQL."""
        return self._sql("OVERLAY", new_string, starting, length)

    def parse_url(self, part_to_extract: object, key: object = None) -> E:
        """``PARSE_URL(value, part_to_extract, key)`` of SQL."""
        return self._sql("PARSE_URL", part_to_extract, key)

    def printf(self, *obj: object) -> E:
        """``PRINTF(value, obj...)`` of SQL."""
        return self._sql("PRINTF", *obj)

    @property
    def radians(self) -> E:
        """``RADIANS(value)`` of SQL."""
        return self._sql("RADIANS")

    def regexp_extract_all(self, regex: object, extract_index: object = None) -> E:
        """``REGEXP_EXTRACT_ALL(value, regex, extract_index)`` of SQL."""
        return self._sql("REGEXP_EXTRACT_ALL", regex, extract_index)

    def regexp_instr(self, regex: object) -> E:
        """``REGEXP_INSTR(value, regex)`` of SQL."""
        return self._sql("REGEXP_INSTR", regex)

    def regexp_substr(self, regex: object) -> E:
        """``REGEXP_SUBSTR(value, regex)`` of SQL."""
        return self._sql("REGEXP_SUBSTR", regex)

    def rtrim(self, trim_str: object = None) -> E:
        """``RTRIM(value, trim_str)`` of SQL."""
        return self._sql("RTRIM", trim_str)

    @property
    def sha1(self) -> E:
        """``SHA1(value)`` of SQL."""
        return self._sql("SHA1")

    def sha2(self, hash_length: object) -> E:
        """``SHA2(value, hash_length)`` of SQL."""
        return self._sql("SHA2", hash_length)

    @property
    def sha224(self) -> E:
        """``SHA224(value)`` of SQL."""
        return self._sql("SHA224")

    @property
    def sha256(self) -> E:
        """``SHA256(value)`` of SQL."""
        return self._sql("SHA256")

    @property
    def sha384(self) -> E:
        """``SHA384(value)`` of SQL."""
        return self._sql("SHA384")

    @property
    def sha512(self) -> E:
        """``SHA512(value)`` of SQL."""
        return self._sql("SHA512")

    def similar(self, pattern: object = None) -> E:
        """``value SIMILAR TO pattern`` of SQL."""
        return self._sql("SIMILAR TO", pattern)

    @property
    def sin(self) -> E:
        """``SIN(value)`` of SQL."""
        return self._sql("SIN")

    @property
    def sinh(self) -> E:
        """``SINH(value)`` of SQL."""
        return self._sql("SINH")

    def starts_with(self, start_expr: object) -> E:
        """``STARTSWITH(value, start_expr)`` of SQL."""
        return self._sql("STARTSWITH", start_expr)

    def str_to_map(self, list_delimiter: object = None, key_value_delimiter: object = None) -> E:
        """``STR_TO_MAP(value, list_delimiter, key_value_delimiter)`` of SQL."""
        return self._sql("STR_TO_MAP", list_delimiter, key_value_delimiter)

    def substr(self, begin_index: object, length: object = None) -> E:
        """``SUBSTR(value, begin_index, length)`` of SQL."""
        return self._sql("SUBSTR", begin_index, length)

    @property
    def tan(self) -> E:
        """``TAN(value)`` of SQL."""
        return self._sql("TAN")

    @property
    def tanh(self) -> E:
        """``TANH(value)`` of SQL."""
        return self._sql("TANH")

    @property
    def to_base64(self) -> E:
        """``TO_BASE64(value)`` of SQL."""
        return self._sql("TO_BASE64")

    def translate(self, from_str: object, to_str: object) -> E:
        """``TRANSLATE(value, from_str, to_str)`` of SQL."""
        return self._sql("TRANSLATE", from_str, to_str)

    def truncate(self, n: object = None) -> E:
        """``TRUNCATE(value, n)`` of SQL."""
        return self._sql("TRUNCATE", n)

    @property
    def unhex(self) -> E:
        """``UNHEX(value)`` of SQL."""
        return self._sql("UNHEX")

    def url_decode(self) -> E:
        """``URL_DECODE(value)`` of SQL."""
        return self._sql("URL_DECODE")

    def url_encode(self) -> E:
        """``URL_ENCODE(value)`` of SQL."""
        return self._sql("URL_ENCODE")


class SqlAggregates(ExpressionBase[E]):
    """Aggregates that tables have, by PyFlink's names."""

    __slots__ = ()

    @abstractmethod
    def _sql_aggregate(self, function: str, *arguments: object) -> E:
        """The same for an aggregate."""

    @property
    def array_agg(self) -> E:
        """``ARRAY_AGG(value)`` of SQL."""
        return self._sql_aggregate("ARRAY_AGG")

    def bitmap_and_agg(self) -> E:
        """``BITMAP_AND_AGG(value)`` of SQL."""
        return self._sql_aggregate("BITMAP_AND_AGG")

    def bitmap_and_cardinality_agg(self) -> E:
        """``BITMAP_AND_CARDINALITY_AGG(value)`` of SQL."""
        return self._sql_aggregate("BITMAP_AND_CARDINALITY_AGG")

    def bitmap_build_agg(self) -> E:
        """``BITMAP_BUILD_AGG(value)`` of SQL."""
        return self._sql_aggregate("BITMAP_BUILD_AGG")

    def bitmap_build_cardinality_agg(self) -> E:
        """``BITMAP_BUILD_CARDINALITY_AGG(value)`` of SQL."""
        return self._sql_aggregate("BITMAP_BUILD_CARDINALITY_AGG")

    def bitmap_or_agg(self) -> E:
        """``BITMAP_OR_AGG(value)`` of SQL."""
        return self._sql_aggregate("BITMAP_OR_AGG")

    def bitmap_or_cardinality_agg(self) -> E:
        """``BITMAP_OR_CARDINALITY_AGG(value)`` of SQL."""
        return self._sql_aggregate("BITMAP_OR_CARDINALITY_AGG")

    def bitmap_xor_agg(self) -> E:
        """``BITMAP_XOR_AGG(value)`` of SQL."""
        return self._sql_aggregate("BITMAP_XOR_AGG")

    def bitmap_xor_cardinality_agg(self) -> E:
        """``BITMAP_XOR_CARDINALITY_AGG(value)`` of SQL."""
        return self._sql_aggregate("BITMAP_XOR_CARDINALITY_AGG")

    @property
    def collect(self) -> E:
        """``COLLECT(value)`` of SQL."""
        return self._sql_aggregate("COLLECT")

    def list_agg(self, separator: object = None) -> E:
        """``LISTAGG(value, separator)`` of SQL."""
        return self._sql_aggregate("LISTAGG", separator)

    @property
    def sum0(self) -> E:
        """``SUM0(value)`` of SQL."""
        return self._sql_aggregate("$SUM0")


class WindowMethods(ExpressionBase[E]):
    """What ``col("w")`` has where ``w`` is the name of a window."""

    __slots__ = ()

    @property
    def start(self) -> E:
        """Where the window begins."""
        return self._of_window("START")

    @property
    def end(self) -> E:
        """Where the window ends; this moment is in the next one."""
        return self._of_window("END")

    @property
    def rowtime(self) -> E:
        """The last moment of the window, as an event time."""
        return self._of_window("ROWTIME")

    @property
    def proctime(self) -> E:
        """The time at which the window closed, of windows over the machine's clock."""
        return self._of_window("PROCTIME")

    def over(self, alias: object) -> E:
        """The aggregate over the rows of the window that ``over_window`` called so."""
        return self._of_window("OVER", alias)

    @abstractmethod
    def _of_window(self, word: str, *arguments: object) -> E:
        """A word that only ``window`` and ``over_window`` understand."""
