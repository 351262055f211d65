"""Functions of text and bytes, and hashes of text."""

from __future__ import annotations

from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import LogicalType, SizedType
from flinkpy.sql.functions.argument_kinds import (
    ANY,
    BIGINT,
    BINARY,
    INT,
    INTEGER_NUMERIC,
    NUMERIC,
    TEXT,
    one_of,
)
from flinkpy.sql.functions.built_in_function import BuiltInFunction, Shape, Traits, function
from flinkpy.sql.functions.common_arguments import in_common
from flinkpy.sql.functions.result_rules import (
    FittedCall,
    Nulls,
    argument,
    common,
    joined_text,
    varying,
)

_STRING = DataTypes.STRING()
_TRUTH = DataTypes.BOOLEAN()
_INT = DataTypes.INT()
_PAIR = (TEXT, TEXT)
_TRIPLE = (TEXT, TEXT, TEXT)
_TEXTS_OR_BYTES = [(TEXT, TEXT), (BINARY, BINARY)]
_JOINED = [Shape((TEXT,), more=TEXT), Shape((BINARY,), more=BINARY, result=joined_text)]
_CHOSEN = [
    Shape((INTEGER_NUMERIC, TEXT), more=TEXT, together=in_common(start=1)),
    Shape((INTEGER_NUMERIC, BINARY), more=BINARY, together=in_common(start=1)),
]
_PART = [(TEXT, INT), (TEXT, INT, INT)]
_PATTERN = Traits(can_fail=True)  # a format or an encoding may be none


def _overlaid(call: FittedCall) -> LogicalType:
    """As long as the text and what is placed into it."""
    joined = joined_text(FittedCall(call.arguments[:2], call.given[:2]))
    return DataTypes.VARCHAR(joined.length) if isinstance(joined, SizedType) else joined


def _hash(name: str, python_name: str, length: int) -> BuiltInFunction:
    return function(name, python_name, [(TEXT,), (BINARY,)], DataTypes.CHAR(length))


