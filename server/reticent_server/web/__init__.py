# SPDX-License-Identifier: Apache-2.0
"""What every web interface shares: the bodies of requests, and sessions, forms and pages of people
in a browser."""
