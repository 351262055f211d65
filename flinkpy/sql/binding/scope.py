"""Which columns a name can stand for: those of the relations of a query, then those of the query
around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from flinkpy.common.logical_types.logical_type import IntType, RowField, RowType
from flinkpy.sql.binding.proposals import proposal
from flinkpy.sql.logical.logical_nodes import LogicalNode
from flinkpy.sql.logical.logical_rex import RexOuter
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexInput, RexLiteral, rewritten, shifted
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.query_tree import Identifier, StarItem


@dataclass(frozen=True)
class Relation:
    """Columns that came from one relation of FROM, the first of them at ``first``. ``names`` is
    the name that may stand before a column: an alias, or the full name of a table, of which the
    last parts suffice."""

    names: tuple[str, ...]
    fields: tuple[RowField, ...]
    first: int = 0

    def is_called(self, qualifier: Sequence[str]) -> bool:
        return bool(qualifier) and self.names[-len(qualifier) :] == tuple(qualifier)

    def typed_as(self, fields: Sequence[RowField]) -> tuple[RowField, ...]:
        """Its columns, with the types of all columns of the query."""
        return tuple(
            replace(each, type=fields[self.first + place].type)
            for place, each in enumerate(self.fields)
        )

    def find(self, name: str) -> list[RexInput]:
        return [
            RexInput(each.type, index=self.first + place)
            for place, each in enumerate(self.fields)
            if each.name == name
        ]


@dataclass(frozen=True)
class Merged:
    """A column that USING or NATURAL made of two: its value, and the columns it stands for."""

    name: str
    value: Rex
    hides: frozenset[int]


@dataclass
class Surroundings:
    """The query around a subquery, and the expressions over its columns that the subquery has
    asked for: one for each slot."""

    scope: Scope
    slots: list[Rex] = field(default_factory=list)

    def slot_of(self, value: Rex) -> RexOuter:
        if value not in self.slots:
            self.slots.append(value)
        return RexOuter(value.type, slot=self.slots.index(value))


@dataclass(frozen=True)
class Scope:
    """The relations of one query, beside each other, and what is around the query."""

    relations: tuple[Relation, ...] = ()
    merged: tuple[Merged, ...] = ()
    surroundings: Surroundings | None = None

    @staticmethod
    def of(
        plan: LogicalNode, names: Sequence[str], surroundings: Surroundings | None = None
    ) -> Scope:
        """The columns of one relation, under its name."""
        return Scope((Relation(tuple(names), plan.schema.fields),), (), surroundings)

    def beside(self, other: Scope, by: int) -> Scope:
        """Both, the columns of the other one ``by`` further."""
        moved = tuple(replace(each, first=each.first + by) for each in other.relations)
        merged = tuple(
            Merged(each.name, shifted(each.value, by), frozenset(i + by for i in each.hides))
            for each in other.merged
        )
        return Scope(self.relations + moved, self.merged + merged, self.surroundings)

    def typed_as(self, row: RowType) -> Scope:
        """The same columns with the types that they have in this row: behind an outer join, those
        of a side that may be missing may be null."""
        relations = tuple(
            replace(each, fields=each.typed_as(row.fields)) for each in self.relations
        )
        merged = tuple(
            replace(each, value=rewritten(each.value, lambda rex: _typed_as(rex, row.fields)))
            for each in self.merged
        )
        return replace(self, relations=relations, merged=merged)

    def with_surroundings(self, surroundings: Surroundings | None) -> Scope:
        return replace(self, surroundings=surroundings)

    # -- names -----------------------------------------------------------------------------------

    def resolve(self, identifier: Identifier) -> Rex:
        """The column, or the part of one, that is called so."""
        found = self.find(identifier)
        if found is None:
            raise self._unknown(identifier)
        return replace(found, span=identifier.span)

    def find(self, identifier: Identifier) -> Rex | None:
        """The same; None if nothing here or around is called so. ``x.a`` is the column of a
        relation before it is the part of a column."""
        parts = identifier.parts
        for count in reversed(range(len(parts))):
            found = self._columns(parts[:count], parts[count])
            if parts[count + 1 :]:
                found = [each for each in found if isinstance(each.type, RowType)]
            if len(found) > 1:
                raise ValidationError(
                    f"Column '{identifier.text}' is ambiguous: {self._owners(parts[count])} have "
                    "it; write the name of the relation before it",
                    span=identifier.span,
                )
            if found:
                value = self._part(found[0], parts[count + 1 :], identifier)
                if value is not None:
                    return value
        if self.surroundings is None:
            return None
        outer = self.surroundings.scope.find(identifier)
        return None if outer is None else self.surroundings.slot_of(outer)

    def _columns(self, qualifier: Sequence[str], name: str) -> list[Rex]:
        if qualifier:
            return [
                column
                for each in self.relations
                if each.is_called(qualifier)
                for column in each.find(name)
            ]
        merged = [each for each in self.merged if each.name == name]
        hidden = frozenset[int]().union(*(each.hides for each in merged))
        found: list[Rex] = [each.value for each in merged]
        for relation in self.relations:
            found += [each for each in relation.find(name) if each.index not in hidden]
        return found

    def _part(self, value: Rex, path: Sequence[str], identifier: Identifier) -> Rex | None:
        for name in path:
            if not isinstance(value.type, RowType):
                return None
            value = field_of(value, name, identifier)
        return value

    def _owners(self, name: str) -> str:
        owners = [
            f"'{each.names[-1]}'" if each.names else "a query"
            for each in self.relations
            if each.find(name)
        ]
        return " and ".join(owners)

    def _unknown(self, identifier: Identifier) -> ValidationError:
        *qualifier, name = identifier.parts
        span = identifier.span
        if qualifier:
            owners = [each for each in self._everywhere() if each.is_called(qualifier)]
            if owners:
                known = [each.name for owner in owners for each in owner.fields]
                return ValidationError(
                    f"Column '{name}' not found in table '{'.'.join(qualifier)}'"
                    f"{proposal(name, known)}",
                    span=span,
                )
            tables = [each.names[-1] for each in self._everywhere() if each.names]
            if not self._columns((), identifier.parts[0]):
                return ValidationError(
                    f"Table '{'.'.join(qualifier)}' not found in this query"
                    f"{proposal(qualifier[-1], tables)}",
                    span=span,
                )
            return ValidationError(
                f"'{'.'.join(qualifier)}' is no row with a part '{name}'", span=span
            )
        known = [each.name for owner in self._everywhere() for each in owner.fields]
        return ValidationError(
            f"Column '{name}' not found in any table{proposal(name, known)}", span=span
        )

    def _everywhere(self) -> Iterator[Relation]:
        yield from self.relations
        if self.surroundings is not None:
            yield from self.surroundings.scope._everywhere()

    # -- stars -----------------------------------------------------------------------------------

    def star(self, item: StarItem) -> list[tuple[Rex, str]]:
        """The columns for which ``*`` or ``t.*`` stands, with their names."""
        if item.qualifier:
            relations = [each for each in self.relations if each.is_called(item.qualifier)]
            if not relations and (row := self._row_called(item)) is not None:
                assert isinstance(row.type, RowType)
                return [(part_of(row, place), name) for place, name in enumerate(row.type.names)]
            if not relations:
                name = ".".join(item.qualifier)
                known = [each.names[-1] for each in self.relations if each.names]
                raise ValidationError(
                    f"Unknown table '{name}'{proposal(item.qualifier[-1], known)}", span=item.span
                )
            return [
                (RexInput(each.type, index=relation.first + place), each.name)
                for relation in relations
                for place, each in enumerate(relation.fields)
            ]
        hidden = frozenset[int]().union(*(each.hides for each in self.merged))
        columns = [(each.value, each.name) for each in self.merged]
        for relation in self.relations:
            columns += [
                (RexInput(each.type, index=relation.first + place), each.name)
                for place, each in enumerate(relation.fields)
                if relation.first + place not in hidden
            ]
        return columns

    def _row_called(self, item: StarItem) -> Rex | None:
        """The column, or part of one, of this name, if it is a row: ``t.r.*`` are its parts."""
        value = self.find(Identifier(item.qualifier, span=item.span))
        return value if value is not None and isinstance(value.type, RowType) else None


def _typed_as(rex: Rex, fields: Sequence[RowField]) -> Rex:
    if isinstance(rex, RexInput):
        return replace(rex, type=fields[rex.index].type)
    if isinstance(rex, RexCall) and rex.function == "CAST":
        nullable = rex.type.is_nullable or rex.operands[0].type.is_nullable
        return replace(rex, type=rex.type.with_nullable(nullable))
    return rex


def field_of(value: Rex, name: str, at: Identifier) -> Rex:
    """A part of a row, by name."""
    row = value.type
    assert isinstance(row, RowType)
    if name not in row.names:
        called = f"The row '{at.parts[0]}'" if len(at.parts) > 1 else "The row"
        raise ValidationError(
            f"{called} has no part '{name}'{proposal(name, row.names)}", span=at.span
        )
    index = row.names.index(name)
    return part_of(value, index)


def part_of(value: Rex, index: int) -> Rex:
    """A part of a row, by number."""
    row = value.type
    assert isinstance(row, RowType)
    type = row.fields[index].type
    if row.is_nullable:
        type = type.with_nullable(True)
    return RexCall(type, function="FIELD", arguments=(value,), options=(("index", index),))


def whole_number(value: int) -> RexLiteral:
    """A constant INT."""
    return RexLiteral(IntType(is_nullable=False), value=value)
