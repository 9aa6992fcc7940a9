# SPDX-License-Identifier: Apache-2.0
"""What can be made of a study's moments: free post-processing of one release."""
