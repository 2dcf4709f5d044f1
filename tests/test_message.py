import math

import pytest

from tb_advisor.message import Message, Missing


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.4123, "0.412"),
        (1.18, "1.18"),
        (229.4, "229"),
        (12300.0, "12,300"),
        (123456.0, "123,000"),
        (0.0, "0"),
        (1.0, "1"),
        (0.00725, "0.00725"),
        (3.14e-7, "3.14e-07"),
        (9.996, "10"),
        (-0.5, "-0.5"),
        (math.nan, "NaN"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
    ],
)
def test_floats_have_three_significant_digits(value, text):
    assert str(Message("{value}", value=value)) == text


def test_steps_are_names_and_never_rounded():
    assert str(Message("step {step}", step=1234567)) == "step 1,234,567"


@pytest.mark.parametrize(
    ("template", "value", "text"),
    [
        ("{x:%}", 0.38, "38%"),
        ("{x:%}", 0.9861, "98.6%"),
        ("{x:duration}", 0.045, "45 ms"),
        ("{x:duration}", 3240.0, "54 min"),
        ("{x:duration}", 9840.0, "2 h 44 min"),
        ("{x:duration}", 273600.0, "3 d 4 h"),
        ("{x:bytes}", 1536, "1.5 KiB"),
        ("{x:bytes}", 3.25 * 2**30, "3.25 GiB"),
    ],
)
def test_units(template, value, text):
    assert str(Message(template, x=value)) == text


def test_a_catalogue_gives_another_language():
    message = Message("fell to {best} at step {step}", best=0.5, step=1200)
    assert message.text({"fell to {best} at step {step}": "bei Schritt {step}: {best}"}) == "bei Schritt 1,200: 0.5"


def test_values_with_braces_are_not_templates():
    assert str(Message("{tag} is missing", tag="{0.__class__}")) == "{0.__class__} is missing"


def test_missing_says_what_was_looked_for():
    assert str(Missing("no {what}", what="capture").message) == "no capture"


def test_two_texts_become_one_with_the_values_of_both():
    both = Message("It rose to {height}.", height=3.0) + Message(" So did {tag}.", tag="lr")
    assert str(both) == "It rose to 3. So did lr."
    assert both.values == {"height": 3.0, "tag": "lr"}
