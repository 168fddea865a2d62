"""``rewardkit audit-judge``: how a judge can be talked into a good grade, and how far its verdicts can be relied on."""
