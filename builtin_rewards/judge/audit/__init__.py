"""``rewardkit audit-judge``: how a judge can be talked into a good grade, and how far its verdicts can be relied on.

``families`` holds what is tried, each family with its rule and source, ``rows`` the data, ``subject`` the judge and the
copies of it that are asked, ``trials`` what is asked and what came of it, ``run`` the course of an audit, ``measures``
and ``labels`` what the verdicts come to, ``found`` the result, ``limits`` what it must not exceed, ``report`` how it is
shown.
"""