TEXTS = (
    function("||", "+", _TEXTS_OR_BYTES, joined_text),
    function("CHAR_LENGTH", "char_length", [(TEXT,)], _INT),
    function("UPPER", "upper_case", [(TEXT,)], argument(0)),
    function("LOWER", "lower_case", [(TEXT,)], argument(0)),
    function("POSITION", "position", [_PAIR, (TEXT, TEXT, INT)], _INT),
    function(
        "PRINTF", "printf", [Shape((TEXT,), more=ANY)], _STRING, Nulls.ALWAYS, traits=_PATTERN
    ),
    function("TRIM", "trim", [(TEXT,), _PAIR], varying()),
    function("LTRIM", "ltrim", [(TEXT,), _PAIR], varying()),
    function("RTRIM", "rtrim", [(TEXT,), _PAIR], varying()),
    function("BTRIM", "btrim", [(TEXT,), _PAIR], _STRING),
    function("REPEAT", "repeat", [(TEXT, INT)], _STRING),
    function("REGEXP_REPLACE", "regexp_replace", [_TRIPLE], _STRING),
    function("OVERLAY", "overlay", [(TEXT, TEXT, INT), (TEXT, TEXT, INT, INT)], _overlaid),
    function("STARTSWITH", "starts_with", _TEXTS_OR_BYTES, _TRUTH),
    function("ENDSWITH", "ends_with", _TEXTS_OR_BYTES, _TRUTH),
    function("SUBSTRING", "substring", _PART, varying(), Nulls.ALWAYS),
    function("SUBSTR", "substr", _PART, varying(), Nulls.ALWAYS),
    function("REPLACE", "replace", [_TRIPLE], _STRING),
    function("TRANSLATE", "translate", [_TRIPLE], _STRING),
    function("REGEXP", "regexp", [_PAIR], _TRUTH),
    function("REGEXP_COUNT", "regexp_count", [_PAIR], _INT, Nulls.ALWAYS),
    function("REGEXP_EXTRACT", "regexp_extract", [_PAIR, (TEXT, TEXT, INT)], _STRING, Nulls.ALWAYS),
    function(
        "REGEXP_EXTRACT_ALL",
        "regexp_extract_all",
        [_PAIR, (TEXT, TEXT, BIGINT)],
        DataTypes.ARRAY(_STRING),
        Nulls.ALWAYS,
    ),
    function("REGEXP_INSTR", "regexp_instr", [_PAIR], _INT, Nulls.ALWAYS),
    function("REGEXP_SUBSTR", "regexp_substr", [_PAIR], _STRING, Nulls.ALWAYS),
    function("INITCAP", "init_cap", [(TEXT,)], argument(0)),
    function("CONCAT", "concat", _JOINED, _STRING),
    function("CONCAT_WS", "concat_ws", [Shape((TEXT,), more=TEXT)], _STRING, Nulls.MAYBE),
    function("LPAD", "lpad", [(TEXT, INT, TEXT)], _STRING),
    function("RPAD", "rpad", [(TEXT, INT, TEXT)], _STRING),
    function("FROM_BASE64", "from_base64", [(TEXT,)], _STRING, traits=_PATTERN),
    function("TO_BASE64", "to_base64", [(TEXT,)], _STRING),
    function("ASCII", "ascii", [(TEXT,)], _INT),
    function("CHR", "chr", [(BIGINT,)], _STRING, Nulls.ALWAYS),
    function("DECODE", "decode", [(BINARY, TEXT)], _STRING, traits=_PATTERN),
    function("ENCODE", "encode", [_PAIR], DataTypes.BYTES(), traits=_PATTERN),
    function(
        "INSTR",
        "instr",
        [_PAIR, (TEXT, TEXT, INT), (TEXT, TEXT, INT, INT)],
        _INT,
        traits=Traits(can_fail=True),
    ),
    function("LEFT", "left", [(TEXT, INTEGER_NUMERIC)], varying(), Nulls.ALWAYS),
    function("RIGHT", "right", [(TEXT, INTEGER_NUMERIC)], varying(), Nulls.ALWAYS),
    function("LOCATE", "locate", [_PAIR, (TEXT, TEXT, INTEGER_NUMERIC)], _INT),
    function("URL_DECODE", "url_decode", [(TEXT,)], _STRING, Nulls.ALWAYS),
    function("URL_ENCODE", "url_encode", [(TEXT,)], _STRING, Nulls.ALWAYS),
    function("PARSE_URL", "parse_url", [_PAIR, _TRIPLE], _STRING, Nulls.ALWAYS),
    function("REVERSE", "reverse", [(TEXT,)], _STRING, Nulls.ALWAYS),
    function(
        "SPLIT_INDEX", "split_index", [(TEXT, TEXT, INT), (TEXT, INT, INT)], _STRING, Nulls.ALWAYS
    ),
    function(
        "STR_TO_MAP",
        "str_to_map",
        [(TEXT,), _TRIPLE],
        DataTypes.MAP(_STRING, _STRING),
        Nulls.ALWAYS,
    ),
    function("JSON_QUOTE", "json_quote", [(TEXT,)], _STRING),
    function("JSON_UNQUOTE", "json_unquote", [(TEXT,)], _STRING),
    function("ELT", "elt", _CHOSEN, common(1), Nulls.ALWAYS),
    function("IS_ALPHA", "", [(one_of(TEXT, NUMERIC),)], _TRUTH, Nulls.NEVER),
    function("IS_DECIMAL", "", [(one_of(TEXT, NUMERIC),)], _TRUTH, Nulls.NEVER),
    function("IS_DIGIT", "", [(one_of(TEXT, NUMERIC),)], _TRUTH, Nulls.NEVER),
    function("INET_ATON", "inet_aton", [(TEXT,)], DataTypes.BIGINT(), Nulls.ALWAYS),
    function("INET_NTOA", "inet_ntoa", [(BIGINT,)], _STRING, Nulls.ALWAYS),
)

HASHES = (
    _hash("MD5", "md5", 32),
    _hash("SHA1", "sha1", 40),
    _hash("SHA224", "sha224", 56),
    _hash("SHA256", "sha256", 64),
    _hash("SHA384", "sha384", 96),
    _hash("SHA512", "sha512", 128),
    function("SHA2", "sha2", [(TEXT, INT), (BINARY, INT)], DataTypes.VARCHAR(128)),
)
