# SPDX-License-Identifier: Apache-2.0
"""The walk: every question that the interface takes, asked from end to end.

    questions.py   what is asked: six tables, and the values of every field of every kind
    steps.py       what happens to a question on its way, and what has to hold on it
    promises.py    the intervals that a plan promises, against those that come
    test_walk.py   the short form, in `make test`: every value of every field is planned over HTTP
    __main__.py    the long form, by night: all pairs of values, released and read again

Nothing here names a kind. Kinds and the types of their fields come from the server's own
`/openapi.json`; the contexts in which a value makes sense (a formula that fits a family) are the
examples that stand in the kinds' rooms. A new kind, field or choice is walked as soon as it is in
the interface.

A question is planned, released, fetched again, shown on a page, exported in every format, and read
by the Python client and by R. What has to hold:

- no status of 500 or more, and no release that failed: what cannot be answered is refused in words
  when it is planned, and the words name a field, a column or a part of the question;
- what was charged is what the plan said, and so is the sentence of what is answered;
- intervals come where the plan promises them, and as wide as it says, within `WIDER`; where it
  expects none, none comes that is clear of its noise;
- no number stands for "none" or "not payable", and nothing that is not a number is shown as one.

The long form finds, and then names, one question to a fault:

    python tests/walk                        all pairs (hours); `--sample 50`: one in fifty of them
    python tests/walk --kinds glm study      some kinds
    python tests/walk --again '{"dataset": …, "query": …, "privacy": …, "rule": …}'
"""
