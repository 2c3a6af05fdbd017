import pytest

from costscape.bench.report import published
from costscape.bench.report.published import caption, printed
from costscape.bench.report.published_scheduling import COSTS, VARIANTS


def test_the_costs_are_those_of_table_1():
    assert printed("scheduling", "two-stage-gmm1") == "4.52 (0.33)"
    assert printed("scheduling", "so-ebm-gmm1") == "3.83 (0.15)"
    assert published("scheduling", "df2") is None
    assert published("scheduling-measured", "two-stage-gmm1") is None


def test_variants_lose_the_shares_that_the_text_states():
    # section 4.4: 13 % without likelihood, 2 % without the KL divergence
    best = COSTS["so-ebm-gmm1"][0]
    assert VARIANTS["without likelihood"][0] / best == pytest.approx(1.13, abs=0.006)
    assert VARIANTS["without KL divergence"][0] / best == pytest.approx(1.02, abs=0.006)


def test_the_caption_cites_both_papers_and_says_what_differs():
    words = caption("scheduling")
    assert "NeurIPS 2022" in words
    assert "NeurIPS 2017" in words
    assert "filler on these days" in words
    assert caption("scheduling-measured") is None
