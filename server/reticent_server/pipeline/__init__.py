# SPDX-License-Identifier: Apache-2.0
"""The stages of a request: ask → plan → pay → compute → show. Each module belongs to one.

ask       ask, authorising, request, protocols, persons, projects, second_person
plan      planning, planner, planner_process, plan_pieces, both_targets, defaults,
          gaussian_planning, lone_planning, guarantees, forecasts, wanted, rho_search, simulator,
          policy, policies
pay       coverage, budgets, books, accounts, account_history
compute   answer, deferred, fair_queue, schedule, timetable, pace, pace_file, calibration, settling,
          recovery, profile, anchoring, services
show      browse, documents, publishing, oversight, metrics, readiness

`answer` has the order of the stages: nothing is computed that was not charged. A frozen
`request.AdmittedRequest` goes through them: what is asked, of which public facts, who pays, and
what the accounts say; with its plan it is `Prepared`.
"""
