# SPDX-License-Identifier: Apache-2.0
"""with_plot.py URL: what reticent[plot] adds."""

import os
import sys

import reticent

people = reticent.Client(sys.argv[1], key=os.environ["RETICENT_KEY"]).dataset("people")
people.linear_regression("y ~ x", epsilon=8.0).plot().figure.savefig("fit.png")
