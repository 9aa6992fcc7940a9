# SPDX-License-Identifier: Apache-2.0
"""The kind `hypothesis_test`."""

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.errors import InvalidQuery
from reticent_server.formula import parse_hypothesis
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.glm.model import plan_model
from reticent_server.kinds.glm.query import GAUSSIAN
from reticent_server.kinds.hypothesis_test.plan import HypothesisTestPlan, JointTest, TermTable
from reticent_server.kinds.hypothesis_test.query import HypothesisTest


def _plan(facts: DatasetFacts, query: HypothesisTest, offer: PrivacyCost) -> Planned:
    if query.loss == "squared" and query.family not in {None, GAUSSIAN}:
        raise InvalidQuery('loss="squared" is of the linear regression: leave the family out.')
    if query.loss == "squared" and query.test == "score":
        raise InvalidQuery("A score test is of the robust fit; for least squares use wald or lr.")
    model = plan_model(facts, query, offer.rho, query.loss)
    if query.hypothesis is None:
        if query.test == "score":
            raise InvalidQuery(
                "A score test needs a hypothesis; wald and lr have a table of terms."
            )
        return HypothesisTestPlan(model, query.test, None)
    hypothesis = parse_hypothesis(query.hypothesis, model.design.names)
    if query.test == "score" and hypothesis.df == model.sizes.size:
        raise InvalidQuery("A score test leaves at least one coefficient free; use wald or lr.")
    return HypothesisTestPlan(model, query.test, hypothesis)


KIND = Kind(
    query=HypothesisTest,
    group=QuestionGroup.MODEL,
    asks="Does x matter at all in a model of y?",
    plan=_plan,
    result=JointTest | TermTable,
    examples=(
        HypothesisTest("y ~ x", hypothesis=("x = 0",)),
        HypothesisTest("y ~ x + C(g)"),
        HypothesisTest("y ~ x", ("x = 0",), loss="squared"),
        HypothesisTest("y ~ x", ("x = 0",), "score"),
        HypothesisTest("b ~ x", ("x = 0",), "lr", family="binomial"),
    ),
    page="hypothesis-tests",
)
