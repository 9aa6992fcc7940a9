# SPDX-License-Identifier: Apache-2.0
"""OpenID Connect: somebody else says who asks, and here it is checked. Nothing here runs, and no
network is touched, where RETICENT_OIDC_ISSUER is not set."""
