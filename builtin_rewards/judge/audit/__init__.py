"""``rewardkit audit-judge``: how a judge can be talked into a good grade, and how far its verdicts can be relied on.

``families`` holds what is tried, each family with its rule and source, ``rows`` the data, ``subject`` the judge and the
copies of it that are asked, ``run`` the asking, ``measures`` what the verdicts come to and what that must not exceed,
``report`` how it is shown.
"""
