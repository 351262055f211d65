"""Every expression whose value Flink was asked for."""

from flinkpy.sql.parsing import parse_expression
from tests.sql.values.reference_values import reference_values


def test_every_expression_of_the_reference_is_read() -> None:
    expressions = [each.expression for each in reference_values()]
    assert len(expressions) >= 335
    for text in expressions:
        if 38 * "9" in text:  # Flink's parser refuses it, too
            continue
        tree = parse_expression(text)
        assert text[tree.span.start : tree.span.end] == text
