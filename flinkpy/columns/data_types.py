"""The Table API's names of types, for ``cast`` and ``lit``. Each is the same type as its
counterpart in ``Types``."""

from __future__ import annotations

from flinkpy.common.typeinfo import TypeInformation, Types


class DataTypes:
    """
    >>> DataTypes.BIGINT() == Types.LONG()
    True
    """

    STRING = staticmethod(Types.STRING)
    BOOLEAN = staticmethod(Types.BOOLEAN)
    TINYINT = staticmethod(Types.BYTE)
    SMALLINT = staticmethod(Types.SHORT)
    INT = staticmethod(Types.INT)
    BIGINT = staticmethod(Types.LONG)
    FLOAT = staticmethod(Types.FLOAT)
    DOUBLE = staticmethod(Types.DOUBLE)
    DATE = staticmethod(Types.SQL_DATE)

    @staticmethod
    def TIME(precision: int = 0) -> TypeInformation:
        """The time of day in microseconds, whatever the precision."""
        return Types.SQL_TIME()

    @staticmethod
    def TIMESTAMP(precision: int = 6) -> TypeInformation:
        """A timestamp without zone in microseconds, whatever the precision."""
        return Types.SQL_TIMESTAMP()
